import { createHash } from "node:crypto";
import type { Statement } from "better-sqlite3";
import type {
  AgentInput,
  AgentPath,
  EffectLog,
  HitlRequest,
  PendingInterrupt,
  SamplingReply,
  SamplingRequest,
  TracePlace,
} from "../../../agent/agent.ts";
import type { Clock } from "../../../core/clock.ts";
import {
  type JournalEntry,
  answerExcerpt,
  approvalId,
  approvalsOf,
  decidedEntry,
  requestedEntry,
} from "../../../runs/events.ts";
import type {
  ClaimRequest,
  Delivered,
  Lease,
  PauseOutcome,
  Paused,
  RunResult,
  WorkLog,
  WorkOptions,
  RunInbox,
} from "../../../runs/ports.ts";
import { type FailureDetails, breakOff, isWithin, sameAs } from "../../../runs/run.ts";
import type { Todo } from "../../../tools/tool.ts";
import { type Json, toJson } from "../../../core/json.ts";
import { durably, inQuickTransaction, inTransaction } from "../commit.ts";
import { whenUnlocked } from "../database.ts";
import type { ApprovalStore } from "./approvals.ts";
import { effectLog } from "./effects.ts";
import { type ClaimedRow, type OpenRunRow, crashFailure } from "./leases.ts";
import { StoredInbox } from "./requests.ts";
import type { RunStore } from "./run-store.ts";

/** Whether these are the very questions that are stored under this interrupt. */
export function isRepeated(
  approvals: ApprovalStore,
  runId: string,
  { id, request }: PendingInterrupt,
): boolean {
  return request.actionRequests.every(({ name, args }, index) => {
    const known = approvals.get(runId, approvalId(id, index));
    return known?.tool === name && toJson(known.args) === toJson(args);
  });
}

/**
 * Stores what an interrupt asks, and decides what a person has approved for the whole run; what is known
 * already stays as it is. Belongs inside a transaction.
 */
export function addApprovals(
  { approvals, events, grants }: RunStore,
  runId: string,
  agent: AgentPath,
  { id, request }: PendingInterrupt,
  { now, deadlineMs }: { now: number; deadlineMs: number | undefined },
): void {
  for (const approval of approvalsOf(runId, id, agent, request, { now, deadlineMs })) {
    if (!approvals.add(approval)) continue;
    events.append(runId, requestedEntry(approval), now);
    const grant = grants.find(approval);
    if (grant === undefined) continue;
    const by = sameAs(grant.approvalId);
    approvals.decide(approval, { type: "approve" }, by, now);
    events.append(runId, decidedEntry(approval, "approve", by), now);
  }
}

/**
 * Withdraws what a subagent that has ended, and those that it started, have asked; false: there was nothing.
 * Belongs inside a transaction.
 */
export function withdrawOf(store: RunStore, runId: string, agent: AgentPath, now: number): boolean {
  if (store.approvals.pendingOf(runId) === 0) return false;
  const all = store.approvals.ofRun(runId);
  const others = all.filter((approval) => !isWithin(agent, approval.agent));
  if (others.length === all.length) return false;
  const open = others.map(({ interruptId }) => interruptId);
  store.withdraw(runId, "agent", now, open);
  return true;
}

interface EffectRow {
  id: string;
  todos: Json<Todo[]> | null;
  answer: string | null;
  input: number;
  output: number;
  cached: number;
}

/**
 * What the holder of a lease reads and writes of its run, each in one transaction. All throw
 * LeaseLostError when the run has ended or was claimed by someone else: then nothing was written.
 */
export class WorkStore implements WorkLog {
  readonly #store: RunStore;
  readonly #changed: (runId: string) => void;
  readonly #syncCheckpoints: () => Promise<void>;
  readonly #deadlineMs: number | undefined;
  readonly #effect: Statement<EffectRow>;
  readonly #handOver: Statement<[string]>;
  readonly #wait: Statement<[string]>;
  readonly #parked: Statement<[string]>;
  readonly #trace: Statement<[string], { traceparent: string | null }>;
  readonly #beginTrace: Statement<[string, string]>;

