/** Reads and writes of a run by the holder of its lease. */
import { createHash } from "node:crypto";
import type {
  AgentEvent,
  AgentInput,
  AgentPath,
  PendingInterrupt,
  SamplingReply,
  SamplingRequest,
} from "../../agent/agent.ts";
import { type Clock, shortTime } from "../../core/clock.ts";
import { defined } from "../../core/unknown.ts";
import { toJson } from "../../core/json.ts";
import { answeredEntry, callRequests, questionRequest, requestedEntry } from "../asked-events.ts";
import { type JournalEntry, answerExcerpt } from "../events.ts";
import type { NewsRule } from "../news.ts";
import type { Delivered, Lease, RunInbox, RunListener, RunResult, WorkOptions } from "../ports.ts";
import type { FailureDetails, RunRequest } from "../run.ts";
import { DEADLINE, breakOff, isCut, isWithin } from "../run.ts";
import type { Answer, AskedContent } from "../../tools/request.ts";
import { cancelChildren, hasOpenChildren, storedChildren } from "./children.ts";
import { storedEffects } from "./effects.ts";
import * as journal from "./journal.ts";
import * as leases from "./leases.ts";
import * as messages from "./messages.ts";
import * as models from "./model-requests.ts";
import * as news from "./news.ts";
import * as requests from "./requests.ts";
import { storedReviews } from "./reviews.ts";
import { approvedBefore } from "./rules.ts";
import { type Asker, askerOf, rootOf, treeOf } from "./rows.ts";
import * as status from "./status.ts";
import { type Engine, type Steps, change, first } from "./steps.ts";

/** True if exactly these questions are stored under this interrupt. */
function* isRepeated(root: string, { id, request }: PendingInterrupt): Steps<boolean> {
  for (const [index, { name, args }] of request.actionRequests.entries()) {
    const known = yield* requests.get(root, `${id}:${index}`);
    if (known?.kind !== "approval" || known.tool !== name || toJson(known.args) !== toJson(args))
      return false;
  }
  return true;
}

/** Withdraws the requests of an ended subagent and of those that it started. Returns false if there were none. */
function* withdrawOf(whose: Asker, agent: AgentPath, now: number): Steps<boolean> {
  if ((yield* requests.countPending(whose)) === 0) return false;
  const { root } = whose;
  const asked = yield* requests.ofRun(root);
  const others = asked.filter((request) => !isWithin(agent, request.agent));
  if (others.length === asked.length) return false;
  const kept = others.map(({ interruptId }) => interruptId);
  yield* requests.withdraw(whose, "agent", now, kept);
  return true;
}

/** Ends a run as failed, and returns the runs that end with it. Belongs into a transaction. */
export function* fail(
  lease: Lease,
  failure: FailureDetails,
  { now, rules }: { now: number; rules: readonly NewsRule[] },
): Steps<string[]> {
  let cancelled: string[] = [];
  const row = yield* leases.heldToChange(lease);
  yield* requests.withdraw(treeOf(row), "end of the run", now);
  if (row.parent_id === null) {
    cancelled = yield* cancelChildren(row.id, "The run that started it failed.", now);
    yield* news.append(row, { kind: "run_failed", agent: [], data: failure }, { now, rules });
  }
  yield* status.end(row.id, breakOff(row.status, "failed"), { now, failure });
  yield* leases.release(lease);
  return cancelled;
}

/** A run that starts a minute or more after its schedule's time. */
const LATE_MS = 60_000;

type Work<T> = (row: leases.OpenRunRow) => Steps<T>;

/** Access to a run under its lease, each method in one transaction. Throws LeaseLostError without the lease. */
export class StoredWork {
  readonly #engine: Engine;
  readonly #changed: RunListener["changed"];
  readonly #news: news.StoredNews;
  readonly #syncCheckpoints: () => Promise<void>;
  readonly #options: WorkOptions;

  /** `changed` is called for every change, after it is stored. */
  constructor(
    engine: Engine,
    changed: RunListener["changed"],
    posted: news.StoredNews,
    options: WorkOptions,
  ) {
    this.#engine = engine;
    this.#changed = changed;
    this.#news = posted;
    this.#syncCheckpoints = options.syncCheckpoints ?? (async () => undefined);
    this.#options = options;
  }

