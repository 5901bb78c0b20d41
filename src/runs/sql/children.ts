/** Runs that the agent of another run started in the background: its children. */
import { memoized } from "../../core/concurrency.ts";
import type {
  AgentPath,
  ChildRun,
  ChildRuns,
  InboxMessage,
  NewChild,
  SharedBudget,
  Spent,
} from "../../agent/agent.ts";
import { byIdentity } from "../../core/by-identity.ts";
import type { Clock } from "../../core/clock.ts";
import { defined } from "../../core/unknown.ts";
import { toJson } from "../../core/json.ts";
import { oneLine } from "../../core/text.ts";
import { childId, wake } from "./child-reports.ts";
import { entryOf, messageEntry, stepOf } from "../events.ts";
import type { Lease } from "../ports.ts";
import { type Principal, breakOff, isFinal } from "../run.ts";
import * as journal from "./journal.ts";
import * as leases from "./leases.ts";
import * as messages from "./messages.ts";
import * as requests from "./requests.ts";
import { NANOS, type RunRow, askerOf, toRun } from "./rows.ts";
import * as status from "./status.ts";
import { type Engine, type Steps, all, change, exists, first, insert, send } from "./steps.ts";
import { addThread, beginCopy, begunAt, takeCopy } from "./threads.ts";

/** Most children of a run that are open at a time. */
const MOST_OPEN = 32;

const OPEN_CHILDREN = "FROM runs WHERE parent_id = @parent AND ended_at IS NULL";

export const hasOpenChildren = (parent: string): Steps<boolean> =>
  exists(`SELECT id ${OPEN_CHILDREN} LIMIT 1`, { parent });

/** Cancels the open children of a run that ends; returns their ids. Their questions are withdrawn with its own. */
export function* cancelChildren(parent: string, reason: string, now: number): Steps<string[]> {
  const open = yield* all<leases.OpenRunRow>(`SELECT * ${OPEN_CHILDREN} ORDER BY number`, { parent });
  for (const row of open) {
    const ending = { now, cancelReason: reason, isSilent: true as const };
    yield* status.end(row.id, breakOff(row.status, "cancelled"), ending);
  }
  return open.map(({ id }) => id);
}

/** Everything that a child gets from the run that starts it. */
function* startChild(
  parent: leases.OpenRunRow,
  child: NewChild,
  now: number,
): Steps<RunRow | "too_many" | "no_thread"> {
  const { id: parentId, principal } = parent;
  const known = yield* findChild(parentId, { call: child.call });
  if (known !== undefined) return known;
  const open = yield* all(`SELECT id ${OPEN_CHILDREN} LIMIT ${MOST_OPEN}`, { parent: parentId });
  if (open.length === MOST_OPEN) return "too_many";
  if (!(yield* takeCopy(principal, child.threadId))) return "no_thread";
  yield* addThread(principal, child.threadId, now);
  const { name, title, description } = child;
  const id = childId(parentId, child.call);
  const agent: AgentPath = [{ callId: id, name, task: title }];
  const { environment, model, limits } = parent;
  const own = { parent_id: parentId, parent_call: child.call, agent: toJson(agent) };
  const given = { id, thread_id: child.threadId, principal, environment, task: description, model, limits };
  yield* insert("runs", { ...given, ...own, ...begunAt(now) });
  const started = { kind: "subagent_started" as const, agent, callId: id, name, background: true as const };
  yield* journal.append(parentId, entryOf({ ...started, description: oneLine(description, 300) }), now);
  yield* change("UPDATE runs SET subagents_started = subagents_started + 1 WHERE id = @id", { id: parentId });
  const made = yield* findChild(parentId, { id });
  if (made === undefined) throw new Error(`The background task ${id} is missing.`);
  return made;
}

function findChild(parent: string, which: { call: string } | { id: string }, lock = " FOR UPDATE") {
  const condition = "call" in which ? "parent_call = @call" : "id = @id";
  return first<RunRow>(`SELECT * FROM runs WHERE parent_id = @parent AND ${condition}${lock}`, {
    parent,
    ...which,
  });
}

/** Sends a message to a child, unless it has ended or got it before; returns the child's state then. */
function* tell(parent: string, id: string, message: InboxMessage, now: number): Steps<ChildRun | undefined> {
  const row = yield* findChild(parent, { id });
  if (row === undefined) return undefined;
  if (!isFinal(row.status) && !(yield* messages.has(id, message.id))) {
    yield* messages.add(id, message, undefined, now);
    yield* journal.append(parent, messageEntry(message.id, message.text, toRun(row).parent?.agent), now);
    yield* wake(id, now);
  }
  return yield* view(row);
}

/** Cancels a child, unless it has ended; returns its earlier state. */
function* cancel(parent: string, id: string, reason: string, now: number): Steps<ChildRun | undefined> {
  const row = yield* findChild(parent, { id });
  if (row === undefined) return undefined;
  const seen = yield* view(row);
  if (isFinal(row.status)) return seen;
  yield* requests.withdraw(askerOf(row), "end of the run", now);
  yield* status.updateOpen(parent, now);
  yield* status.end(id, breakOff(row.status, "cancelled"), { now, cancelReason: reason });
  return seen;
}

