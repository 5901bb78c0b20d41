/** Describes schedules to people: cron expressions in words, times in their zone, reasons for skips. */
import { isoTime } from "../../core/clock.ts";
import type { RunChoices } from "../../runs/choices.ts";
import { nextTimes } from "../../runs/cron.ts";
import type { ScheduleView } from "../../runs/schedule.ts";
import { limitWords, limitsDocument } from "./limit-words.ts";
import words from "./words.json" with { type: "json" };

/** A moment in a time zone, such as `Mon 5 Jan 2026, 07:00`. */
export function timeIn(timeZone: string, time: number): string {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone,
    weekday: "short",
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
  const parts = Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, value]));
  const { weekday = "", day = "", month = "", year = "", hour = "", minute = "" } = parts;
  return `${weekday} ${day} ${month.slice(0, 3)} ${year}, ${hour}:${minute}`;
}

/** Describes when occurrences were skipped, and why they started no run. */
export function skipText(timeZone: string, { from, to, reason }: ScheduleView["skips"][number]): string {
  const times = from === to ? timeIn(timeZone, from) : `${timeIn(timeZone, from)} to ${timeIn(timeZone, to)}`;
  return `${times}: ${words.skips[reason]}`;
}

/** A due time that is so long past waits for a server. */
export const LATE_MS = 60_000;

/** The next time of a schedule, or the reason why it has none. */
export function nextText(
  { timeZone, dueAt, pausedAt }: Pick<ScheduleView, "timeZone" | "dueAt" | "pausedAt">,
  now: number,
): string {
  if (pausedAt !== undefined) return "paused";
  return dueAt < now - LATE_MS ? `due since ${timeIn(timeZone, dueAt)}` : timeIn(timeZone, dueAt);
}

export const CATCH_UP_WORDS: Readonly<Record<ScheduleView["catchUp"], string>> = words.catchUp;

/** The choices besides the goal, such as `model a:b, limit $1.00`; empty: those of the server. */
export function choiceWords({ model, limits = {}, changes }: RunChoices): string {
  const words = limitWords(limits);
  return [
    ...(model === undefined ? [] : [`model ${model}`]),
    ...(words.length === 0 ? [] : [`limit ${words.join(", ")}`]),
    ...(changes === undefined ? [] : [changes === "propose" ? "changes are proposed" : "changes are made"]),
  ].join(", ");
}

/** JSON of a schedule: times are ISO 8601, absent facts are left out. */
export function scheduleDocument(schedule: ScheduleView, now: number): object {
  const { runs, skips, dueAt, pausedAt, createdAt } = schedule;
  return {
    schedule_id: schedule.id,
    principal: schedule.principal,
    name: schedule.name,
    task: schedule.task,
    expression: schedule.expression,
    time_zone: schedule.timeZone,
    reading: expressionWords(schedule.expression),
    catch_up: schedule.catchUp,
    catch_up_limit: schedule.catchUp === "all" ? schedule.catchUpLimit : undefined,
    overlap: schedule.overlap,
    model: schedule.model,
    limits: schedule.limits && limitsDocument(schedule.limits),
    goal: schedule.goal,
    changes: schedule.changes,
    created_at: isoTime(createdAt),
    paused_at: pausedAt === undefined ? undefined : isoTime(pausedAt),
    next: pausedAt === undefined ? [dueAt, ...nextTimes(schedule, Math.max(dueAt, now), 2)].map(isoTime) : [],
    runs: runs.map(({ id, status, createdAt: begun, schedule: { dueAt: due } = {} }) => ({
      run_id: id,
      status,
      due_at: due === undefined ? undefined : isoTime(due),
      created_at: isoTime(begun),
    })),
    skips: skips.map(({ from, to, reason }) => ({ from: isoTime(from), to: isoTime(to), reason })),
  };
}

const NICKNAMES: Readonly<Record<string, string>> = words.cronNicknames;

