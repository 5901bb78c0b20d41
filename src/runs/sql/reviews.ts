/** Reviews of runs that propose their changes. */
import { reviewedData } from "../review-events.ts";
import type { ReviewOutcome, ReviewRecord } from "../proposals.ts";
import { fromJson, toJson } from "../../core/json.ts";
import type { Principal } from "../run.ts";
import { messageEntry } from "../events.ts";
import * as journal from "./journal.ts";
import type { OpenRunRow } from "./leases.ts";
import * as messages from "./messages.ts";
import { type RequestRow, type RunRow, toRequest } from "./rows.ts";
import { type Engine, type Steps, all, change, exists, first } from "./steps.ts";

export const storedReviews = (
  engine: Engine,
  runId: string,
  write: <T>(work: (row: OpenRunRow) => Steps<T>) => Promise<T>,
) => ({
  /** The oldest one that was answered and not carried out. */
  answered: () =>
    engine.read(function* () {
      const row = yield* first<RequestRow>(
        `SELECT * FROM questions WHERE run_id = @run_id AND kind = 'review' AND delivered = 0
             AND status IN ('approved', 'rejected') ORDER BY number LIMIT 1`,
        { run_id: runId },
      );
      const request = row && toRequest(row);
      return request?.kind === "review" ? request : undefined;
    }),
  /** Stores the outcome, with the message about it to the agent. */
  settle: ({ id }: { id: string }, outcome: ReviewOutcome, { told, now }: { told?: string; now: number }) =>
    write(function* (row) {
      const settled = "UPDATE questions SET delivered = 1 WHERE run_id = @run_id AND id = @id";
      yield* change(settled, { run_id: runId, id });
      const entry = { kind: "changes_reviewed" as const, agent: [], data: reviewedData(outcome) };
      yield* journal.append(runId, entry, now);
      const isDone = told === undefined && outcome.kind === "done";
      yield* noteUnapplied(runId, isDone ? outcome.record.unapplied : null);
      if (outcome.kind === "done") yield* noteApplied(runId, outcome.record);
      if (told === undefined) return;
      const message = { id: `told_${id}`, text: told };
      yield* messages.add(row.id, message, undefined, now);
      yield* journal.append(runId, messageEntry(message.id, told), now);
    }),
  /** Stores how many files are proposed and not applied. */
  note: (unapplied: number) => write(() => noteUnapplied(runId, unapplied)),
});

function* noteUnapplied(runId: string, unapplied: number | null): Steps<void> {
  yield* change("UPDATE runs SET unapplied = @unapplied WHERE id = @id", { id: runId, unapplied });
  if (unapplied !== null) yield* noteInThread(runId, unapplied);
}

/** The runs of a thread have one copy, so that others of them have no other files left than this one. */
const noteInThread = (runId: string, unapplied: number): Steps<number> =>
  change(
    `UPDATE runs SET unapplied = @unapplied WHERE unapplied > 0 AND id <> @id
       AND thread_id = (SELECT thread_id FROM runs WHERE id = @id)`,
    { id: runId, unapplied },
  );

/** Adds the files applied in the folder to those of earlier reviews of the run. */
function* noteApplied(runId: string, { applied, partly, branch }: ReviewRecord): Steps<void> {
  if (branch !== undefined) return;
  const row = yield* first<Pick<RunRow, "applied">>("SELECT applied FROM runs WHERE id = @id", { id: runId });
  const before = row?.applied ? Object.entries(fromJson(row.applied)) : [];
  const now = [...partly.map((path) => [path, "part"]), ...applied.map((path) => [path, "whole"])];
  const all = toJson(Object.fromEntries([...before, ...now]));
  yield* change("UPDATE runs SET applied = @all WHERE id = @id", { id: runId, all });
}

const ASKED = "SELECT id FROM questions WHERE run_id = @run AND id = @id";

/** Stores the number of unapplied files of a finished run, and the applied changes. `null`: not counted yet. */
export function* noteAfterEnd(
  principal: Principal,
  runId: string,
  unapplied: number | null,
  records: readonly ReviewRecord[] = [],
): Steps<void> {
  const sql = "UPDATE runs SET unapplied = @unapplied WHERE id = @id AND principal = @principal";
  if ((yield* change(sql, { id: runId, principal, unapplied })) === 0) return;
  if (unapplied !== null) yield* noteInThread(runId, unapplied);
  for (const record of records)
    if (record.run !== undefined || (yield* exists(ASKED, { id: record.id, run: runId })))
      yield* noteApplied(record.run ?? runId, record);
}

/** Some runs of an environment that ended with changes which nobody has counted. */
export const uncounted = (environment: string): Steps<{ id: string; principal: Principal }[]> =>
  all(
    `SELECT id, principal FROM runs WHERE changes = 'propose' AND unapplied IS NULL AND ended_at > 0
       AND environment = @environment ORDER BY number LIMIT 20`,
    { environment },
  );
