/** The number of open requests in words, for the server and for the script of the page. */

export const requestsNeed = (count: number, whose = "your"): string =>
  count === 1 ? `1 request needs ${whose} attention` : `${count} requests need ${whose} attention`;
