/** Reports the end of a background run to the run that started it. */
import { defined } from "../../core/defined.ts";
import { entryOf } from "../../runs/events.ts";
import { childReport } from "../../runs/children.ts";
import * as journal from "./journal.ts";
import { makeRunnable } from "./leases.ts";
import * as messages from "./messages.ts";
import * as models from "./model-requests.ts";
import * as requests from "./requests.ts";
import { type RunRow, toRun } from "./rows.ts";
import { type Steps, change } from "./steps.ts";

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
