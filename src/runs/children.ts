/** The report of a background subagent to the agent that started it. */
import { createHash } from "node:crypto";
import { cutMiddle, oneLine, quotedIn } from "../core/text.ts";
import { type Run, STATUS_WORDS, endedEarly, isCut } from "./run.ts";

/** The id of the run that a call of another one starts: a call that is made again finds it. */
export const childId = (parent: string, call: string): string =>
  `run_${createHash("sha256").update(`${parent} ${call}`).digest("base64url").slice(0, 24)}`;

/** Longest report that comes as a message; the end of the run has the whole. */
const MOST = 100_000;

export interface ChildReport {
  status: "success" | "error";
  /** Its answer, or why there is none. */
  report: string;
  /** The report as a message that the agent reads. */
  message: string;
}

/** The report of a run that has ended. */
export function childReport(run: Run): ChildReport {
  const { id, structured, failure, cancelReason, stopReason, parent } = run;
  const answer = structured === undefined ? (run.answer ?? "") : JSON.stringify(structured);
  const hasAnswer = stopReason === undefined || isCut(stopReason);
  const status = run.status === "completed" && hasAnswer ? "success" : "error";
  const reason = failure?.message ?? cancelReason;
  const said = answer === "" ? [] : [reason === undefined ? answer : `What it said before:\n${answer}`];
  const report = [...(reason === undefined ? [] : [reason]), ...said].join("\n\n") || "Task completed";
  const end = hasAnswer ? STATUS_WORDS[run.status] : endedEarly(stopReason);
  const name = parent?.agent.at(-1)?.name ?? "";
  return { status, report, message: quoted({ id, name, end }, cutMiddle(report, MOST)) };
}

/** The report between marks that it cannot contain: it is material, and no word of the user's. */
const quoted = ({ id, name, end }: Record<"id" | "name" | "end", string>, report: string): string =>
  [
    `The background task ${id} has ended. This is its report, not a message from the user.`,
    `<task_report task_id="${id}" subagent_type=${JSON.stringify(oneLine(name, 100))} status=${JSON.stringify(end)}>`,
    quotedIn(["task_report"], report),
    "</task_report>",
  ].join("\n");
