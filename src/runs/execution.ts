import { setTimeout as delay } from "node:timers/promises";
import type { Agent, AgentEnd, AgentInput, SharedBudget, StepEvent, EventSink } from "../agent/agent.ts";
import { startNote } from "../core/clock.ts";
import { ownTurn } from "../core/concurrency.ts";
import { ConfigurationError, RunFailure, StorageError, errorMessage, isTransient } from "../core/errors.ts";
import type { WorkerOfRun } from "./client-model.ts";
import { callRequests, questionRequest } from "./asked-events.ts";
import type { RunContext } from "./context.ts";
import { type JournalEntry, entryOf } from "./events.ts";
import type { ForeignQuestions } from "./hold.ts";
import { tidyCopy } from "./later-review.ts";
import { type Lease, type RunInbox, LeaseLostError } from "./ports.ts";
import { FencedOffError } from "./thread-ports.ts";
import { type FailureDetails, type Run, isFailureReason } from "./run.ts";
import type { LiveTexts } from "./live-texts.ts";
import { reviewAtEnd } from "./review.ts";

export interface ExecutionContext extends Pick<
  RunContext,
  "runs" | "work" | "clock" | "newId" | "proposals" | "log" | "checkpoints" | "underLease"
> {
  agentFor(run: Run, worker: WorkerOfRun): Promise<Agent>;
  texts: LiveTexts;
  foreignQuestions(lease: Lease): ForeignQuestions;
}

/** Why work on a run is broken off. `cancelled` and `lease_lost`: the run is no longer ours to write to. */
export type StopReason = "cancelled" | "parked" | "lease_lost";

export interface Execution {
  readonly run: Run;
  readonly lease: Lease;
  controller: AbortController;
  /** Why `controller` was aborted. */
  stop: StopReason | undefined;
  /** The failure that stopped the run, if work stopped with something else. */
  failure?: unknown;
}

/**
 * Works on a claimed run until it ends, waits for people or is interrupted. Never throws: a failure ends the run,
 * unless it waits for storage that may recover. Returns false if the end could not be stored.
 */
export async function execute(execution: Execution, context: ExecutionContext): Promise<boolean> {
  let trouble: StorageError | undefined;
  // Each pause before another attempt is twice the one before, up to half a minute.
  for (let wait = 250; ; wait = Math.min(wait * 2, 30_000)) {
    try {
      await converse(execution, context, trouble);
      return true;
    } catch (thrown) {
      const settled = await settle(execution.failure ?? thrown, execution, context);
      if (typeof settled === "boolean") return settled;
      trouble = settled;
    }
    context.log.warn("run.waits_for_storage", { runId: execution.run.id, error: trouble });
    // Aborts the tasks that still work; later ones get a signal of their own.
    execution.controller.abort();
    execution.controller = new AbortController();
    delete execution.failure;
    await delay(wait, undefined, { signal: execution.controller.signal }).catch(() => undefined);
  }
}

/** Stores the end of the work. Returns true if it is stored, and a StorageError if a later try may succeed. */
async function settle(thrown: unknown, execution: Execution, context: ExecutionContext) {
  const canWait = execution.stop === undefined;
  if (isTransient(thrown) && canWait) return thrown;
  try {
    await settleThrown(thrown, execution, context);
    return true;
  } catch (failed) {
    if (failed instanceof LeaseLostError) return true;
    if (isTransient(failed) && canWait) return failed;
    context.log.error("run.not_settled", { runId: execution.run.id, error: failed, after: thrown });
    return false;
  }
}

