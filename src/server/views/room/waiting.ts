/** The number of open requests in words, for the server and for the script of the page. */

export const requestsWait = (count: number): string =>
  count === 1 ? "1 request waits" : `${count} requests wait`;

export const requestsWaitForYou = (count: number): string => `${requestsWait(count)} for you`;
