import type { Statement } from "better-sqlite3";
import type { Decision, SamplingReply } from "../../../agent/agent.ts";
import { decidedEntry, messageEntry } from "../../../runs/events.ts";
import {
  type Approval,
  DEADLINE,
  type PersonDecision,
  type Principal,
  type Run,
  type RunHead,
  breakOff,
  isFinal,
  parsePoint,
  sameAs,
} from "../../../runs/run.ts";
import type {
  AppliedAnswer,
  Created,
  DecidedCall,
  NewMessage,
  NewRun,
  Obstacle,
  Sent,
  SignedAnswer,
  StartRequest,
} from "../../../runs/ports.ts";
import { inTransaction } from "../commit.ts";
import type { Database } from "../database.ts";
import { ApprovalStore, GrantStore } from "./approvals.ts";
import { EffectStore } from "./effects.ts";
import { EventStore, HEAD_COLUMNS, type HeadRow, type RunRow, toRun, toRunHead } from "./events.ts";
import { LeaseStore } from "./leases.ts";
import { CallStore, MessageStore, ModelRequestStore } from "./requests.ts";
import { StatusStore } from "./status.ts";

/**
 * What people answer, and clients in their place, of all runs. Each answer is one transaction with all that
 * follows from it.
 */
export class AnswerStore {
  readonly #store: RunStore;
  readonly #use: Statement<{ id: string; run_id: string; now: number }>;

  constructor(store: RunStore) {
    this.#store = store;
    this.#use = store.database.prepare(
      `INSERT INTO used_answers (id, run_id, used_at) VALUES (@id, @run_id, @now)
       ON CONFLICT (id) DO NOTHING`,
    );
  }

  /**
   * Stores a person's decision; the run can go on once its interrupt is decided whole. An answer that comes
   * after the deadline is not taken: the deadline decides. `undefined`: it was decided or withdrawn before,
   * and nothing changed.
   */
  decide(call: DecidedCall, by: string, now: number): Approval | undefined {
    const decided = inTransaction(this.#store.database, () => this.#settle(call, by, now));
    if (decided !== undefined) this.#store.changed(call.approval.runId);
    return decided;
  }

  /** Denies what nobody decided in time, in all runs; gives what it denied. */
  expire(now: number): Approval[] {
    return this.#store.approvals
      .expired(now)
      .flatMap((approval) => this.decide({ approval, decision: TOO_LATE }, DEADLINE, now) ?? []);
  }

  /** Stores a reply to a model call, if it is the first; the run can go on. */
  reply(run: Run, callId: string, reply: SamplingReply, now: number): boolean {
    const isStored = inTransaction(this.#store.database, () => this.#reply(run, callId, reply, now));
    if (isStored) this.#store.changed(run.id);
    return isStored;
  }

  /**
   * Uses up a signed answer and does all that it says. `undefined`, and nothing of it counts, when it was used
   * before, by whatever process, or there is a problem with it; the journal of a run that is not over tells of
   * that.
   */
  use(run: Run, answer: SignedAnswer, now: number): AppliedAnswer | undefined {
    const { events, database } = this.#store;
    const settled = inTransaction(database, (): AppliedAnswer | undefined => {
      const reason = answer.problem ?? (this.#takes(answer.id, run.id, now) ? undefined : "replayed");
      if (reason === undefined) {
        return {
          decided: answer.decisions.map((call) => this.#settle(call, answer.by, now)),
          replied: answer.replies.map(({ callId, reply }) => this.#reply(run, callId, reply, now)),
        };
      }
      if (this.#isOpen(run)) {
        events.append(run.id, { kind: "answer_refused", agent: [], data: { reason } }, now);
      }
      return undefined;
    });
    this.#store.changed(run.id);
    return settled;
  }

  #takes(id: string, runId: string, now: number): boolean {
    return this.#use.run({ id, run_id: runId, now }).changes === 1;
  }

  #isOpen({ principal, id }: Run): boolean {
    const run = this.#store.get(principal, id);
    return run !== undefined && !isFinal(run.status);
  }

  #settle({ approval, decision }: DecidedCall, by: string, now: number): Approval | undefined {
    const isSettled = isExpired(approval, now)
      ? this.#settleWith(approval, TOO_LATE, DEADLINE, now)
      : this.#settleWith(approval, decision, by, now);
    return isSettled ? this.#store.approvals.get(approval.runId, approval.id) : undefined;
  }

  /** False when it was not pending any more. */
  #settleWith(approval: Approval, decision: PersonDecision, by: string, now: number): boolean {
    const { approvals, events, status } = this.#store;
    const { runId, interruptId } = approval;
    const isForAll = decision.type === "approve_same";
    if (!approvals.decide(approval, isForAll ? APPROVED : decision, by, now)) return false;
    events.append(runId, decidedEntry(approval, decision.type, by), now);
    status.settleOpen(runId, now);
    if (Object.hasOwn(approvals.undelivered(runId), interruptId)) this.#store.makeRunnable(runId, now);
    if (isForAll) this.#grant(approval, by, now);
    return true;
  }

  /** Lets calls that count as the same go ahead: those that wait already, and those to come. */
  #grant(approval: Approval, by: string, now: number): void {
    const { approvals, grants } = this.#store;
    grants.add(approval, by, now);
    for (const other of approvals.ofRun(approval.runId)) {
      if (other.status !== "pending" || isExpired(other, now) || !grants.find(other)) continue;
      if (other.same?.key === approval.same?.key) this.#settleWith(other, APPROVED, sameAs(approval.id), now);
    }
  }

  #reply(run: Run, callId: string, reply: SamplingReply, now: number): boolean {
    const { models, status } = this.#store;
    const known = this.#store.get(run.principal, run.id);
    if (known === undefined || isFinal(known.status)) return false;
    if (!models.answer(run.id, callId, reply)) return false;
    status.settle(run.id, known.status, now);
    this.#store.makeRunnable(run.id, now);
    return true;
  }
}