  constructor(
    store: RunStore,
    changed: (runId: string) => void,
    { syncCheckpoints, deadlineMs }: WorkOptions = {},
  ) {
    this.#store = store;
    this.#changed = changed;
    this.#syncCheckpoints = syncCheckpoints ?? (async () => undefined);
    this.#deadlineMs = deadlineMs;
    this.#effect = store.database.prepare(
      `UPDATE runs SET todos = coalesce(@todos, todos), answer = coalesce(@answer, answer),
         input_tokens = input_tokens + @input, output_tokens = output_tokens + @output,
         cached_input_tokens = cached_input_tokens + @cached WHERE id = @id`,
    );
    this.#handOver = store.database.prepare("UPDATE runs SET input_handed_over = 1 WHERE id = ?");
    this.#parked = store.database.prepare("UPDATE runs SET in_flight = 2 WHERE id = ?");
    this.#trace = store.database.prepare("SELECT traceparent FROM runs WHERE id = ?");
    this.#beginTrace = store.database.prepare(
      "UPDATE runs SET traceparent = ? WHERE id = ? AND traceparent IS NULL",
    );
    this.#wait = store.database.prepare("UPDATE runs SET runnable = 0, in_flight = 0 WHERE id = ?");
  }

  /**
   * Claims the run whose turn it is; journals when it was broken off before. Runs that keep bringing
   * their server down are ended on the way.
   */
  claimNext(request: ClaimRequest, crashLimit = Number.POSITIVE_INFINITY): ClaimedRow | undefined {
    while (this.#store.leases.anyWaiting(request.environment)) {
      const claim = inQuickTransaction(this.#store.database, () => {
        const next = this.#store.leases.claimNext(request);
        if (next === undefined || next.before.in_flight === 0) return next;
        this.#store.events.append(next.before.id, { kind: "run_resumed", agent: [], data: {} }, request.now);
        return next;
      });
      if (claim === undefined) return undefined;
      if (claim.before.in_flight !== 0) this.#changed(claim.before.id);
      if (claim.crashes < crashLimit) return claim;
      const failure = crashFailure(claim.crashes);
      inTransaction(this.#store.database, () => this.#end(claim.lease, failure, request.now));
      this.#changed(claim.lease.runId);
    }
    return undefined;
  }

  /** Journals one event with its effect on the row; a repeat changes nothing. */
  record(lease: Lease, entry: JournalEntry, now: number): Promise<void> {
    return this.#note(lease, (row) => {
      if (this.#store.events.has(lease.runId, entry)) return;
      this.#store.events.append(lease.runId, entry, now);
      if (entry.kind === "subagent_finished" && withdrawOf(this.#store, row.id, entry.agent, now)) {
        this.#store.status.settle(row.id, row.status, now);
      }
      const { effect } = entry;
      if (effect === undefined) return;
      this.#effect.run({
        id: lease.runId,
        todos: effect.todos === undefined ? null : toJson(effect.todos),
        answer: effect.answer ?? null,
        input: effect.usage?.inputTokens ?? 0,
        output: effect.usage?.outputTokens ?? 0,
        cached: effect.usage?.cachedInputTokens ?? 0,
      });
    });
  }

  /** Stores what a call asks for; what is known already, decided or not, stays as it is. */
  requestApprovals(
    lease: Lease,
    agent: AgentPath,
    interruptId: string,
    request: HitlRequest,
    now: number,
  ): Promise<void> {
    return this.#write(lease, (row) => {
      this.#ask({ id: interruptId, request }, row.id, agent, now);
      this.#store.status.settle(row.id, row.status, now);
    });
  }

  /** The calls with outside effects of the run; `onFailure` is told when they cannot be stored. */
  effectLog(lease: Lease, clock: Clock, onFailure: (error: unknown) => void): EffectLog {
    const syncCheckpoints = this.#syncCheckpoints;
    return effectLog(lease, { queue: this, store: this.#store, syncCheckpoints, clock, onFailure });
  }

  /** What to give the agent next. */
  async nextInput(lease: Lease): Promise<AgentInput> {
    const row = this.#store.leases.held(lease);
    const answers = this.#store.approvals.undelivered(lease.runId);
    if (Object.keys(answers).length > 0) return { kind: "resume", answers };
    if (row.input_handed_over === 1) return { kind: "continue" };
    const { status, messages } = this.#store;
    return {
      kind: "task",
      task: row.task,
      after: status.endBefore(row.id),
      told: messages.beforeRun(row.id),
    };
  }

  /** Keeps a run's spans in one trace, whichever process works on it. */
  tracePlace(runId: string): TracePlace {
    return {
      before: () => this.#trace.get(runId)?.traceparent ?? undefined,
      began: async (traceparent) =>
        void (await whenUnlocked(this, () => this.#beginTrace.run(traceparent, runId))),
    };
  }

  /** Whether people have answered what the agent was not resumed with. */
  async hasAnswers(runId: string): Promise<boolean> {
    return Object.keys(this.#store.approvals.undelivered(runId)).length > 0;
  }

  /** The agent has the task in its state, which is on the disk first: from here on it continues. */
  async markHandedOver(lease: Lease): Promise<void> {
    await this.#syncCheckpoints();
    return this.#note(lease, () => this.#handOver.run(lease.runId));
  }

  /** The agent waits for people; `delivered` are the interrupts whose answers it was resumed with. */
  pause(
    lease: Lease,
    { interrupts: open, modelAwaited }: Paused,
    delivered: readonly Delivered[],
    now: number,
  ): Promise<PauseOutcome> {
    return this.#write(lease, (row): PauseOutcome => {
      const { approvals, leases, models, status } = this.#store;
      // After a crash an answer can come before its question is in a checkpoint: then the agent asks the
      // same again, and has not taken the answer in.
      const untaken = new Set(
        open.filter((asked) => isRepeated(approvals, row.id, asked)).map(({ id }) => id),
      );
      const taken = delivered.filter(({ interruptId, again }) => again || !untaken.has(interruptId));
      approvals.markDelivered(
        row.id,
        taken.map(({ interruptId }) => interruptId),
      );
      for (const asked of open) this.#ask(asked, row.id, asked.request.agent ?? [], now);
      const ids = open.map(({ id }) => id);
      this.#store.withdraw(row.id, "agent", now, ids);
      const settled = status.settle(row.id, row.status, now);
      if (Object.keys(approvals.undelivered(row.id)).length > 0) return "answered";
      if (modelAwaited && models.waitingOf(row.id) === 0) return "answered";
      if (settled === "working") return "stuck";
      this.#wait.run(row.id);
      leases.release(lease);
      return "waiting";
    });
  }

  /** What the run is told; what the agent has read of it is in its thread. */
  inbox(lease: Lease): RunInbox {
    return new StoredInbox(this.#store.messages, lease.runId);
  }

  /** False, and nothing is changed, when the run was told something that the agent has not read. */
  complete(lease: Lease, result: RunResult, inbox: RunInbox, now: number): Promise<boolean> {
    const { answer, structured, stopReason } = result;
    return this.#write(lease, (row) => {
      if (this.#store.messages.hasNewerThan(row.id, inbox.read)) return false;
      this.#store.withdraw(row.id, "agent", now);
      this.#store.models.forget(row.id);
      this.#store.status.settle(row.id, row.status, now);
      const data = { answer: answerExcerpt(answer), ...(stopReason === undefined ? {} : { stopReason }) };
      this.#store.events.append(row.id, { kind: "run_completed", agent: [], data }, now);
      const ended = { now, answer, structured, ...(stopReason === undefined ? {} : { stopReason }) };
      this.#store.status.end(row.id, { from: "working", to: "completed" }, ended);
      this.#store.leases.release(lease);
      return true;
    });
  }

  /** The id is made of what is asked: a call that is made again after a crash or a pause finds its reply. */
  async askModel(lease: Lease, request: SamplingRequest, now: number) {
    const id = createHash("sha256").update(toJson(request)).digest("base64url");
    const reply = await this.#unlessReplied(lease, id, "model_requested", now, () =>
      this.#store.models.ask(lease.runId, id, request, now),
    );
    return reply === undefined ? { id } : { id, reply };
  }

  awaitModel(lease: Lease, callId: string, now: number): Promise<SamplingReply | undefined> {
    return this.#unlessReplied(lease, callId, "model_awaited", now, () =>
      this.#store.models.wait(lease.runId, callId),
    );
  }

  fail(lease: Lease, failure: FailureDetails, now: number): Promise<void> {
    return this.#write(lease, () => this.#end(lease, failure, now));
  }

  /** Breaks off without ending; `stopped`: nothing works on it here any more, so that others may at once. */
  async park(lease: Lease, stopped: boolean, now: number): Promise<void> {
    await this.#syncCheckpoints(); // who goes on is to find what the agent stored last
    await this.#note(lease, (row) => {
      this.#parked.run(row.id);
      this.#store.events.append(row.id, { kind: "run_parked", agent: [], data: {} }, now);
      if (stopped) this.#store.leases.release(lease);
      else this.#store.leases.fenceOff(lease);
    });
  }

  /** Gives the reply of a model call, or does `work` with an event and the status that follows from it. */
  #unlessReplied(
    lease: Lease,
    callId: string,
    kind: "model_requested" | "model_awaited",
    now: number,
    work: () => void,
  ): Promise<SamplingReply | undefined> {
    return this.#write(lease, ({ id, status }) => {
      const reply = this.#store.models.replyTo(id, callId);
      if (reply !== undefined) return reply;
      work();
      this.#store.events.append(id, { kind, agent: [], data: {} }, now);
      this.#store.status.settle(id, status, now);
      return undefined;
    });
  }

  /** Belongs inside a transaction. */
  #end(lease: Lease, failure: FailureDetails, now: number): void {
    const row = this.#store.leases.held(lease);
    this.#store.withdraw(row.id, "end of the run", now);
    this.#store.events.append(row.id, { kind: "run_failed", agent: [], data: failure }, now);
    this.#store.status.end(row.id, breakOff(row.status, "failed"), { now, failure });
    this.#store.leases.release(lease);
  }

  #ask(interrupt: PendingInterrupt, runId: string, agent: AgentPath, now: number): void {
    addApprovals(this.#store, runId, agent, interrupt, { now, deadlineMs: this.#deadlineMs });
  }

  /** For what someone is told or acts on afterwards. */
  async #write<T>(lease: Lease, work: (row: OpenRunRow) => T): Promise<T> {
    await this.#syncCheckpoints();
    const { database, leases } = this.#store;
    const write = (): T => {
      const result = inTransaction(database, () => work(leases.held(lease)));
      this.#changed(lease.runId);
      return result;
    };
    return durably(database, write, this);
  }

  /** For progress, which a run that goes on after a power cut tells again. */
  #note(lease: Lease, work: (row: OpenRunRow) => unknown): Promise<void> {
    const { database, leases } = this.#store;
    return whenUnlocked(this, () => {
      inQuickTransaction(database, () => work(leases.held(lease)));
      this.#changed(lease.runId);
    });
  }
}
