/** The number of open decisions in words, for the server and for the script of the page. */

export const decisionsWait = (count: number): string =>
  count === 1 ? "1 decision waits" : `${count} decisions wait`;

export const decisionsWaitForYou = (count: number): string => `${decisionsWait(count)} for you`;
