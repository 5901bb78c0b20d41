/** Finds the time zone that a text means, in the forms of systems and of people. */
import { orElse } from "./errors.ts";
import { realPath } from "./real-path.ts";
import table from "./time-zones.json" with { type: "json" };

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
    const zone = orElse(
      () => new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone,
      "",
    );
    const isSame = ([known]: [string, string]): boolean => known.toLowerCase() === name.toLowerCase();
    const found = zone || (name.includes(" ") ? Object.entries(table.zones).find(isSame)?.[1] : undefined);
    if (found !== undefined) return found;
  }
  if (by === "person") {
    const [, offset] = /^(?:UTC|GMT)? ?([+-]\d{1,2}(?::\d\d)?|[+-]\d{4})$/i.exec(name) ?? [];
    return offset && fixedZone(toMinutes(offset));
  }
  const [, west, summerName, summerWest, days = ""] = POSIX.exec(name) ?? [];
  if (west === undefined) return undefined;
  const standard = -toMinutes(west);
  if (summerName === undefined) return fixedZone(standard);
  const offsets = `${standard} ${summerWest === undefined ? standard + 60 : -toMinutes(summerWest)},`;
  // Two o'clock is the usual time of a change.
  const rule = offsets + days.replaceAll(/\/0?2(?=,|$)/g, "");
  const rules = Object.entries(table.rules);
  const found = rules.find(([known]) => known === rule) ?? rules.find(([known]) => known.startsWith(offsets));
  return found?.[1] ?? fixedZone(standard);
}

/** A rule such as `CET-1CEST,M3.5.0,M10.5.0/3`, whose offsets are those that lead to UTC. */
const POSIX =
  /^(?:[a-z]{3,}|<[^<>]+>)([+-]?\d{1,2}(?::\d\d){0,2})(?:([a-z]{3,}|<[^<>]+>)([+-]?\d{1,2}(?::\d\d){0,2})?(?:,(.*))?)?$/i;

function toMinutes(offset: string): number {
  const [hours = 0, minutes = 0] = (offset.match(/\d{1,2}/g) ?? []).map(Number);
  return (hours * 60 + minutes) * (offset.startsWith("-") ? -1 : 1);
}

/** A zone without summer time. */
function fixedZone(minutes: number): string | undefined {
  const hours = minutes / 60;
  if (hours === 0) return "UTC";
  if (!Number.isInteger(hours) || hours < -12 || hours > 14)
    return Object.entries(table.rules).find(([known]) => known === String(minutes))?.[1];
  return `Etc/GMT${hours < 0 ? "+" : "-"}${Math.abs(hours)}`;
}

/** `Etc/GMT-3` as people call it: `UTC+3`. */
export const zoneWords = (zone: string): string =>
  zone.replace(/^Etc\/GMT([+-])/, (_, sign) => `UTC${sign === "+" ? "-" : "+"}`);
