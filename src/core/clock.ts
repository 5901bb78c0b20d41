/** Milliseconds since the epoch; injected, so that tests are deterministic. */
export type Clock = () => number;

export const systemClock: Clock = () => Date.now();

/** ISO 8601 with milliseconds, UTC. */
export const isoTime = (milliseconds: number): string => new Date(milliseconds).toISOString();

/** Such as `2026-01-31 12:00 UTC`. */
export const shortTime = (milliseconds: number): string =>
  `${isoTime(milliseconds).slice(0, 16).replace("T", " ")} UTC`;
