/** Runs that the agent of another run started in the background: its children. */
import type { AgentPath, ChildRun, ChildRuns, InboxMessage, NewChild, Spent } from "../../agent/agent.ts";
import type { Clock } from "../../core/clock.ts";
import { toJson } from "../../core/json.ts";
import { oneLine } from "../../core/text.ts";
import { childId } from "../../runs/children.ts";
import { entryOf, messageEntry, stepOf } from "../../runs/events.ts";
import type { Lease } from "../../runs/ports.ts";
import { type Principal, breakOff, isFinal } from "../../runs/run.ts";
import { wake } from "./child-reports.ts";
import * as journal from "./journal.ts";
import type { OpenRunRow } from "./leases.ts";
import * as messages from "./messages.ts";
import { NANOS, type RunRow, askerOf, toRun } from "./rows.ts";
import * as status from "./status.ts";
import { type Engine, type Steps, all, change, first } from "./steps.ts";
import { addThread, beginCopy, takeCopy } from "./threads.ts";
import { withdraw } from "./withdraw.ts";

/** Most children of a run that are open at a time. */
const MOST_OPEN = 32;

const OPEN_CHILDREN = "FROM runs WHERE parent_id = @parent AND ended_at IS NULL";

export function* hasOpenChildren(parent: string): Steps<boolean> {
  return (yield* first(`SELECT id ${OPEN_CHILDREN} LIMIT 1`, { parent })) !== undefined;
}

/**
 * Cancels all open children of a run that ends, and gives their ids. Their questions are withdrawn with those of the
 * run.
 */
export function* cancelChildren(parent: string, reason: string, now: number): Steps<string[]> {
  const open = yield* all<OpenRunRow>(`SELECT * ${OPEN_CHILDREN} ORDER BY number`, { parent });
  for (const row of open) {
    const ending = { now, cancelReason: reason, isSilent: true as const };
    yield* status.end(row.id, breakOff(row.status, "cancelled"), ending);
  }
  return open.map(({ id }) => id);
}

/** Everything that a child gets from the run that starts it. */
function* start(parent: OpenRunRow, child: NewChild, now: number): Steps<RunRow | "too_many" | "no_thread"> {
  const { id: parentId, principal } = parent;
  const known = yield* childOf(parentId, "parent_call = @call", { call: child.call });
  if (known !== undefined) return known;
  const open = yield* all(`SELECT id ${OPEN_CHILDREN} LIMIT ${MOST_OPEN}`, { parent: parentId });
  if (open.length === MOST_OPEN) return "too_many";
  if (!(yield* takeCopy(principal, child.threadId))) return "no_thread";
  yield* addThread(principal, child.threadId, now);
  const { name, title, description } = child;
  const id = childId(parentId, child.call);
  const agent: AgentPath = [{ callId: id, name, task: title }];
  yield* change(
    `INSERT INTO runs (id, thread_id, principal, environment, task, status, created_at, updated_at, runnable_since,
       model, limits, parent_id, parent_call, agent)
     VALUES (@id, @thread_id, @principal, @environment, @task, 'working', @now, @now, @now,
       @model, @limits, @parent_id, @call, @agent)`,
    {
      id,
      thread_id: child.threadId,
      principal,
      environment: parent.environment,
      task: description,
      now,
      model: parent.model,
      limits: parent.limits,
      parent_id: parentId,
      call: child.call,
      agent: toJson(agent),
    },
  );
  const started = {
    agent,
    callId: id,
    name,
    description: oneLine(description, 300),
    background: true as const,
  };
  yield* journal.append(parentId, entryOf({ kind: "subagent_started", ...started }), now);
  yield* change("UPDATE runs SET subagents_started = subagents_started + 1 WHERE id = @id", { id: parentId });
  return yield* existing(parentId, id);
}

function* childOf(
  parent: string,
  condition: string,
  values: Readonly<Record<string, string>>,
): Steps<RunRow | undefined> {
  const sql = `SELECT * FROM runs WHERE parent_id = @parent AND ${condition} FOR UPDATE`;
  return yield* first<RunRow>(sql, { parent, ...values });
}

function* existing(parent: string, id: string): Steps<RunRow> {
  const row = yield* childOf(parent, "id = @id", { id });
  if (row === undefined) throw new Error(`The background task ${id} is missing.`);
  return row;
}

/** A child as its parent's agent sees it, with its newest step. */
function* view(row: RunRow): Steps<ChildRun> {
  const { id, threadId, task, status: now, createdAt, endedAt, parent } = toRun(row);
  const agent = parent?.agent ?? [];
  const [newest] = yield* journal.recent(parent?.runId ?? id, { limit: 1, agent, kinds: STEPS });
  return {
    id,
    name: agent.at(-1)?.name ?? "",
    description: task,
    status: now,
    threadId,
    startedAt: createdAt,
    ...(endedAt === undefined ? {} : { endedAt }),
    step: (newest && stepOf(newest)) ?? "",
  };
}

