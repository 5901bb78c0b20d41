/** Bounds of reading one page. */
export interface WebLimits {
  /** Bytes of a body, decompressed. */
  bytes: number;
  /** Time for a page with all its redirects, in milliseconds. */
  timeMs: number;
  redirects: number;
  /** Time for turning a page into text, in milliseconds. */
  convertMs: number;
  /** Characters of the text. */
  characters: number;
}

export const WEB_LIMITS: WebLimits = {
  bytes: 10 * 1024 * 1024,
  timeMs: 30_000,
  redirects: 5,
  convertMs: 15_000,
  characters: 2_000_000,
};
