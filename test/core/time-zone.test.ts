import { afterEach, expect, it } from "vitest";
import { localTime } from "../../src/cli/terminal/text.ts";
import { startNote, timeZone } from "../../src/core/clock.ts";
import { findZone, zoneWords } from "../../src/core/time-zone.ts";
import table from "../../src/core/time-zones.json" with { type: "json" };

const before = process.env["TZ"];
afterEach(() => {
  if (before === undefined) delete process.env["TZ"];
  else process.env["TZ"] = before;
});
const SUMMER = Date.UTC(2026, 6, 1, 12);
const WINTER = Date.UTC(2026, 0, 15, 12);

it.each([
  [undefined, undefined, undefined],
  [":Europe/Berlin", 14, 13],
  ["Europe/berlin", 14, 13],
  ["posix/Europe/Berlin", 14, 13],
  ["/usr/share/zoneinfo/Asia/Tokyo", 21, 21],
  ["CET-1CEST,M3.5.0,M10.5.0/3", 14, 13],
  ["PST8PDT,M3.2.0,M11.1.0", 5, 4],
  ["AEST-10AEDT,M10.1.0,M4.1.0/3", 22, 23],
  ["CET-1CEST,J87,299", 14, 13],
  ["<-03>3", 9, 9],
  ["UTC+3", 9, 9],
  ["JST-9", 21, 21],
  ["GMT", 12, 12],
  ["W. Europe Standard Time", 14, 13],
  ["", 12, 12],
  ["nonsense", 12, 12],
  ["undefined", 12, 12],
  ["Moon/Sea", 12, 12],
  ["/etc/passwd", 12, 12],
  ["CET-1CEST,M13.9.9,M0.0.0", 14, 13],
  ["A".repeat(5000), 12, 12],
])("TZ=%s has a zone and its hours", (setting, summer, winter) => {
  if (setting === undefined) delete process.env["TZ"];
  else process.env["TZ"] = setting;
  expect(() => new Intl.DateTimeFormat("en", { timeZone: timeZone() })).not.toThrow();
  expect(startNote(SUMMER)).toMatch(
    /^\[Started on \w+day, 2026-07-0[12], \d\d:00, time zone [A-Z][\w/+-]+, on \w+\]$/,
  );
  if (summer !== undefined)
    expect([SUMMER, WINTER].map((time) => Number(localTime(time).slice(11, 13)))).toEqual([summer, winter]);
});

it.each([
  ["UTC+3", "Etc/GMT-3", "UTC+3"],
  ["+02:00", "Etc/GMT-2", "UTC+2"],
  ["gmt-5", "Etc/GMT+5", "UTC-5"],
  ["UTC", "UTC", "UTC"],
  ["europe/berlin", "Europe/Berlin", "Europe/Berlin"],
  ["Pacific Standard Time", "America/Los_Angeles", "America/Los_Angeles"],
])("a person who writes %s means %s", (text, zone, words) => {
  expect(findZone(text, "person")).toBe(zone);
  expect(zoneWords(zone)).toBe(words);
  expect(findZone(words, "person")).toBe(zone);
});

it("finds a zone for half hours", () => {
  const zone = findZone("UTC+05:30", "person") ?? "";
  expect(new Date(0).toLocaleTimeString("en-GB", { timeZone: zone })).toMatch(/^05:30/);
});

it.each(["BRT-3", "UTC+15", "+99:99", "-03:30", "", "../etc", "/usr/share/zoneinfo/Asia/Tokyo"])(
  "%s is no zone for a person",
  (text) => {
    expect(findZone(text, "person")).toBeUndefined();
  },
);

it("knows all zones of Windows by names that this system has", () => {
  for (const [name, zone] of Object.entries(table.zones)) {
    expect(() => new Intl.DateTimeFormat("en", { timeZone: zone })).not.toThrow();
    if (name.includes(" ")) expect(findZone(name, "person")).toBe(zone);
  }
});
