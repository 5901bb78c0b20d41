import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createPace } from "../../src/core/clock.ts";

const [BURST, EVERY_MS] = [4, 50];

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function record() {
  const sent: { at: number; value: number }[] = [];
  let value = 0;
  const clock = (): number => performance.now();
  const begun = clock();
  const pace = createPace(() => sent.push({ at: clock() - begun, value }), {
    burst: BURST,
    everyMs: EVERY_MS,
    clock,
  });
  const ask = (): void => {
    value += 1;
    pace.ask();
  };
  return { sent, ask, pace, asked: () => value };
}

test("a few at once, then one in each turn, and again a few after a quiet while", () => {
  const { sent, ask } = record();
  for (let n = 0; n < 10; n += 1) ask();
  vi.advanceTimersByTime(1000);
  for (let n = 0; n < 10; n += 1) ask();
  vi.advanceTimersByTime(1000);
  expect(sent.map(({ at }) => at)).toEqual([0, 0, 0, 0, 50, 1000, 1000, 1000, 1000, 1050]);
  expect(sent.map(({ value }) => value)).toEqual([1, 2, 3, 4, 10, 11, 12, 13, 14, 20]);
});

test("whatever the pauses: never more than the burst and one for each turn, and the newest always comes", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 120 }), { maxLength: 100 }), (pauses) => {
      const { sent, ask, asked } = record();
      for (const pause of pauses) {
        ask();
        vi.advanceTimersByTime(pause);
      }
      vi.advanceTimersByTime(EVERY_MS);
      expect(sent.at(-1)?.value ?? 0).toBe(asked());
      for (const [first, { at }] of sent.entries()) {
        const during = sent.slice(first).filter((one) => one.at < at + 10 * EVERY_MS);
        expect(during.length).toBeLessThanOrEqual(BURST + 10);
      }
    }),
  );
});

test("nothing is sent after the end", () => {
  const { sent, ask, pace } = record();
  for (let n = 0; n < 10; n += 1) ask();
  pace.stop();
  vi.advanceTimersByTime(1000);
  ask();
  expect(sent).toHaveLength(BURST);
});