const STEPS = ["tool_started", "model_called", "model_retry", "warning"] as const;

/** Postgres gives sums as texts. */
interface UseRow {
  tokens: number | string | null;
  nanos: number | string | null;
}

/** Use of the rest of the tree. The row of the run at the top counts all of it, and the others their own. */
function* spentElsewhere({ runId, rootId }: Lease): Steps<Spent> {
  const use = "sum(input_tokens + output_tokens) AS tokens, sum(cost_nanos) AS nanos FROM runs";
  const isRoot = runId === rootId;
  const others = yield* first<UseRow>(
    isRoot ? `SELECT ${use} WHERE parent_id = @root` : `SELECT ${use} WHERE id = @root`,
    { root: rootId },
  );
  const own = isRoot ? undefined : yield* first<UseRow>(`SELECT ${use} WHERE id = @id`, { id: runId });
  const less = (key: keyof UseRow): number => Number(others?.[key] ?? 0) - Number(own?.[key] ?? 0);
  return { tokens: less("tokens"), costUsd: less("nanos") / NANOS };
}

interface ChildContext {
  engine: Engine;
  /** Carries out work under the lease of the parent, and makes it durable. */
  write: <T>(work: (row: OpenRunRow) => Steps<T>) => Promise<T>;
  /** Is told of a run that others may work on now. */
  changed: (runId: string) => void;
  clock: Clock;
  newThreadId: () => string;
}

/** The children of a run that is at work. */
export class StoredChildren implements ChildRuns {
  readonly #lease: Lease;
  readonly #context: ChildContext;

  constructor(lease: Lease, context: ChildContext) {
    this.#lease = lease;
    this.#context = context;
  }

  find(which: { call: string } | { id: string }): Promise<ChildRun | undefined> {
    const { runId: parent } = this.#lease;
    const condition = "call" in which ? "parent_call = @call" : "id = @id";
    return this.#context.engine.read(function* () {
      const sql = `SELECT * FROM runs WHERE parent_id = @parent AND ${condition}`;
      const row = yield* first<RunRow>(sql, { parent, ...which });
      return row && (yield* view(row));
    });
  }

  hasOpen(): Promise<boolean> {
    return this.#context.engine.read(() => hasOpenChildren(this.#lease.runId));
  }

  async newThread(): Promise<string> {
    const { engine, clock, newThreadId } = this.#context;
    const id = newThreadId();
    // Lost in a power cut, it leaves a thread that `runs prune --orphans` finds.
    await engine.note(() => beginCopy(this.#lease.principal, id, clock()));
    return id;
  }

  async start(child: NewChild): Promise<ChildRun | "too_many"> {
    const { write, clock, changed } = this.#context;
    const started = await write(function* (row) {
      const made = yield* start(row, child, clock());
      return typeof made === "string" ? made : yield* view(made);
    });
    if (started === "no_thread") throw new Error("The thread of a background task was given up.");
    if (started !== "too_many") changed(started.id);
    return started;
  }

  list(): Promise<ChildRun[]> {
    const { principal, runId } = this.#lease;
    return this.#context.engine.read(() => listChildren(principal, runId));
  }

  async tell(id: string, message: InboxMessage): Promise<ChildRun | undefined> {
    const { write, clock, changed } = this.#context;
    const told = await write(function* ({ id: parent }) {
      const row = yield* childOf(parent, "id = @id", { id });
      if (row === undefined) return undefined;
      if (!isFinal(row.status) && !(yield* messages.has(id, message.id))) {
        const now = clock();
        yield* messages.add(id, message, undefined, now);
        yield* journal.append(parent, messageEntry(message.id, message.text, toRun(row).parent?.agent), now);
        yield* wake(id, now);
      }
      return yield* view(row);
    });
    changed(id);
    return told;
  }

  async cancel(id: string, reason: string): Promise<ChildRun | undefined> {
    const { write, clock, changed } = this.#context;
    const before = await write(function* ({ id: parent }) {
      const row = yield* childOf(parent, "id = @id", { id });
      if (row === undefined) return undefined;
      const seen = yield* view(row);
      if (isFinal(row.status)) return seen;
      const now = clock();
      yield* withdraw(askerOf(row), "end of the run", now);
      yield* status.updateOpen(parent, now);
      yield* status.end(id, breakOff(row.status, "cancelled"), { now, cancelReason: reason });
      return seen;
    });
    changed(id);
    return before;
  }

  spentElsewhere(): Promise<Spent> {
    return this.#context.engine.read(() => spentElsewhere(this.#lease));
  }
}

/** In the order in which they were started. */
export function* listChildren(principal: Principal, parent: string): Steps<ChildRun[]> {
  const found: ChildRun[] = [];
  const sql = "SELECT * FROM runs WHERE parent_id = @parent AND principal = @principal ORDER BY number";
  const rows = yield* all<RunRow>(sql, { parent, principal });
  for (const row of rows) found.push(yield* view(row));
  return found;
}
