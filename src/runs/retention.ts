/** Which runs that are over may be forgotten. Without any limit all are kept. */
export interface Retention {
  /** Those that ended longer ago than this, in milliseconds. */
  maxAgeMs?: number;
  /** The oldest, as long as all that is stored takes more than this. */
  maxBytes?: number;
}

/** A run that is over is kept for so long, however much is stored: somebody may still come for its result. */
export const KEPT_FOR_SIZE_MS = 24 * 3_600_000;

/** How long a run is kept after it began, at least, in milliseconds; `null`: it is not forgotten. */
export function keptAtLeastMs({ maxAgeMs, maxBytes }: Retention): number | null {
  const limits = [maxAgeMs, maxBytes === undefined ? undefined : KEPT_FOR_SIZE_MS];
  const known = limits.filter((limit) => limit !== undefined);
  return known.length === 0 ? null : Math.min(...known);
}
