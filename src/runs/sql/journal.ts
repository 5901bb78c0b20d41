/** The journals of runs. */
import { byIdentity } from "../../core/by-identity.ts";
import { defined } from "../../core/unknown.ts";
import { toJson } from "../../core/json.ts";
import type { JournalEntry, RunEvent } from "../events.ts";
import { type Lease, LeaseLostError, type RecentEvents } from "../ports.ts";
import { columnValues } from "./columns.ts";
import * as leases from "./leases.ts";
import { type EventRow, NANOS, toEvent } from "./rows.ts";
import { noteSources } from "./rules.ts";
import { type Steps, all, first, insert, send } from "./steps.ts";

type Subject = Pick<EventRow, "kind" | "data">;

/**
 * True if `entry` repeats `latest`, the newest journalled event of the same identity. A call that starts again after
 * its end does not count as a repeat: some providers use a call id twice, and after a crash a call whose end was not
 * checkpointed does run again.
 */
export function isRepeat(entry: JournalEntry, latest: Subject): boolean {
  if (entry.recalled === true) return true;
  return entry.kind === "todos" ? latest.data === toJson(entry.data) : latest.kind === entry.kind;
}

/** The newest event of each identity that was stored under a lease. */
class Known {
  readonly #newest = new Map<string, Subject>();
  /** True if the journal has no other event of this lease's agents. */
  isWhole: boolean;

  constructor({ epoch }: Lease) {
    this.isWhole = epoch === 1;
  }

  find = (identity: string): Subject | undefined => this.#newest.get(identity);

  add(entries: readonly JournalEntry[]): void {
    for (const { identity, kind, data } of entries) {
      // Only the data of todos distinguishes repeats.
      const kept = toJson(kind === "todos" ? data : {});
      if (identity !== undefined) this.#newest.set(identity, { kind, data: kept });
    }
  }
}

export const knownUnder = byIdentity((lease: Lease) => new Known(lease));

/** Adds those of the entries that the journal lacks, and returns them. Throws LeaseLostError without the lease. */
export function* add(lease: Lease, entries: readonly JournalEntry[], now: number): Steps<JournalEntry[]> {
  const known = knownUnder(lease);
  const newest = new Map<string, Subject>();
  const find = (identity: string) => newest.get(identity) ?? known.find(identity);
  const unknown = entries.flatMap(({ identity = [] }) => identity).filter((one) => find(one) === undefined);
  if (!known.isWhole && unknown.length > 0) {
    // Without the hint and CROSS JOIN SQLite walks all events of the run.
    const rows = yield* all<Subject & { identity: string }>(
      `SELECT identity, kind, data FROM json_each(@identities) AS subject CROSS JOIN run_events
       WHERE run_id = @root AND seq = (
         SELECT seq FROM run_events INDEXED BY run_events_identity
         WHERE run_id = @root AND identity = subject.value ORDER BY seq DESC LIMIT 1)`,
      { root: lease.rootId, identities: toJson(unknown) },
    );
    for (const { identity, ...subject } of rows) newest.set(identity, subject);
  }
  const added = entries.flatMap((entry): JournalEntry[] => {
    const { identity = "", kind, data } = entry;
    const latest = find(identity);
    if (latest !== undefined && isRepeat(entry, latest)) return [];
    if (identity !== "") newest.set(identity, { kind, data: toJson(data) });
    // A subagent that was queued has been counted.
    const isCounted = kind === "subagent_started" && latest?.kind === "subagent_queued";
    return isCounted ? [{ ...entry, effect: {} }] : [entry];
  });
  if (added.length === 0) return (yield* leases.held(lease), []);
  // All of it changes nothing without the lease, so that nothing has to be read first.
  const held = { ...leases.leaseValues(lease), run: lease.runId, root: lease.rootId };
  yield* leases.lock(lease);
  yield {
    sql: `UPDATE runs SET last_seq = last_seq + CASE id WHEN @root THEN @added ELSE 0 END,
       updated_at = CASE id WHEN @root THEN @now ELSE updated_at END,
       todos = coalesce(@todos, todos), answer = coalesce(@answer, answer),
       input_tokens = input_tokens + @input, output_tokens = output_tokens + @output,
       cached_input_tokens = cached_input_tokens + @cached, cost_nanos = cost_nanos + @cost,
       unpriced_calls = unpriced_calls + @unpriced, subagents_started = subagents_started + @started,
       subagents_completed = subagents_completed + @completed, subagents_failed = subagents_failed + @failed
       WHERE id IN (@run, @root) AND ${leases.IF_HELD}`,
    values: { ...held, added: added.length, now, ...sumEffects(added) },
    orElse: () => new LeaseLostError(lease.runId),
  };
  const rows = added.map((entry, index) => ({
    later: added.length - index - 1,
    ...columnValues(entry, "agent, kind, data, identity"),
  }));
  yield* send(
    `INSERT INTO run_events (run_id, seq, time, agent, kind, data, identity)
     SELECT runs.id, last_seq - CAST(value ->> 'later' AS INTEGER), @now, value ->> 'agent', value ->> 'kind',
       value ->> 'data', value ->> 'identity'
     FROM runs CROSS JOIN json_rows(@rows) WHERE runs.id = @root AND ${leases.IF_HELD}`,
    { ...held, now, rows: toJson(rows) },
  );
  const read = added.flatMap(({ kind, data }) => (kind === "tool_finished" ? (data.source ?? []) : []));
  yield* noteSources(lease.rootId, new Set(read));
  return added;
}

function sumEffects(entries: readonly JournalEntry[]) {
  const effects = entries.flatMap(({ effect = [] }) => effect);
  const sum = (part: (effect: (typeof effects)[number]) => number | boolean): number =>
    effects.reduce((total, effect) => total + Number(part(effect)), 0);
  const todos = effects.findLast((effect) => effect.todos !== undefined)?.todos;
  return {
    answer: effects.findLast(({ answer }) => answer !== undefined)?.answer ?? null,
    todos: todos === undefined ? null : toJson(todos),
    input: sum(({ usage }) => usage?.inputTokens ?? 0),
    output: sum(({ usage }) => usage?.outputTokens ?? 0),
    cached: sum(({ usage }) => usage?.cachedInputTokens ?? 0),
    cost: sum(({ cost = 0 }) => (cost === "unknown" ? 0 : Math.round(cost * NANOS))),
    unpriced: sum(({ cost }) => cost === "unknown"),
    started: sum(({ subagent }) => subagent === "begun"),
    completed: sum(({ subagent }) => subagent === "completed"),
    failed: sum(({ subagent }) => subagent === "failed"),
  };
}

/** Returns the event's sequence number. Belongs into the transaction of the reported change. */
export function* append(runId: string, entry: JournalEntry, now: number): Steps<number> {
  const next = yield* first<{ last_seq: number }>(
    "UPDATE runs SET last_seq = last_seq + 1, updated_at = @now WHERE id = @id RETURNING last_seq",
    { id: runId, now },
  );
  if (next === undefined) throw new Error(`There is no run ${runId} to write an event of.`);
  const own = { run_id: runId, seq: next.last_seq, time: now };
  yield* insert("run_events", { ...own, ...columnValues(entry, "agent, kind, data, identity") });
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