/** Runs the agent until it pauses or ends. `trouble`: the obstacle so far. */
async function converse(execution: Execution, context: ExecutionContext, trouble: StorageError | undefined) {
  const { lease, run } = execution;
  const { work, clock } = context;
  await ownTurn();
  execution.controller.signal.throwIfAborted();
  const token = { run: lease.run, claim: lease.epoch };
  const checkpoints = await context.checkpoints?.(run.principal);
  // Takes the thread, so that nobody with an earlier token stores anything in it.
  await checkpoints?.startOver(run.threadId, token);
  if (trouble !== undefined) {
    const message = `The run waited for its storage. ${trouble.message}`;
    const warning = entryOf({ kind: "warning", agent: [], message });
    await work.record(lease, [warning], clock());
  }
  if (lease.epoch > 1) await work.forgetHeld(lease, clock());
  const agent = chooseWorker(run, await context.agentFor(run, { lease, onFailure: breakingOff(execution) }));
  /** Interrupts whose answers were offered before. */
  const offered = new Set<string>();
  const inbox = work.inbox(lease);
  for (;;) {
    const input = await work.nextInput(lease);
    const end = await advance(agent, input, inbox, execution, context);
    const delivered = (input.kind === "resume" ? Object.keys(input.answers) : []).map((interruptId) => ({
      interruptId,
      again: offered.has(interruptId),
    }));
    for (const { interruptId } of delivered) offered.add(interruptId);
    if (end.kind === "finished") {
      const reviewed = await reviewAtEnd(execution, end, { inbox, delivered }, context);
      if (reviewed === "asked") return;
      if (reviewed === "told") continue;
      const outcome = await work.complete(lease, end, inbox, clock());
      if (outcome === "unread") continue;
      if (outcome === "waiting") return;
      if (run.changes === "propose")
        await tidyCopy(run, context).catch((error: unknown) =>
          context.log.warn("proposals.not_discarded", { runId: run.id, error }),
        );
      return checkpoints
        ?.tidyThread(run.threadId, token)
        .catch((error: unknown) => context.log.warn("run.not_tidied", { runId: run.id, error }));
    }
    const outcome = await work.pause(lease, end, delivered, inbox, clock());
    if (outcome === "waiting") return;
    if (outcome === "stuck") throw new Error("The agent paused without a question that is still open.");
    execution.controller.signal.throwIfAborted();
  }
}

/** The agent that works on a run: a subagent, if another agent started the run. */
function chooseWorker({ parent }: Run, main: Agent): Agent {
  const name = parent?.agent.at(-1)?.name;
  if (name === undefined) return main;
  const subagent = main.subagent(name);
  if (subagent !== undefined) return subagent;
  throw new RunFailure("configuration", `There is no subagent '${name}' any more that could do this task.`);
}

/** Passes one input to the agent, and journals its events until it ends or waits. */
async function advance(
  agent: Agent,
  input: AgentInput,
  inbox: RunInbox,
  execution: Execution,
  context: ExecutionContext,
): Promise<AgentEnd> {
  const { run, lease, controller } = execution;
  const { work, clock, newId, texts } = context;
  const { signal } = controller;
  const speaker = texts.speaker(run.id, lease.epoch);
  // LangGraph hangs listeners on the signal it gets and leaves them there: they go with this one.
  const own = new AbortController();
  const abort = (): void => own.abort(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort);
  let handedOver = input.kind !== "task";
  const markHandedOver = async (): Promise<void> => {
    if (!handedOver) await work.markHandedOver(lease);
    handedOver = true;
  };
  const onFailure = breakingOff(execution);
  const events = eventQueue(async (told) => {
    await markHandedOver();
    await journal(told, lease, context);
    for (const event of told) {
      if (event.kind === "model_called" && event.agent.length === 0) speaker.told(event.text);
    }
  }, onFailure);
  const { hold, countQuestion } = context.foreignQuestions(lease);
  const children = work.children(lease, clock, () => newId("thr"));
  const options = {
    runId: run.id,
    agent: run.parent?.agent ?? [],
    inbox,
    signal: own.signal,
    events,
    // Subagents in the background start no others there.
    ...(run.parent === undefined ? { children, say: speaker.say } : {}),
    budget: inOrder(children.budget, events, onFailure),
    startNote: startNote(clock()),
    effects: work.effectLog(lease, clock, onFailure),
    countQuestion,
    hold: Object.assign(
      async (...asked: Parameters<typeof hold>) => {
        await events.stored();
        return hold(...asked);
      },
      { run: lease.rootId },
    ),
    hasAnswers: () => work.hasAnswers(lease),
    trace: work.tracePlace(lease),
  };
  try {
    const end = await agent.work(run.threadId, input, options);
    await markHandedOver();
    return end;
  } finally {
    signal.removeEventListener("abort", abort);
    // Also those before a failure or a stop.
    await events.stored().finally(() => speaker.end());
  }
}

