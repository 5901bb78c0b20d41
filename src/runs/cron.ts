/** Times of cron expressions. Changes of the clock follow the rules of croner. */
import { Cron } from "croner";
import { errorMessage } from "../core/errors.ts";
import { oneLine, shownName } from "../core/text.ts";
import { findZone } from "../core/time-zone.ts";

/** A cron expression in a time zone. */
export interface Rule {
  expression: string;
  timeZone: string;
}

const HELP =
  'Give five fields, such as "0 7 * * 1-5": minute, hour, day of the month, month and day of the week. @hourly, @daily, @weekly, @monthly and @yearly are allowed too.';

const parseCron = ({ expression, timeZone }: Rule): Cron =>
  new Cron(expression, { mode: "5-part", timezone: timeZone, paused: true });

export type ReadRule =
  | { ok: true; rule: Rule }
  | { ok: false; field: "expression" | "timeZone"; message: string };

/** Reads a rule as a person wrote it, which has to occur after `now`. */
export function readRule(given: Rule, now: number): ReadRule {
  const expression = given.expression.trim().replaceAll(/\s+/g, " ");
  const zone = given.timeZone.trim();
  const timeZone = findZone(zone, "person");
  if (timeZone === undefined) {
    const message = `There is no time zone "${shownName(given.timeZone)}". Give a name such as Europe/Berlin, America/New_York or UTC, or an offset such as UTC+3.`;
    return { ok: false, field: "timeZone", message };
  }
  const wrong = (text: string): ReadRule => ({ ok: false, field: "expression", message: `${text} ${HELP}` });
  if (expression.length > 200 || !/^(?:@[a-z]+|\S+(?: \S+){4})$/i.test(expression))
    return wrong(`"${shownName(expression)}" is not a cron expression.`);
  try {
    const rule = { expression, timeZone };
    const next = parseCron(rule).nextRun(new Date(now));
    return next === null ? wrong(`"${shownName(expression)}" never occurs.`) : { ok: true, rule };
  } catch (error) {
    const reason = oneLine(errorMessage(error).replace(/^\w+: /, ""), 200).replace(/\.$/, "");
    return wrong(`"${shownName(expression)}" is not a cron expression: ${reason}.`);
  }
}

/** The first occurrence after a moment. */
export function nextTime(rule: Rule, after: number): number {
  const next = parseCron(rule).nextRun(new Date(after));
  if (next === null) throw new Error(`${rule.expression} does not occur any more.`);
  return next.getTime();
}

export function nextTimes(rule: Rule, after: number, count: number): number[] {
  return parseCron(rule)
    .nextRuns(count, new Date(after))
    .map((time) => time.getTime());
}

/** The last occurrences up to a moment and at it, newest first. */
export function lastTimes(rule: Rule, until: number, count: number): number[] {
  // An occurrence counts as past one millisecond after it.
  return parseCron(rule)
    .previousRuns(count, new Date(until + 1))
    .map((time) => time.getTime());
}
