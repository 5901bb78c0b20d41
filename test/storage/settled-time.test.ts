import * as fc from "fast-check";
import { expect, it } from "vitest";
import { type KnownTime, settle, settledTime } from "../../src/storage/sqlite/settled-time.ts";
import { opened } from "./support.ts";

const DAY = 86_400_000;
const HOUR = DAY / 24;

/** What is believed after each look. */
function believed(...looks: number[]): number[] {
  let known: KnownTime | undefined;
  return looks.map((now) => (known = settle(known, now)).settled);
}

it("follows a clock that goes on, and one that is set back", () => {
  expect(believed(0, HOUR, DAY + HOUR, HOUR, 2 * HOUR)).toEqual([0, HOUR, DAY + HOUR, HOUR, 2 * HOUR]);
});

it("believes a clock that was set ahead, or data after a long rest, a day later", () => {
  const late = 300 * DAY;
  expect(believed(0, late, late + HOUR, late + DAY, late + DAY + HOUR)).toEqual([
    0,
    0,
    0,
    late + DAY,
    late + DAY + HOUR,
  ]);
});

it("does not believe a clock that was ahead again and again, however long in all", () => {
  const ahead = fc.array(fc.integer({ min: 2 * DAY, max: 1e6 * DAY }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(ahead, (leaps) => {
      const looks = leaps.flatMap((leap, index) => [index * HOUR, index * HOUR + leap]);
      const right = leaps.length * HOUR;
      expect(believed(...looks, right).every((time) => time <= right)).toBe(true);
    }),
  );
});

it("is known to every process that uses the file", async () => {
  const database = opened();
  expect(await settledTime(database, 5 * DAY)).toBe(5 * DAY);
  expect(await settledTime(database, 50 * DAY)).toBe(5 * DAY);
  expect(await settledTime(database, 51 * DAY)).toBe(51 * DAY);
});