/** Reserves one after the other, and after the events so far: replies are counted before their tokens are released. */
function inOrder(budget: SharedBudget, events: EventSink, onFailure: (error: unknown) => void): SharedBudget {
  let reserved = Promise.resolve(true);
  return {
    spent: () => budget.spent(),
    reserve: (tokens, fits) => {
      reserved = Promise.all([reserved, events.stored()]).then(() => budget.reserve(tokens, fits));
      reserved.catch(onFailure);
      return reserved;
    },
  };
}

/** Stops work on the run when its events can no longer be stored. */
function breakingOff(execution: Execution): (error: unknown) => void {
  const { controller } = execution;
  return (error) => {
    if (execution.controller === controller) execution.failure ??= error;
    controller.abort();
  };
}

/** Stores events in their order, those between two questions together. */
async function journal(events: readonly StepEvent[], lease: Lease, { work, clock }: ExecutionContext) {
  const entries: JournalEntry[] = [];
  for (const event of events) {
    const { kind, agent } = event;
    if (kind !== "approval_requested" && kind !== "question_asked") {
      entries.push(entryOf(event));
      continue;
    }
    await work.record(lease, entries.splice(0), clock());
    const { interruptId: id } = event;
    const contents = kind === "approval_requested" ? callRequests(event.request) : [questionRequest(event)];
    await work.ask(lease, agent, id, contents, clock());
  }
  await work.record(lease, entries, clock());
}

/** Writes down how work on a run ended that did not end by itself. */
async function settleThrown(thrown: unknown, execution: Execution, context: ExecutionContext): Promise<void> {
  const { lease, run, stop } = execution;
  if (thrown instanceof LeaseLostError || thrown instanceof FencedOffError) return;
  if (stop === "cancelled" || stop === "lease_lost") return;
  const { work, clock } = context;
  if (stop === "parked") return work.park(lease, true, clock());
  // After a long stop, a server works with files that its successor has removed.
  if (!(await context.runs.isHeld(lease))) return;
  const failure = toFailure(thrown, run, context);
  context.log.warn("run.failed", { runId: run.id, reason: failure.reason });
  await work.fail(lease, failure, clock());
}

function toFailure(thrown: unknown, run: Run, { newId, log }: ExecutionContext): FailureDetails {
  if (thrown instanceof RunFailure && isFailureReason(thrown.code))
    return { reason: thrown.code, message: thrown.message };
  if (thrown instanceof ConfigurationError) return { reason: "configuration", message: thrown.message };
  if (thrown instanceof StorageError) {
    log.error("run.not_stored", { runId: run.id, error: thrown });
    return { reason: "storage", message: thrown.message };
  }
  const reference = newId("evt");
  const facts = { runId: run.id, reference, message: errorMessage(thrown), error: thrown };
  log.error("run.unexpected_error", facts);
  const message = `An unexpected error ended the run; the server's log has details under ${reference}.`;
  return { reason: "internal", message };
}

/** Time in which events gather that nothing waits for, in ms: those of a quick call are stored together. */
const GATHER_MS = 5;

/**
 * Events of one stretch of work. Once some of them could not be stored, no more are. Calls `onFailure` if `store`
 * rejects.
 */
function eventQueue(
  store: (events: readonly StepEvent[]) => Promise<void>,
  onFailure: (error: unknown) => void,
): EventSink {
  const waiting: StepEvent[] = [];
  let timer: NodeJS.Timeout | undefined;
  let last = Promise.resolve();
  const stored = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    last = last.then(() => {
      const events = waiting.splice(0);
      return events.length === 0 ? undefined : store(events);
    });
    last.catch(onFailure);
    return last;
  };
  const tell = (event: StepEvent): void => {
    waiting.push(event);
    timer ??= setTimeout(() => void stored(), GATHER_MS);
  };
  return { tell, stored };
}
