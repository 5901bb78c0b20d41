/** The journals of runs. */
import { defined } from "../../core/defined.ts";
import { toJson } from "../../core/json.ts";
import { type JournalEntry, type RunEvent, isRepeat } from "../../runs/events.ts";
import type { RecentEvents } from "../../runs/ports.ts";
import { valuesOf } from "./columns.ts";
import { type EventRow, toEvent } from "./rows.ts";
import { type Steps, all, first, insert } from "./steps.ts";

/** Says if the journal has this already, and the kind of its newest event about the same. */
export function* has(
  runId: string,
  entry: JournalEntry,
): Steps<{ isKnown: boolean; latest?: EventRow["kind"] }> {
  if (entry.identity === undefined) return { isKnown: false };
  // Without the hint SQLite walks the run's events from the end, which gets longer with every one.
  const latest = yield* first<Pick<EventRow, "kind" | "data">>(
    `SELECT kind, data FROM run_events INDEXED BY run_events_identity
     WHERE run_id = @run_id AND identity = @identity ORDER BY seq DESC LIMIT 1`,
    { run_id: runId, identity: entry.identity },
  );
  return latest === undefined
    ? { isKnown: false }
    : { isKnown: isRepeat(entry, latest), latest: latest.kind };
}

/** Gives the event's sequence number. Belongs into the transaction of what the event tells of. */
export function* append(runId: string, entry: JournalEntry, now: number): Steps<number> {
  const next = yield* first<{ last_seq: number }>(
    "UPDATE runs SET last_seq = last_seq + 1, updated_at = @now WHERE id = @id RETURNING last_seq",
    { id: runId, now },
  );
  if (next === undefined) throw new Error(`There is no run ${runId} to write an event of.`);
  const own = { run_id: runId, seq: next.last_seq, time: now };
  yield* insert("run_events", { ...own, ...valuesOf(entry, "agent, kind, data, identity") });
  return next.last_seq;
}

/** Events with `seq > after`, oldest first. */
export function* page(runId: string, after: number, limit: number): Steps<RunEvent[]> {
  const rows = yield* all<EventRow>(
    `SELECT run_id, seq, time, agent, kind, data FROM run_events
     WHERE run_id = @run_id AND seq > @after ORDER BY seq LIMIT @limit`,
    { run_id: runId, after, limit },
  );
  return rows.map(toEvent);
}

/** The newest first. */
export function* recent(
  runId: string,
  { limit, before = Number.MAX_SAFE_INTEGER, agent, kinds }: RecentEvents,
): Steps<RunEvent[]> {
  const wanted = [
    "run_id = @run_id AND seq < @before",
    ...(agent === undefined ? [] : ["agent = @agent"]),
    ...(kinds === undefined ? [] : ["kind IN (SELECT value FROM json_each(@kinds))"]),
  ];
  const chosen = defined({ agent: agent && toJson(agent), kinds: kinds && toJson(kinds) });
  const rows = yield* all<EventRow>(
    `SELECT run_id, seq, time, agent, kind, data FROM run_events
     WHERE ${wanted.join(" AND ")} ORDER BY seq DESC LIMIT @limit`,
    { run_id: runId, before, limit, ...chosen },
  );
  return rows.map(toEvent);
}
