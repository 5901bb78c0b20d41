import type { Statement } from "better-sqlite3";
import type { Database } from "../../storage/database.ts";
import { AnswerStore } from "./answer-store.ts";
import { ApprovalStore } from "./approval-store.ts";
import { CallStore } from "./call-store.ts";
import { CopyStore } from "./copy-store.ts";
import { EffectStore } from "../effects.ts";
import { EventStore } from "./event-store.ts";
import { parsePoint } from "../fork.ts";
import { decidedEntry } from "../journal.ts";
import { GrantStore } from "./grant-store.ts";
import { LeaseStore } from "./lease-store.ts";
import { MessageStore } from "./message-store.ts";
import { ModelRequestStore } from "./model-request-store.ts";
import { HEAD_COLUMNS, type HeadRow, type RunRow, toRunHead, toRun } from "./rows.ts";
import { type RunHead, type Principal, type Run, breakOff, isFinal } from "../run.ts";
import type { StartRequest } from "../service.ts";
import { StatusStore } from "./status-store.ts";
import { inTransaction } from "./transaction.ts";

export interface NewRun {
  runId: string;
  /** Id of the thread, when the request names none or a point of another. */
  newThreadId: string;
  environment: string;
  now: number;
}

export type Created =
  | { kind: "created" | "existing" | "joined"; run: Run }
  | { kind: "conflict"; run: Run }
  | { kind: "thread_not_found" }
  | { kind: "thread_busy"; run: Run }
  | { kind: "too_many_open"; limit: number }
  | { kind: "copy_given_up" };

type InsertRow = Pick<
  RunRow,
  "id" | "thread_id" | "principal" | "environment" | "idempotency_key" | "task" | "created_at" | "forked_from"
>;

/**
 * Runs as their owners see and change them. Every change is one transaction with its event; when a
 * method returns, it is on disk.
 */
export class RunStore {
  readonly events: EventStore;
  readonly approvals: ApprovalStore;
  readonly leases: LeaseStore;
  readonly status: StatusStore;
  readonly effects: EffectStore;
  readonly messages: MessageStore;
  readonly copies: CopyStore;
  readonly grants: GrantStore;
  readonly answers: AnswerStore;
  readonly models: ModelRequestStore;
  readonly calls: CallStore;
  readonly database: Database;
  readonly changed: (runId: string) => void;
  readonly #insertThread: Statement<[string, string, number]>;
  readonly #insertRun: Statement<InsertRow>;
  readonly #thread: Statement<[string, string], { id: string }>;
  readonly #get: Statement<[string, string], RunRow>;
  readonly #byKey: Statement<[string, string], RunRow>;
  readonly #openInThread: Statement<[string], RunRow>;
  readonly #head: Statement<[string, string], HeadRow>;
  readonly #list: Statement<{ principal: string; before: string | null; limit: number }, HeadRow>;
  readonly #makeRunnable: Statement<{ id: string; now: number }>;
  readonly #hasMoreOpenThan: Statement<[string, number]>;
  readonly #openRuns: number;

