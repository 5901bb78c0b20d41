/**
 * How much of the machine's time tests use. `npm test` runs no test with the tag `long`, and tries properties less
 * often than `npm run test:long`.
 */
export const IS_LONG = process.env["MODE"] === "long";

/** How often fast-check tries a property: as often as `count` says in the long run, an eighth of it otherwise. */
export const attempts = (count: number): { numRuns: number } => ({
  numRuns: IS_LONG ? count : Math.ceil(count / 8),
});