/** A child as its parent's agent sees it, with its newest step. */
function* view(row: RunRow): Steps<ChildRun> {
  const { id, threadId, task: description, status: now, createdAt: startedAt, endedAt, parent } = toRun(row);
  const agent = parent?.agent ?? [];
  const [newest] = yield* journal.recent(parent?.runId ?? id, { limit: 1, agent, kinds: STEP_KINDS });
  const name = agent.at(-1)?.name ?? "";
  const step = (newest && stepOf(newest)) ?? "";
  return { id, name, description, status: now, threadId, startedAt, ...defined({ endedAt }), step };
}

const STEP_KINDS = ["tool_started", "model_called", "model_retry", "warning"] as const;

/**
 * Returns the use of the other runs in the tree, and their reserved tokens. The row of the run at the top counts all
 * of it, and the others their own.
 */
function* useElsewhere({ runId: id, rootId: root }: Lease): Steps<Spent & { reserved: number }> {
  const sign =
    id === root
      ? "CASE WHEN id = @id THEN 0 ELSE 1 END"
      : "CASE id WHEN @root THEN 1 WHEN @id THEN -1 ELSE 0 END";
  // Postgres returns sums as texts.
  const use = yield* first<Record<"tokens" | "nanos" | "reserved", number | string | null>>(
    `SELECT sum((input_tokens + output_tokens) * ${sign}) AS tokens, sum(cost_nanos * ${sign}) AS nanos,
       sum(CASE WHEN id <> @id AND lease_owner IS NOT NULL THEN reserved_tokens ELSE 0 END) AS reserved
     FROM runs WHERE id = @root OR parent_id = @root`,
    { id, root },
  );
  const { tokens = 0, nanos = 0, reserved = 0 } = use ?? {};
  return { tokens: Number(tokens), costUsd: Number(nanos) / NANOS, reserved: Number(reserved) };
}

/** Reserves tokens for a run, unless they do not fit. The lock of the run at the top lets one run do so at a time. */
function* reserve(lease: Lease, tokens: number, fits: Parameters<SharedBudget["reserve"]>[1]) {
  yield* leases.heldToChange(lease);
  const { reserved, ...others } = yield* useElsewhere(lease);
  if (!fits(others, reserved)) return false;
  yield* send("UPDATE runs SET reserved_tokens = @tokens WHERE id = @id", { id: lease.runId, tokens });
  return true;
}

/** `hasOthers`: true if other runs share the budget of a run. A run that nobody worked on before has no children. */
const familyUnder = byIdentity(({ runId, rootId, epoch }: Lease): { hasOthers?: () => Promise<boolean> } =>
  runId === rootId && epoch > 1 ? {} : { hasOthers: async () => runId !== rootId },
);

export function storedChildren(
  lease: Lease,
  context: {
    engine: Engine;
    /** Carries out work under the lease of the parent, and makes it durable. */
    write: <T>(work: (row: leases.OpenRunRow) => Steps<T>) => Promise<T>;
    /** Called with a run that others may work on now. */
    changed: (runId: string) => void;
    clock: Clock;
    newThreadId: () => string;
  },
): ChildRuns {
  const { principal, runId } = lease;
  const { engine, write, changed, clock, newThreadId } = context;
  const known = familyUnder(lease);
  const sql = "SELECT id FROM runs WHERE parent_id = @id LIMIT 1";
  known.hasOthers ??= memoized(() => engine.read(() => exists(sql, { id: runId })));
  const hasOthers = (): Promise<boolean> | undefined => known.hasOthers?.();
  return {
    find: (which) =>
      engine.read(function* () {
        const row = yield* findChild(runId, which, "");
        return row && (yield* view(row));
      }),
    hasOpen: () => engine.read(() => hasOpenChildren(runId)),
    newThread: async () => {
      const id = newThreadId();
      // Lost in a power cut, it leaves a thread that `runs prune --orphans` finds.
      await engine.note(() => beginCopy(principal, id, clock()));
      return id;
    },
    start: async (child) => {
      known.hasOthers = async () => true;
      const started = await write(function* (row) {
        const made = yield* startChild(row, child, clock());
        return typeof made === "string" ? made : yield* view(made);
      });
      if (started === "no_thread") throw new Error("The thread of a background task was given up.");
      if (started !== "too_many") changed(started.id);
      return started;
    },
    list: () => engine.read(() => listChildren(principal, runId)),
    tell: async (id, message) => {
      const told = await write(({ id: parent }) => tell(parent, id, message, clock()));
      changed(id);
      return told;
    },
    cancel: async (id, reason) => {
      const before = await write(({ id: parent }) => cancel(parent, id, reason, clock()));
      changed(id);
      return before;
    },
    budget: {
      spent: async () =>
        (await hasOthers()) ? engine.read(() => useElsewhere(lease)) : { tokens: 0, costUsd: 0 },
      reserve: async (tokens, fits) =>
        !(await hasOthers()) || engine.note(() => reserve(lease, tokens, fits)),
    },
  };
}

/** In the order in which they were started. */
export function* listChildren(principal: Principal, parent: string): Steps<ChildRun[]> {
  const found: ChildRun[] = [];
  const sql = "SELECT * FROM runs WHERE parent_id = @parent AND principal = @principal ORDER BY number";
  const rows = yield* all<RunRow>(sql, { parent, principal });
  for (const row of rows) found.push(yield* view(row));
  return found;
}
