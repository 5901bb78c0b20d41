/** Loads the data for the screen of schedules, and carries out its forms. */
import { defined } from "../../core/unknown.ts";
import { timeZone as serverZone } from "../../core/clock.ts";
import { nextTimes, readRule } from "../../runs/cron.ts";
import { CATCH_UP } from "../../runs/schedule.ts";
import { operatorMark, runPath, schedulePath } from "../contracts/viewer.ts";
import { type RefusedSchedule, type ScheduleDraft, renderSchedules } from "../views/room/schedules.ts";
import { expressionWords } from "../views/schedule-words.ts";
import { fieldsOf, readChoices } from "./start-form.ts";
import { type Picture, type ScreenContext, livePicture, readinessFor, waitingFor } from "./screen-context.ts";

/** A form that was not taken, with the fields that were sent. */
export interface WrongSchedule extends RefusedSchedule {
  draft?: ScheduleDraft;
  /** The schedule that was to be changed. */
  edited?: string;
}

export async function schedulesScreen(
  context: ScreenContext,
  query: URLSearchParams,
  refused?: WrongSchedule,
): Promise<Picture> {
  const { runs, session, folderOf, settings } = context;
  const [found, readiness, waiting] = await Promise.all([
    runs.schedules.list(),
    readinessFor(context),
    waitingFor(context),
  ]);
  const folders = found.map((one) => folderOf?.(one));
  const isOfMany = new Set(folders).size > 1;
  const schedules = found.map((one, at) => ({ ...one, folder: isOfMany ? folders[at] : undefined }));
  const edited = schedules.find(({ id }) => id === (refused?.edited ?? query.get("edit")));
  const own = edited && { ...edited, catchUpLimit: String(edited.catchUpLimit), choices: fieldsOf(edited) };
  const draft = refused?.draft ?? readDraft(query, 200, own);
  const screen = { session, schedules, edited, draft, folder: settings.folder, readiness, refused };
  const about = { title: "Schedules", place: "schedules", waiting } as const;
  return livePicture(context, about, (now) => {
    const { expression, timeZone } = draft;
    const read = readRule({ expression, timeZone }, now);
    if (!read.ok) return renderSchedules({ ...screen, preview: { problem: read.message }, now });
    const { rule } = read;
    const words = expressionWords(rule.expression);
    const preview = { words, timeZone: rule.timeZone, times: nextTimes(rule, now, 3) };
    return renderSchedules({ ...screen, preview, now });
  });
}

const suggested = (): ScheduleDraft => ({
  task: "",
  expression: "0 7 * * 1-5",
  timeZone: serverZone(),
  name: "",
  catchUp: "one",
  catchUpLimit: "10",
  overlap: false,
  choices: new URLSearchParams(),
});

/** The fields of a form, each up to `limit` characters; those that it has not are as in `otherwise`. */
function readDraft(given: URLSearchParams, limit: number, otherwise = suggested()): ScheduleDraft {
  const text = (name: keyof ScheduleDraft): string =>
    given.get(name)?.slice(0, limit) ?? String(otherwise[name]);
  return {
    task: text("task"),
    expression: text("expression"),
    timeZone: text("timeZone"),
    name: text("name"),
    catchUp: CATCH_UP.find((one) => one === text("catchUp")) ?? "one",
    catchUpLimit: text("catchUpLimit"),
    // A form that was sent leaves out a box that is not checked.
    overlap: given.has("overlap") || (!given.has("expression") && otherwise.overlap),
    choices: given.has("catchUp") ? given : otherwise.choices,
  };
}

/** Adds a schedule, or changes the one sent with the form. Returns the refused input, if any. */
export async function saveFrom(
  { runs, session }: ScreenContext,
  form: URLSearchParams,
): Promise<WrongSchedule | undefined> {
  const draft = readDraft(form, Infinity);
  const edited = form.get("edit");
  const refused = { draft, isOfForm: true, ...(edited === null ? {} : { edited }) };
  const { choices, ...rest } = draft;
  const read = readChoices(choices);
  if (!read.ok) return { ...refused, problem: read.message, field: "limits" };
  const limit = draft.catchUpLimit.trim();
  const fields = {
    ...rest,
    // An empty field withdraws the previous choice.
    model: "",
    limits: {},
    goal: [],
    changes: "" as const,
    ...read.choices,
    ...defined({ folder: choices.get("folder") || undefined }),
    ...operatorMark(session),
    task: draft.task.replaceAll("\r\n", "\n"),
    catchUpLimit: /^\d+$/.test(limit) ? Number(limit) : Number.NaN,
  };
  const saved = await (edited === null ? runs.schedules.add(fields) : runs.schedules.edit(edited, fields));
  if (saved.ok) return undefined;
  return { ...refused, problem: saved.message, field: "field" in saved ? saved.field : undefined };
}

export const CHANGES = ["pause", "resume", "remove", "run"] as const;

/** Changes one schedule, and returns the address to show next, or the refused input. */
export async function changeFrom(
  { runs }: ScreenContext,
  form: URLSearchParams,
  change: (typeof CHANGES)[number],
): Promise<WrongSchedule | string> {
  const id = form.get("schedule") ?? "";
  if (change === "remove") {
    await runs.schedules.remove(id);
    return schedulePath();
  }
  if (change === "run") {
    const started = await runs.schedules.runNow(id);
    return started.ok ? runPath(started.run.id) : { id, problem: started.message };
  }
  const changed = await (change === "pause" ? runs.schedules.pause(id) : runs.schedules.resume(id));
  return changed.ok ? schedulePath(id) : { id, problem: changed.message };
}