  /**
   * `changed` is told of every run that was changed here, after the change is on disk. `openRuns`: how many runs of
   * one principal may be open when another is started.
   */
  constructor(
    database: Database,
    changed: (runId: string) => void,
    { openRuns = Number.MAX_SAFE_INTEGER }: { openRuns?: number | undefined } = {},
  ) {
    this.database = database;
    this.#openRuns = openRuns;
    this.changed = changed;
    this.events = new EventStore(database);
    this.approvals = new ApprovalStore(database);
    this.leases = new LeaseStore(database);
    this.grants = new GrantStore(database);
    this.models = new ModelRequestStore(database);
    this.status = new StatusStore(database, this.approvals, this.grants, this.models);
    this.effects = new EffectStore(database);
    this.messages = new MessageStore(database);
    this.copies = new CopyStore(database);
    this.answers = new AnswerStore(this);
    this.calls = new CallStore(database);
    this.#insertThread = database.prepare("INSERT INTO threads (id, principal, created_at) VALUES (?, ?, ?)");
    this.#insertRun = database.prepare(
      `INSERT INTO runs (id, thread_id, principal, environment, idempotency_key, task, status, created_at,
         updated_at, runnable_since, forked_from)
       VALUES (@id, @thread_id, @principal, @environment, @idempotency_key, @task, 'working', @created_at,
         @created_at, @created_at, @forked_from)`,
    );
    this.#thread = database.prepare("SELECT id FROM threads WHERE id = ? AND principal = ?");
    this.#get = database.prepare("SELECT * FROM runs WHERE id = ? AND principal = ?");
    this.#head = database.prepare(`SELECT ${HEAD_COLUMNS} FROM runs WHERE id = ? AND principal = ?`);
    this.#byKey = database.prepare("SELECT * FROM runs WHERE principal = ? AND idempotency_key = ?");
    this.#openInThread = database.prepare(
      "SELECT * FROM runs WHERE thread_id = ? AND status IN ('working', 'input_required')",
    );
    this.#list = database.prepare(
      `SELECT ${HEAD_COLUMNS} FROM runs WHERE principal = @principal AND number < coalesce(
         (SELECT number FROM runs WHERE id = @before AND principal = @principal), 9223372036854775807)
       ORDER BY number DESC LIMIT @limit`,
    );
    this.#makeRunnable = database.prepare(
      "UPDATE runs SET runnable = 1, runnable_since = @now WHERE id = @id AND runnable = 0",
    );
    this.#hasMoreOpenThan = database.prepare(
      "SELECT 1 FROM runs WHERE principal = ? AND ended_at IS NULL LIMIT 1 OFFSET ?",
    );
  }

  get(principal: Principal, runId: string): Run | undefined {
    const row = this.#get.get(runId, principal);
    return row === undefined ? undefined : toRun(row);
  }

  head(principal: Principal, runId: string): RunHead | undefined {
    const row = this.#head.get(runId, principal);
    return row === undefined ? undefined : toRunHead(row);
  }

  /** Newest first; an unknown `before` counts as none. */
  list(principal: Principal, limit: number, before?: string): RunHead[] {
    return this.#list.all({ principal, before: before ?? null, limit }).map(toRunHead);
  }

  /** The run that the principal started with this key. */
  startedWith(principal: Principal, key: string | undefined): Run | undefined {
    const row = key === undefined ? undefined : this.#byKey.get(principal, key);
    return row && toRun(row);
  }

  /** What a start with this request would meet, without changing anything; `undefined`: nothing in the way. */
  obstacle(
    principal: Principal,
    request: StartRequest,
    environment: string,
  ): Exclude<Created, { kind: "created" }> | undefined {
    const { task, threadId, idempotencyKey } = request;
    const same = this.startedWith(principal, idempotencyKey);
    if (same !== undefined) {
      const repeated = same.task === task && [undefined, same.threadId, same.forkedFrom].includes(threadId);
      return { kind: repeated ? "existing" : "conflict", run: same };
    }
    const sent = idempotencyKey === undefined ? undefined : this.messages.byKey(principal, idempotencyKey);
    if (sent !== undefined) {
      const run = this.#known(principal, sent.runId);
      return { kind: sent.text === task && run.threadId === threadId ? "existing" : "conflict", run };
    }
    const unanswered = this.calls.unanswered(principal, request, environment);
    if (unanswered !== undefined) return { kind: "joined", run: unanswered };
    if (threadId === undefined) return this.#crowd(principal);
    const point = parsePoint(threadId);
    if (this.#thread.get(point?.threadId ?? threadId, principal) === undefined) {
      return { kind: "thread_not_found" };
    }
    const busy = point === undefined ? this.#openInThread.get(threadId) : undefined;
    return busy === undefined ? this.#crowd(principal) : { kind: "thread_busy", run: toRun(busy) };
  }

  create(principal: Principal, request: StartRequest, fresh: NewRun): Created {
    const created = inTransaction(this.database, (): Created => {
      const obstacle = this.obstacle(principal, request, fresh.environment);
      if (obstacle !== undefined) return obstacle;
      const named = request.threadId;
      const isFork = named !== undefined && parsePoint(named) !== undefined;
      if (isFork && !this.copies.take(fresh.newThreadId)) return { kind: "copy_given_up" };
      const threadId = isFork ? fresh.newThreadId : (named ?? fresh.newThreadId);
      if (threadId !== named) this.#insertThread.run(threadId, principal, fresh.now);
      this.#insertRun.run({
        id: fresh.runId,
        thread_id: threadId,
        principal,
        environment: fresh.environment,
        idempotency_key: request.idempotencyKey ?? null,
        task: request.task,
        created_at: fresh.now,
        forked_from: isFork ? named : null,
      });
      this.calls.ask(fresh.runId, request);
      const data = isFork ? { forkedFrom: named } : {};
      this.events.append(fresh.runId, { kind: "run_started", agent: [], data }, fresh.now);
      return { kind: "created", run: this.#known(principal, fresh.runId) };
    });
    if (created.kind === "created") this.changed(fresh.runId);
    return created;
  }

  /** `ended`: it was over before, and nothing changed. Whoever works on it keeps its lease until it has stopped. */
  cancel(
    principal: Principal,
    runId: string,
    reason: string,
    now: number,
  ): { run: Run; ended: boolean } | undefined {
    const cancelled = inTransaction(this.database, () => {
      const run = this.get(principal, runId);
      if (run === undefined || isFinal(run.status)) return run && { run, ended: true };
      this.withdraw(runId, "end of the run", now);
      this.events.append(runId, { kind: "run_cancelled", agent: [], data: { reason } }, now);
      this.status.end(runId, breakOff(run.status, "cancelled"), { now, cancelReason: reason });
      return { run: this.#known(principal, runId), ended: false };
    });
    if (cancelled?.ended === false) this.changed(runId);
    return cancelled;
  }

  /**
   * Withdraws what is pending, but for the interrupts that are still open, with an event for each. Belongs
   * inside the transaction of what made it needless.
   */
  withdraw(runId: string, by: string, now: number, openInterrupts?: readonly string[]): void {
    for (const approval of this.approvals.withdraw(runId, now, openInterrupts)) {
      this.events.append(runId, decidedEntry(approval, "withdrawn", by), now);
    }
  }

  /** Lets a run that waits be worked on; belongs inside the transaction of what it waited for. */
  makeRunnable(runId: string, now: number): void {
    this.#makeRunnable.run({ id: runId, now });
  }

  #crowd(principal: Principal): { kind: "too_many_open"; limit: number } | undefined {
    const isFull = this.#hasMoreOpenThan.get(principal, this.#openRuns - 1) !== undefined;
    return isFull ? { kind: "too_many_open", limit: this.#openRuns } : undefined;
  }

  #known(principal: Principal, runId: string): Run {
    const run = this.get(principal, runId);
    if (run === undefined) throw new Error(`Run ${runId} is missing.`);
    return run;
  }
}