  /** Journals events with their effects on the run; a repeat changes nothing. Durable with the next other method. */
  record = async (lease: Lease, entries: readonly JournalEntry[], now: number): Promise<void> => {
    if (entries.length === 0) return;
    const known = journal.knownUnder(lease);
    const record = function* () {
      const added = yield* journal.add(lease, entries, now);
      for (const { kind, agent } of added) {
        if (kind !== "subagent_finished") continue;
        const row = yield* leases.held(lease);
        if (yield* withdrawOf(askerOf(row), agent, now)) yield* status.update(row, now);
      }
      return added;
    };
    try {
      known.add(await this.#engine.of(lease.principal).note(record));
    } catch (error) {
      // It may be stored all the same.
      known.isWhole = false;
      throw error;
    }
    this.#tell(lease);
  };

  /** Stores the requests of an interrupt. Those that are stored already, answered or not, stay as they are. */
  ask = (
    lease: Lease,
    agent: AgentPath,
    interruptId: string,
    contents: readonly AskedContent[],
    now: number,
  ): Promise<void> => {
    const ask = (row: leases.OpenRunRow) => this.#ask(row, agent, interruptId, contents, now);
    return this.#announce(lease, function* (row) {
      yield* ask(row);
      yield* status.update(row, now);
    });
  };

  /** Ends a question of a call at work, and returns its answer. Without an answer, the question is withdrawn. */
  takeHeld = (lease: Lease, questionId: string, now: number): Promise<Answer | undefined> =>
    this.#write(lease, function* (row) {
      yield* requests.endHeld(askerOf(row), questionId, DEADLINE, now);
      yield* status.update(row, now);
      const request = yield* requests.get(rootOf(row), questionId);
      return request?.kind === "approval" ? undefined : request?.answer;
    });

  /** Withdraws the questions of calls that an earlier process was working on. */
  forgetHeld = (lease: Lease, now: number): Promise<void> =>
    this.#note(lease, function* (row) {
      yield* requests.endHeld(askerOf(row), undefined, "end of the call", now);
      yield* status.update(row, now);
    });

  nextInput = (lease: Lease): Promise<AgentInput> =>
    this.#engine.of(lease.principal).read(function* (): Steps<AgentInput> {
      const row = yield* leases.held(lease);
      const answers = yield* requests.undelivered(askerOf(row));
      if (Object.keys(answers).length > 0) return { kind: "resume", answers };
      if (row.input_handed_over === 1) return { kind: "continue" };
      const after = yield* status.endBefore(row.id);
      // The task may mean this time by "today".
      const task =
        row.task +
        (row.occurrence === null || row.created_at - row.occurrence < LATE_MS
          ? ""
          : `\n\n[This run of a schedule was due at ${shortTime(row.occurrence)} and starts late.]`);
      return { kind: "task", task, after, told: yield* messages.beforeRun(row.id) };
    });

  /** Keeps a run's spans in one trace, whichever process works on it. */
  tracePlace = ({ principal, runId: id }: Lease) => {
    const engine = this.#engine.of(principal);
    const trace = () =>
      first<{ traceparent: string | null }>("SELECT traceparent FROM runs WHERE id = @id", { id });
    const begin = "UPDATE runs SET traceparent = @traceparent WHERE id = @id AND traceparent IS NULL";
    return {
      before: async () => (await engine.read(trace))?.traceparent ?? undefined,
      began: async (traceparent: string) =>
        void (await engine.note(() => change(begin, { id, traceparent }))),
    };
  };

  /** True if people answered and the agent has not been resumed with it. */
  hasAnswers = async ({ principal, runId: asker, rootId: root }: Lease): Promise<boolean> => {
    const answers = await this.#engine.of(principal).read(() => requests.undelivered({ root, asker }));
    return Object.keys(answers).length > 0;
  };

  /** The agent has the task in its state, which is on the disk first: from here on it continues. */
  markHandedOver = async (lease: Lease): Promise<void> => {
    await this.#syncCheckpoints();
    return this.#note(lease, function* ({ id }) {
      yield* change("UPDATE runs SET input_handed_over = 1 WHERE id = @id", { id });
    });
  };

  /**
   * The agent waits for people; `delivered` are the interrupts whose answers it was resumed with. Returns `waiting`, for
   * people or a client's model, if the lease is released; `answered` if an answer arrived before that, and the agent is
   * to be resumed at once; `stuck` if no person can still answer the agent's questions.
   */
  pause = (
    lease: Lease,
    paused: Omit<Extract<AgentEvent, { kind: "paused" }>, "kind">,
    delivered: readonly Delivered[],
    inbox: RunInbox,
    now: number,
  ) => {
    const { interrupts: open, questions: others, modelAwaited, childAwaited } = paused;
    const ask = (row: leases.OpenRunRow, agent: AgentPath, id: string, contents: readonly AskedContent[]) =>
      this.#ask(row, agent, id, contents, now);
    return this.#announce(lease, function* (row): Steps<"waiting" | "answered" | "stuck"> {
      const whose = askerOf(row);
      // After a crash an answer can come before its question is in a checkpoint: then the agent asks the
      // same again, and has not taken the answer in.
      const askedAgain = new Set<string>();
      for (const asked of open) if (yield* isRepeated(whose.root, asked)) askedAgain.add(asked.id);
      for (const { id } of others) if (yield* requests.get(whose.root, id)) askedAgain.add(id);
      const taken = delivered.filter(({ interruptId, again }) => again || !askedAgain.has(interruptId));
      const takenIds = taken.map(({ interruptId }) => interruptId);
      yield* requests.markDelivered(whose.root, takenIds);
      for (const { id, request } of open) yield* ask(row, request.agent ?? [], id, callRequests(request));
      for (const asked of others) yield* ask(row, asked.agent, asked.id, [questionRequest(asked)]);
      const ids = [...open, ...others].map(({ id }) => id);
      yield* requests.withdraw(whose, "agent", now, ids);
      yield* status.update(row, now);
      if (Object.keys(yield* requests.undelivered(whose)).length > 0) return "answered";
      if (modelAwaited && (yield* models.countWaiting(row.id)) === 0) return "answered";
      if (
        childAwaited &&
        ((yield* messages.hasNewerThan(row.id, inbox.read)) || !(yield* hasOpenChildren(row.id)))
      )
        return "answered";
      const isAsked = (yield* requests.countPending(whose)) > 0;
      if (!isAsked && !modelAwaited && !childAwaited) return "stuck";
      yield* leases.suspend(lease);
      return "waiting";
    });
  };

  inbox = ({ principal, runId }: Lease) => messages.storedInbox(this.#engine.of(principal), runId);

  /**
   * The agent has ended. Returns `unread` if the run got a message that the agent has not read, and `waiting` if it
   * continues when a background subagent ends; the lease is released. In both cases the run has not ended.
   */
  complete = async (lease: Lease, result: RunResult, inbox: RunInbox, now: number) => {
    const { answer, structured, stopReason } = result;
    const { rules } = this.#news;
    let cancelled: string[] = [];
    const outcome = await this.#announce(lease, function* (row): Steps<"completed" | "unread" | "waiting"> {
      cancelled = [];
      if (yield* messages.hasNewerThan(row.id, inbox.read)) return "unread";
      // An agent that a limit ends does not wait for its children, which share the limit.
      if (stopReason !== undefined && !isCut(stopReason))
        cancelled = yield* cancelChildren(row.id, "The run that started it ended.", now);
      else if (yield* hasOpenChildren(row.id)) {
        yield* leases.suspend(lease);
        return "waiting";
      }
      yield* requests.withdraw(treeOf(row), "agent", now);
      yield* models.forget(row.id);
      yield* status.update(row, now);
      const stopped = stopReason === undefined ? {} : { stopReason };
      const data = { answer: answerExcerpt(answer), ...stopped };
      if (row.parent_id === null)
        yield* news.append(row, { kind: "run_completed", agent: [], data }, { now, rules });
      const ending = { now, answer, structured, ...stopped };
      yield* status.end(row.id, { from: "working", to: "completed" }, ending);
      yield* leases.release(lease);
      return "completed";
    });
    for (const id of cancelled) this.#changed(id, true);
    return outcome;
  };

  reviews = (lease: Lease) =>
    storedReviews(this.#engine.of(lease.principal), lease.runId, (work) => this.#write(lease, work));

  /** The subagents of the run that work in the background. */
  children = (lease: Lease, clock: Clock, newThreadId: () => string) =>
    storedChildren(lease, {
      engine: this.#engine.of(lease.principal),
      write: (work) => this.#write(lease, work),
      changed: (runId) => this.#changed(runId, true),
      clock,
      newThreadId,
    });

  /**
   * Stores a model call for clients to answer; returns its reply if it has one. The id is a hash of the request: a call
   * that is made again after a crash or a pause finds its reply.
   */
  askModel = async (lease: Lease, request: SamplingRequest, now: number) => {
    const id = createHash("sha256").update(toJson(request)).digest("base64url");
    const ask = () => models.ask(lease.runId, id, request, now);
    const reply = await this.#unlessReplied(lease, id, "model_requested", now, ask);
    return { id, ...defined({ reply }) };
  };

  /** Makes the run wait for this call. Returns a reply that arrived at the last moment. */
  awaitModel = (lease: Lease, callId: string, now: number) =>
    this.#unlessReplied(lease, callId, "model_awaited", now, () => models.wait(lease.runId, callId));

  fail = async (lease: Lease, failure: FailureDetails, now: number): Promise<void> => {
    const { rules } = this.#news;
    const cancelled = await this.#announce(lease, () => fail(lease, failure, { now, rules }));
    for (const id of cancelled) this.#changed(id, true);
  };

  /** Breaks off without ending; `stopped`: nothing works on it here any more, so that others may at once. */
  park = async (lease: Lease, stopped: boolean, now: number): Promise<void> => {
    await this.#syncCheckpoints(); // the next server must find the agent's last writes
    await this.#note(lease, function* ({ id, parent_id }) {
      yield* change("UPDATE runs SET in_flight = 2 WHERE id = @id", { id });
      if (parent_id === null) yield* journal.append(id, { kind: "run_parked", agent: [], data: {} }, now);
      if (stopped) yield* leases.release(lease);
      else yield* leases.fenceOff(lease);
    });
  };

  /** Returns the log of the run's calls with outside effects. `onFailure` is called if they cannot be stored. */
  effectLog = (lease: Lease, clock: Clock, onFailure: (error: unknown) => void) => {
    const engine = this.#engine.of(lease.principal);
    return storedEffects(lease, { engine, sync: this.#syncCheckpoints, clock, onFailure });
  };

  /** Returns the reply of a model call, or does `work` with an event and the status that follows from it. */
  #unlessReplied(
    lease: Lease,
    callId: string,
    kind: "model_requested" | "model_awaited",
    now: number,
    work: () => Steps<void>,
  ): Promise<SamplingReply | undefined> {
    return this.#write(lease, function* (row): Steps<SamplingReply | undefined> {
      const reply = yield* models.replyTo(row.id, callId);
      if (reply !== undefined) return reply;
      yield* work();
      yield* journal.append(rootOf(row), { kind, agent: [], data: {} }, now);
      yield* status.update(row, now);
      return undefined;
    });
  }

  /** Stores the requests of an interrupt, and decides those that a person approved for the whole run. */
  *#ask(
    row: leases.OpenRunRow,
    agent: AgentPath,
    interruptId: string,
    contents: readonly AskedContent[],
    now: number,
  ): Steps<void> {
    const { deadlineMs, questionDeadlineMs } = this.#options;
    const asker = row.parent_id === null ? {} : { askedBy: row.id };
    const stored = { runId: rootOf(row), interruptId, agent, ...asker, status: "pending" as const };
    for (const [index, content] of contents.entries()) {
      const isCall = content.kind === "approval";
      const ownMs = content.kind === "ask" ? content.afterMs : undefined;
      const waitMs = isCall ? deadlineMs : (ownMs ?? questionDeadlineMs);
      const id = isCall ? `${interruptId}:${index}` : interruptId;
      const expiry = waitMs === undefined ? {} : { expiresAt: now + waitMs };
      if ((yield* requests.get(stored.runId, id)) !== undefined) continue;
      const asked: RunRequest = { ...content, ...stored, id, index, requestedAt: now, ...expiry };
      const ruled = asked.kind === "approval" ? yield* approvedBefore(asked, now) : {};
      const request: RunRequest = { ...asked, ...defined({ ruled: ruled.ruled }) };
      const { before } = ruled;
      yield* requests.add(request);
      // Nobody is needed for a call that was approved before.
      const rules = before === undefined ? this.#news.rules : [];
      yield* news.append({ ...row, id: rootOf(row) }, requestedEntry(request), { now, rules });
      if (before === undefined) continue;
      const { answer, by } = before;
      yield* requests.storeAnswer(request, answer, by, now);
      yield* journal.append(rootOf(row), answeredEntry(request, answer, by), now);
    }
  }

  /** Durable at once, because someone hears of it or acts on it. */
  async #write<T>(lease: Lease, work: Work<T>): Promise<T> {
    await this.#syncCheckpoints();
    const result = await this.#engine.of(lease.principal).write(() => underLease(lease, work));
    this.#tell(lease);
    return result;
  }

  /** Writes a change that may be news. */
  async #announce<T>(lease: Lease, work: Work<T>): Promise<T> {
    const result = await this.#write(lease, work);
    this.#news.posted();
    return result;
  }

  /** Not durable at once: after a power cut the run reports its progress again. */
  async #note(lease: Lease, work: Work<void>): Promise<void> {
    await this.#engine.of(lease.principal).note(() => underLease(lease, work));
    this.#tell(lease);
  }

  #tell({ runId, rootId }: Lease): void {
    this.#changed(runId, false);
    if (rootId !== runId) this.#changed(rootId, false);
  }
}

function* underLease<T>(lease: Lease, work: Work<T>): Steps<T> {
  return yield* work(yield* leases.heldToChange(lease));
}
