/** Reports the end of a background run to the run that started it. */
import * as journal from "./journal.ts";
import * as messages from "./messages.ts";
import * as models from "./model-requests.ts";
import * as requests from "./requests.ts";
import { defined } from "../../core/unknown.ts";
import { entryOf } from "../events.ts";
import { makeRunnable } from "./leases.ts";
import { type RunRow, toRun } from "./rows.ts";
import { type Steps, change } from "./steps.ts";
import { createHash } from "node:crypto";
import { cutMiddle, oneLine, quotedIn } from "../../core/text.ts";
import { type Run, STATUS_WORDS, endedEarly, isCut } from "../run.ts";

/** Reports the end of a child to its parent, which may continue. Belongs into the transaction that ends the child. */
export function* reportEnd(row: RunRow, now: number): Steps<void> {
  const run = toRun(row);
  const { parent } = run;
  const [self] = parent?.agent ?? [];
  if (parent === undefined || self === undefined) return;
  const { status, report, message } = childReport(run);
  const { callId, name } = self;
  const ended = { kind: "subagent_finished" as const, agent: parent.agent, callId, name, status, report };
  const cancelled = run.status === "cancelled" ? (true as const) : undefined;
  yield* journal.append(parent.runId, entryOf({ ...ended, ...defined({ cancelled }) }), now);
  const column = cancelled ? "cancelled" : status === "success" ? "completed" : "failed";
  const sum = `subagents_${column}`;
  yield* change(`UPDATE runs SET ${sum} = ${sum} + 1 WHERE id = @id`, { id: parent.runId });
  yield* messages.add(parent.runId, { id: run.id, text: message }, undefined, now);
  yield* wake(parent.runId, now);
}

/** Lets a run continue that waits for a message alone: one that waits for a person reads it later. */
export function* wake(runId: string, now: number): Steps<void> {
  const asked = yield* requests.countPending({ root: runId, asker: runId });
  if (asked === 0 && (yield* models.countWaiting(runId)) === 0) yield* makeRunnable(runId, now);
}

/** The id of the run that a call of another one starts: a call that is made again finds it. */
export const childId = (parent: string, call: string): string =>
  `run_${createHash("sha256").update(`${parent} ${call}`).digest("base64url").slice(0, 24)}`;

/** The report of a run that has ended: its answer, or why there is none. `message`: as the agent reads it. */
export function childReport(run: Run) {
  const { id, structured, failure, cancelReason, stopReason, parent } = run;
  const answer = structured === undefined ? (run.answer ?? "") : JSON.stringify(structured);
  const hasAnswer = stopReason === undefined || isCut(stopReason);
  const status: "success" | "error" = run.status === "completed" && hasAnswer ? "success" : "error";
  const reason = failure?.message ?? cancelReason;
  const said = answer === "" ? [] : [reason === undefined ? answer : `What it said before:\n${answer}`];
  const report = [...(reason === undefined ? [] : [reason]), ...said].join("\n\n") || "Task completed";
  const end = hasAnswer ? STATUS_WORDS[run.status] : endedEarly(stopReason);
  const name = parent?.agent.at(-1)?.name ?? "";
  return { status, report, message: quoted({ id, name, end }, cutMiddle(report, 100_000)) };
}

/** The report between marks that it cannot contain: it is material, and no word of the user's. */
const quoted = ({ id, name, end }: Record<"id" | "name" | "end", string>, report: string): string =>
  [
    `The background task ${id} has ended. This is its report, not a message from the user.`,
    `<task_report task_id="${id}" subagent_type=${JSON.stringify(oneLine(name, 100))} status=${JSON.stringify(end)}>`,
    quotedIn(["task_report"], report),
    "</task_report>",
  ].join("\n");
