/** Finds the time zone that a text means, in the forms of systems and of people. */
import { realPath } from "./real-path.ts";
import windows from "./windows-zones.json" with { type: "json" };

/**
 * The IANA name of a zone. `TZ`: as the variable has it, where a path is possible and `UTC+3` lies west of Greenwich
 * by POSIX; `person`: as people write it, where `UTC+3` and `+03:00` lie east. Returns undefined if there is none.
 */
export function findZone(text: string, by: "TZ" | "person"): string | undefined {
  const given = text.trim().replace(/^:/, "");
  const path = given.startsWith("/") ? realPath(given).replace(/^.*\/zoneinfo\//, "") : given;
  const name = by === "TZ" ? path.replace(/^(?:posix|right)\//, "") : given;
  // Newer versions of Node take offsets too, and name some settings "Etc/Unknown".
  if (/^[a-z]/i.test(name) && name !== "Etc/Unknown") {
    try {
      return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
    } catch {
      const isSame = ([known]: [string, string]): boolean => known.toLowerCase() === name.toLowerCase();
      const zone = name.includes(" ") ? Object.entries(windows.zones).find(isSame)?.[1] : undefined;
      if (zone !== undefined) return zone;
    }
  }
  const [, sign, hours, minutes] = /^(?:UTC|GMT)? ?([+-])(\d{1,2})(?::?(\d\d))?$/i.exec(name) ?? [];
  if (by === "person" && sign !== undefined) {
    const offset = minutesOf(sign, hours, minutes);
    return zoneLike(() => offset, true);
  }
  const isRule = by === "TZ" ? /^[a-z<]/i.test(name) : /[,<]/.test(name);
  const offsetAt = isRule ? readPosix(name) : undefined;
  return offsetAt && zoneLike(offsetAt, false);
}

/** `Etc/GMT-3` as people call it: `UTC+3`. */
export const zoneWords = (zone: string): string =>
  zone.replace(/^Etc\/GMT([+-])/, (_, sign) => `UTC${sign === "+" ? "-" : "+"}`);

const minutesOf = (sign = "", hours = "", minutes = "0"): number =>
  (Number(hours) * 60 + Number(minutes)) * (sign === "-" ? -1 : 1);

/** Reads a rule such as `CET-1CEST,M3.5.0,M10.5.0/3` as the offset from UTC in minutes at a moment. */
function readPosix(rule: string): ((time: number) => number) | undefined {
  const [first, second, ...given] = rule
    .replace(/^([a-z]{3,}|<[^<>]+>)([+-]?[\d:]+)/i, "$2,")
    .replace(/,([a-z]{3,}|<[^<>]+>)/i, ",+")
    .split(",");
  const offset = (text = ""): number | undefined => {
    const [whole, sign, hours, minutes] = /^([+-]?)(\d{1,3})(?::(\d\d))?(?::\d\d)?$/.exec(text) ?? [];
    return whole === undefined ? undefined : -minutesOf(sign, hours, minutes);
  };
  const standard = offset(first);
  if (standard === undefined) return undefined;
  const summer = offset(second?.replace(/^\+(?=[+-])/, "")) ?? standard + 60;
  const days = given.length === 2 && given.every((day) => /^M/i.test(day)) ? given : ["M3.2.0", "M11.1.0"];
  // The day of a rule `M3.5.0` (month, week, weekday), in UTC.
  const dayOf = (text: string, year: number): number => {
    const [month = 0, week = 0, weekday = 0] = text.slice(1).split(/[./]/).map(Number);
    const day = 1 + ((weekday - new Date(Date.UTC(year, month - 1, 1)).getUTCDay() + 7) % 7) + week * 7 - 7;
    const last = new Date(Date.UTC(year, month, 0)).getUTCDate();
    return Date.UTC(year, month - 1, day > last ? day - 7 : day);
  };
  return (time) => {
    const [begin = 0, end = 0] = days.map((text) => dayOf(text, new Date(time).getUTCFullYear()));
    const isSummer = begin < end ? time >= begin && time < end : time >= begin || time < end;
    return second?.startsWith("+") && isSummer ? summer : standard;
  };
}

/** The zone whose offsets over a year are these, or most like them. Returns undefined if there is none. */
function zoneLike(offsetAt: (time: number) => number, isExact: boolean): string | undefined {
  const year = new Date().getUTCFullYear();
  const days = Array.from({ length: 73 }, (_, at) => Date.UTC(year, 0, 3 + at * 5, 12));
  const fixed = Array.from({ length: 27 }, (_, at) => `Etc/GMT${at < 13 ? `+${at}` : `-${at - 12}`}`);
  // Zones of many people come first.
  const isSmall = (zone: string): boolean => /^A(?:frica|ntarctica|rctic|tlantic)\//.test(zone);
  const named = Intl.supportedValuesOf("timeZone").sort((a, b) => Number(isSmall(a)) - Number(isSmall(b)));
  let best: { zone: string; same: number } | undefined;
  for (const zone of ["UTC", ...fixed, ...named]) {
    const format = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" });
    const isSame = (time = 0): boolean => {
      const [, sign, hours, minutes] = /GMT([+-])(\d\d):(\d\d)/.exec(format.format(time)) ?? [];
      return minutesOf(sign, hours, minutes) === offsetAt(time);
    };
    if (!isSame(days[0]) && !isSame(days[36])) continue;
    const same = days.filter(isSame).length;
    if (same > (best?.same ?? 0)) best = { zone, same };
    if (same === days.length) break;
  }
  return isExact && best?.same !== days.length ? undefined : best?.zone;
}
