import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { lastTimes, nextTime, nextTimes, readRule } from "../../src/runs/cron.ts";
import { attempts } from "../support/effort.ts";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const berlin = (expression: string) => ({ expression, timeZone: "Europe/Berlin" });
const isoTimes = (expression: string, after: string, count: number): string[] =>
  nextTimes(berlin(expression), Date.parse(after), count).map((time) =>
    new Date(time).toISOString().slice(0, 16),
  );

describe("a rule", () => {
  test.each([
    ["0 7 * * 1-5", "0 7 * * 1-5"],
    ["  0   7 * * mon-fri ", "0 7 * * mon-fri"],
    ["@daily", "@daily"],
    ["0 7 L * *", "0 7 L * *"],
    ["0 7 * * 5#2", "0 7 * * 5#2"],
  ])("is read from %j", (given, expression) => {
    expect(readRule({ expression: given, timeZone: "europe/berlin" }, NOW)).toEqual({
      ok: true,
      rule: { expression, timeZone: "Europe/Berlin" },
    });
  });

  test.each([
    "",
    "hello",
    "7",
    "60 * * * *",
    "* * * *",
    "* * * * * *",
    "0 0 30 2 *",
    "2030-01-01T00:00:00",
    "@reboot",
    "@",
    "5/15 * * * *",
    "*/0 * * * *",
    "0 7 * * 1-5; rm -rf /",
    "0\n7",
    "x".repeat(5000),
    "\u202e0 7 * * *",
    "1,".repeat(90) + "1 * * * *",
  ])("is refused as an expression: %j", (expression) => {
    const read = readRule(berlin(expression), NOW);
    expect(read).toMatchObject({ ok: expression.startsWith("1,") });
    if (read.ok) return;
    expect(read.field).toBe("expression");
    expect(read.message).toMatch(
      /^"[^\n]*" (is not a cron expression|never occurs)[^\n]*Give five fields, such as/,
    );
    expect(read.message.length).toBeLessThan(600);
  });

  test.each(["", "Mars/Olympus", "UTC+15", "BRT-3", "-03:30", "Europe/Berlin\n", "../etc", "x".repeat(999)])(
    "is refused for its time zone: %j",
    (timeZone) => {
      const read = readRule({ expression: "0 7 * * *", timeZone }, NOW);
      if (timeZone === "Europe/Berlin\n") return expect(read).toMatchObject({ ok: true });
      expect(read).toMatchObject({ ok: false, field: "timeZone" });
      expect(read).toHaveProperty(
        "message",
        expect.stringMatching(/^There is no time zone "[^\n]{0,90}\. Give a/),
      );
    },
  );
});

describe("when the clocks change", () => {
  test("a fixed time that does not exist occurs at the end of the gap, and one that exists twice occurs once", () => {
    expect(isoTimes("30 2 * * *", "2026-03-28T12:00Z", 2)).toEqual(["2026-03-29T01:00", "2026-03-30T00:30"]);
    expect(isoTimes("30 2 * * *", "2026-10-24T12:00Z", 2)).toEqual(["2026-10-25T00:30", "2026-10-26T01:30"]);
  });

  test("an interval goes on in real time: none in the gap, and in the hour that comes twice both times", () => {
    expect(isoTimes("*/30 * * * *", "2026-03-29T00:30Z", 3)).toEqual([
      "2026-03-29T01:00",
      "2026-03-29T01:30",
      "2026-03-29T02:00",
    ]);
    expect(isoTimes("0 * * * *", "2026-10-24T23:30Z", 3)).toEqual([
      "2026-10-25T00:00",
      "2026-10-25T01:00",
      "2026-10-25T02:00",
    ]);
    expect(isoTimes("0,30 2 * * *", "2026-03-28T12:00Z", 2)).toEqual([
      "2026-03-30T00:00",
      "2026-03-30T00:30",
    ]);
  });

  test("the occurrences before a moment are those that follow each other up to it, in every zone", () => {
    const zones = ["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Africa/Casablanca"];
    const expressions =
      "* * * * *;*/7 1-3 * * *;30 2 * * *;0,30 1,2 * * *;0 0 L * *;0 7 * * 1-5;0 0 29 2 *;0 7 13 * 5;0 12 15W * *";
    const times = fc.integer({ min: Date.parse("2026-01-01"), max: Date.parse("2027-01-01") });
    const property = fc.property(
      fc.constantFrom(...zones),
      fc.constantFrom(...expressions.split(";")),
      fc.oneof(
        times,
        times.map((time) => time - (time % 60_000)),
      ),
      (timeZone, expression, now) => {
        const rule = { expression, timeZone };
        const last = lastTimes(rule, now, 4).toReversed();
        const forward = last.slice(1).map((_time, index) => nextTime(rule, last[index] ?? 0));
        expect(last.slice(1)).toEqual(forward);
        expect(nextTime(rule, last.at(-1) ?? 0)).toBeGreaterThan(now);
        expect(last.at(-1)).toBeLessThanOrEqual(now);
      },
    );
    fc.assert(property, attempts(400));
  });
});