/** A valid cron expression in words, such as `at 07:00, Monday to Friday`. Rare forms are named by their fields. */
export function expressionWords(expression: string): string {
  const fields = (NICKNAMES[expression.toLowerCase()] ?? expression).split(" ");
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = fields;
  const [onDay, onWeekday] = [any(day), any(weekday)];
  // Either kind of day counts if both are set, unless a `+` requires both.
  const days = [
    onDay !== "*" && dayOfMonth(onDay),
    onWeekday !== "*" && weekdays(onWeekday.replace(/^\+/, "")),
  ]
    .filter(Boolean)
    .join(onWeekday.startsWith("+") ? " if it is also " : " or ");
  const months =
    any(month) === "*"
      ? ""
      : ` in ${listed(month, (value) => named(words.months, value, 1)) ?? `months ${month}`}`;
  const { text, isAllDay } = timeWords(any(minute), any(hour));
  if (days === "" && months === "") return isAllDay ? text : `${text} every day`;
  return `${text}${days === "" ? "" : `, ${days}`}${months}`;
}

/** `?` means the same as `*`. */
const any = (field: string): string => (field === "?" ? "*" : field);

function timeWords(minute: string, hour: string): { text: string; isAllDay: boolean } {
  const [minutes, hours] = [every(minute, "minute", 60), every(hour, "hour", 24)];
  const isAllDay = hours !== undefined;
  const [, first = "", last = ""] = /^(\d+)-(\d+)$/.exec(hour) ?? [];
  const isRange = first !== "";
  if (minutes !== undefined && hour === "*") return { text: minutes, isAllDay };
  if (minutes !== undefined && isRange)
    return { text: `${minutes} from ${pad(first)}:00 to ${pad(last)}:59`, isAllDay };
  if (/^\d+$/.test(minute)) {
    const at = (value: string): string => `${pad(value)}:${pad(minute)}`;
    if (isAllDay) return { text: minute === "0" ? hours : `${hours} at :${pad(minute)}`, isAllDay };
    if (isRange) return { text: `every hour from ${at(first)} to ${at(last)}`, isAllDay };
    if (/^[\d,]+$/.test(hour)) return { text: `at ${listed(hour, at) ?? hour}`, isAllDay };
  }
  const which = minute === "*" ? "every minute" : `at minutes ${minute}`;
  return { text: `${which} of ${hour === "*" ? "every hour" : `hours ${hour}`}`, isAllDay };
}

/** Returns undefined if the intervals differ. */
function every(field: string, unit: string, size: number): string | undefined {
  const count = field === "*" ? 1 : Number(/^\*\/(\d+)$/.exec(field)?.[1] ?? 0);
  if (count === 0 || size % count !== 0) return undefined;
  return count === 1 ? `every ${unit}` : `every ${count} ${unit}s`;
}

function dayOfMonth(field: string): string {
  if (/^l$/i.test(field)) return "on the last day of the month";
  const [, nearest] = /^(\d+)w$/i.exec(field) ?? [];
  if (nearest !== undefined) return `on the working day nearest to day ${nearest} of the month`;
  const every = /^\*\/(\d+)$/.exec(field)?.[1];
  if (every !== undefined) return `every ${every} days of the month`;
  const text = listed(field, (value) => value);
  return `on ${/^\d+$/.test(field) ? "day" : "days"} ${text ?? field} of the month`;
}

function weekdays(field: string): string {
  const [, name = "", number = ""] = /^(\w+)#([1-5l])$/i.exec(field) ?? [];
  const which = /^l$/i.test(number) ? "last" : words.ordinals[Number(number)];
  const known = dayName(name);
  if (known !== undefined && which !== undefined) return `on the ${which} ${known} of the month`;
  return listed(field, dayName) ?? `on weekdays ${field}`;
}

const dayName = (value: string): string | undefined => named(words.days, value, 0);

/** A name by its number, counted from `first`, or by its three first letters. */
const named = (names: readonly string[], value: string, first: number): string | undefined =>
  /^\d+$/.test(value)
    ? names[Number(value) - first]
    : names.find((name) => name.slice(0, 3).toLowerCase() === value.toLowerCase());

const pad = (value: string): string => value.padStart(2, "0");

/** Values and ranges by name: `Monday to Friday`, `07:00 and 19:00`; `undefined`: the field has another form. */
function listed(field: string, nameOf: (value: string) => string | undefined): string | undefined {
  const names = field.split(",").map((part) => {
    const ends = part.split("-").map(nameOf);
    return ends.length > 2 || ends.includes(undefined) ? undefined : ends.join(" to ");
  });
  if (names.includes(undefined)) return undefined;
  return names.length < 2 ? names[0] : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
