/** Bounds of reading one page. */
export const WEB_LIMITS = {
  /** Bytes of a body, decompressed. */
  bytes: 10 * 1024 * 1024,
  /** Time for a page with all its redirects, in milliseconds. */
  timeMs: 30_000,
  redirects: 5,
  /** Time for turning a page into text, in milliseconds. */
  convertMs: 15_000,
  /** Characters of the text. */
  characters: 2_000_000,
};

export type WebLimits = typeof WEB_LIMITS;
