/** Reads what the screen of schedules shows, and carries out its forms. */
import { timeZone as serverZone } from "../../core/clock.ts";
import { nextTimes, readRule } from "../../runs/cron.ts";
import { CATCH_UP, type CatchUp } from "../../runs/schedule.ts";
import { runPath, schedulePath } from "../contracts/viewer.ts";
import {
  type Preview,
  type RefusedSchedule,
  type ScheduleDraft,
  renderSchedules,
} from "../views/room/schedules.ts";
import { expressionWords } from "../views/schedule-words.ts";
import { type Picture, type ScreenContext, waitingFor } from "./screens.ts";

/** Characters of a field that an address brings. */
const MAX_GIVEN = 200;

/** A form that was not taken, with the fields of a new schedule. */
export interface WrongSchedule extends RefusedSchedule {
  draft?: ScheduleDraft;
}

export async function schedulesScreen(
  context: ScreenContext,
  query: URLSearchParams,
  refused?: WrongSchedule,
): Promise<Picture> {
  const { runs, session, folderOf, settings } = context;
  const [found, waiting] = await Promise.all([runs.schedules(session.principal), waitingFor(context)]);
  const draft = refused?.draft ?? draftOf(query);
  const folders = found.map((one) => folderOf?.(one));
  const isOfMany = new Set(folders).size > 1;
  const schedules = found.map((one, at) => ({ ...one, folder: isOfMany ? folders[at] : undefined }));
  return (now) => ({
    title: "Schedules",
    place: "schedules",
    waiting,
    isLive: true,
    session,
    main: renderSchedules({
      session,
      schedules,
      draft,
      preview: previewOf(draft, now),
      folder: settings.folder,
      refused,
      now,
    }),
  });
}

function previewOf({ expression, timeZone }: ScheduleDraft, now: number): Preview {
  const read = readRule({ expression, timeZone }, now);
  if (!read.ok) return { problem: read.message };
  const { rule } = read;
  return {
    words: expressionWords(rule.expression),
    timeZone: rule.timeZone,
    times: nextTimes(rule, now, 3),
  };
}

/** The fields of a form; those that it has not are as the page suggests. */
function draftOf(given: URLSearchParams, limit = MAX_GIVEN): ScheduleDraft {
  const text = (name: string, otherwise: string): string => given.get(name)?.slice(0, limit) ?? otherwise;
  const catchUp = text("catchUp", "one");
  return {
    task: text("task", ""),
    expression: text("expression", "0 7 * * 1-5"),
    timeZone: text("timeZone", serverZone()),
    name: text("name", ""),
    catchUp: isCatchUp(catchUp) ? catchUp : "one",
    catchUpLimit: text("catchUpLimit", "10"),
    overlap: given.has("overlap"),
  };
}

const isCatchUp = (text: string): text is CatchUp => CATCH_UP.some((one) => one === text);

/** Adds what was sent; what it gives was not taken. */
export async function addFrom(
  { runs, session }: ScreenContext,
  form: URLSearchParams,
): Promise<WrongSchedule | undefined> {
  const draft = draftOf(form, Infinity);
  const limit = draft.catchUpLimit.trim();
  const added = await runs.addSchedule(session.principal, {
    ...draft,
    task: draft.task.replaceAll("\r\n", "\n"),
    catchUpLimit: /^\d+$/.test(limit) ? Number(limit) : Number.NaN,
  });
  if (added.ok) return undefined;
  const field = "field" in added ? added.field : undefined;
  return { draft, problem: added.message, field };
}

export const CHANGES = ["pause", "resume", "remove", "run"] as const;

/** Changes one schedule, and gives the address to show next; or what was not taken. */
export async function changeFrom(
  { runs, session: { principal } }: ScreenContext,
  form: URLSearchParams,
  change: (typeof CHANGES)[number],
): Promise<WrongSchedule | string> {
  const id = form.get("schedule") ?? "";
  if (change === "remove") {
    await runs.removeSchedule(principal, id);
    return schedulePath();
  }
  if (change === "run") {
    const started = await runs.runScheduleNow(principal, id);
    return started.ok ? runPath(started.run.id) : { id, problem: started.message };
  }
  const changed = await (change === "pause"
    ? runs.pauseSchedule(principal, id)
    : runs.resumeSchedule(principal, id));
  return changed.ok ? schedulePath(id) : { id, problem: changed.message };
}