const APPROVED: Decision = { type: "approve" };

const isExpired = ({ expiresAt = Infinity }: Approval, now: number): boolean => now >= expiresAt;

/** What the model is told in the place of the call's result. */
const TOO_LATE: Decision = {
  type: "reject",
  expired: true,
  message:
    "Not run: the deadline for a person's decision passed, so the call was denied. Nobody looked at it. " +
    "Do what is possible without it, and say in your answer what is left undone.",
};

/**
 * Threads that are being made as copies of others. Their checkpoints are in another file, so the note is
 * here before they are, until the thread is in use or given up.
 */
export class CopyStore {
  readonly #begin: Statement<{ id: string; now: number }>;
  readonly #take: Statement<[string]>;
  readonly #abandoned: Statement<[number], string>;

  constructor(database: Database) {
    this.#begin = database.prepare("INSERT INTO thread_copies (id, begun_at) VALUES (@id, @now)");
    this.#take = database.prepare("DELETE FROM thread_copies WHERE id = ?");
    this.#abandoned = database
      .prepare<[number], string>("DELETE FROM thread_copies WHERE begun_at < ? RETURNING id")
      .pluck();
  }

  begin(id: string, now: number): void {
    this.#begin.run({ id, now });
  }

  /** False when the copy was given up meanwhile. Belongs inside the transaction that puts it to use. */
  take(id: string): boolean {
    return this.#take.run(id).changes === 1;
  }

  /** Gives up copies begun before a time; their checkpoints are to be deleted. */
  giveUp(before: number): string[] {
    return this.#abandoned.all(before);
  }
}

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

  /** `changed` is told of every run that was changed here, after the change is on disk. */
  constructor(database: Database, changed: (runId: string) => void) {
    this.database = database;
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
    { environment, openRuns }: Pick<NewRun, "environment" | "openRuns">,
  ): Obstacle | undefined {
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
    if (threadId === undefined) return this.#crowd(principal, openRuns);
    const point = parsePoint(threadId);
    if (this.#thread.get(point?.threadId ?? threadId, principal) === undefined) {
      return { kind: "thread_not_found" };
    }
    const busy = point === undefined ? this.#openInThread.get(threadId) : undefined;
    return busy === undefined ? this.#crowd(principal, openRuns) : { kind: "thread_busy", run: toRun(busy) };
  }

  create(principal: Principal, request: StartRequest, fresh: NewRun): Created {
    const created = inTransaction(this.database, (): Created => {
      const obstacle = this.obstacle(principal, request, fresh);
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

  /** Stores a message for a run that is not over, for its agent to read before it next asks its model. */
  send(principal: Principal, runId: string, { id, text, idempotencyKey, call, now }: NewMessage): Sent {
    const sent = inTransaction(this.database, (): Sent => {
      const run = this.get(principal, runId);
      if (run === undefined) return { kind: "not_found" };
      const before =
        idempotencyKey === undefined ? undefined : this.messages.byKey(principal, idempotencyKey);
      if (before?.runId === runId && before.text === text) return { kind: "repeated", run };
      const other = before?.runId ?? this.startedWith(principal, idempotencyKey)?.id;
      if (other !== undefined) return { kind: "conflict", runId: other };
      if (isFinal(run.status)) return { kind: "ended", run };
      this.messages.add(runId, { id, text }, idempotencyKey, now);
      this.events.append(runId, messageEntry(id, text), now);
      return { kind: "sent", run: this.#known(principal, runId) };
    });
    if (call !== undefined && (sent.kind === "sent" || sent.kind === "repeated")) this.calls.ask(runId, call);
    if (sent.kind === "sent") this.changed(runId);
    return sent;
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

  #crowd(principal: Principal, limit = Number.MAX_SAFE_INTEGER): Obstacle | undefined {
    const isFull = this.#hasMoreOpenThan.get(principal, limit - 1) !== undefined;
    return isFull ? { kind: "too_many_open", limit } : undefined;
  }

  #known(principal: Principal, runId: string): Run {
    const run = this.get(principal, runId);
    if (run === undefined) throw new Error(`Run ${runId} is missing.`);
    return run;
  }
}
