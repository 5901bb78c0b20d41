/** Random numbers that follow from a seed. */

/** Numbers from 0 up to 1, after a state. */
export function draws(state: number): () => number {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A generator of its own, from 0 up to 1. Those of one seed differ by their `use`. */
export const generator = (seed: number, use = 0): (() => number) =>
  draws((Math.imul(seed, 0x9e3779b1) + Math.imul(use, 0x7f4a7c15)) | 0);
