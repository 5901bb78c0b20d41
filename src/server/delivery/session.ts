import type { ServerContext } from "@modelcontextprotocol/server";
import { LONGEST_TIMER_MS, type Clock } from "../../core/clock.ts";
import { type Approval, isFinal, type RunEvent, type RunEventKind, type RunView } from "../../runs/run.ts";
import type { Outcome } from "../outcome.ts";
import type { ClientFacts } from "../client.ts";
import type { Progress } from "../progress.ts";
import type { ApprovalState, StateCodec } from "../state-codec.ts";
import type { Decider } from "./answers.ts";
import type { OpenRequests } from "./open-requests.ts";

/** Answers that came with a call and were carried out. */
export interface CarriedAnswers {
  readonly state: ApprovalState;
  /** Approvals that stay open and are not asked for again in this call. */
  readonly left: ReadonlySet<string>;
  /** Why answers could not be carried out, by approval: they are asked for again. */
  readonly problems: ReadonlyMap<string, string>;
  /** What the call is to tell of it. */
  readonly notes: readonly string[];
}

/** One call that waits for a run. */
export interface DeliverySession extends Decider {
  /** Of the tool and its arguments. */
  readonly digest: string;
  readonly context: ServerContext;
  readonly codec: StateCodec;
  /** An address for the client alone, never for its model; it works once. `undefined`: no page can be served. */
  readonly pageLink: () => Promise<string | undefined>;
  readonly progress: Progress;
  /** The time that others know too. */
  readonly now: Clock;
  /** For durations: it does not jump. */
  readonly clock: Clock;
  readonly client: ClientFacts;
  /** Questions of this call and of others that the client has not answered yet. */
  readonly open: OpenRequests;
  /** When the window of this call closes, by `clock`. */
  deadline: number;
  /** The client does not count the time while a form of the call is open. */
  readonly pausesForForms: boolean;
  /** Whether the call is over at the first change instead of at the end of the run. */
  readonly untilChange: boolean;
  /** What the client brought along when this call answers questions of an earlier one. */
  readonly answers: CarriedAnswers | undefined;
  /** Sequence number of the newest event this call knows. */
  seen: number;
  readonly notes: string[];
}

/** One way in which the outcome of a run reaches a client call. It never ends or changes the run itself. */
export interface Delivery {
  deliver(session: DeliverySession): Promise<Outcome>;
}

export interface WaitOptions {
  /** Ends the wait before the window closes; by `clock`. */
  until?: number;
  signal?: AbortSignal;
}

/**
 * Follows the run, telling its progress, until it is final or `enough`, or until the window closes or the
 * request ends; gives the newest view. The request's signal is listened to only meanwhile: it also aborts
 * after a normal end.
 */
export async function follow(
  session: DeliverySession,
  enough: (view: RunView, changed: boolean) => boolean,
  { until = session.deadline, signal }: WaitOptions = {},
): Promise<RunView> {
  const stop = new AbortController();
  const end = (): void => stop.abort();
  const signals = [session.context.mcpReq.signal, ...(signal === undefined ? [] : [signal])];
  const left = until - session.clock();
  if (left <= 0 || signals.some((source) => source.aborted)) end();
  // Timers fire up to a millisecond early, and the window would seem to be open yet.
  const timer = setTimeout(end, Math.min(left + 1, LONGEST_TIMER_MS));
  for (const source of signals) source.addEventListener("abort", end);
  try {
    return await nextView(session, enough, stop.signal);
  } finally {
    clearTimeout(timer);
    for (const source of signals) source.removeEventListener("abort", end);
  }
}

/**
 * Calls and subagents tend to ask at the same moment: what comes soon after the first of `open` is told
 * together with it. Once nobody works on the run, nothing more can come.
 */
export async function gathered(
  session: DeliverySession,
  view: RunView,
  [first]: readonly Approval[],
): Promise<RunView> {
  if (first === undefined) return view;
  const age = Math.max(0, session.now() - first.requestedAt);
  const end = Math.min(session.clock() + Math.max(0, GATHER_MS - age), session.deadline);
  let newest = view;
  const mayGrow = ({ run }: RunView): boolean => run.leasedUntil !== undefined && !isFinal(run.status);
  while (mayGrow(newest) && session.clock() < end && !isOver(session)) {
    const until = Math.min(session.clock() + LOOK_MS, end);
    newest = await follow(session, () => false, { until });
  }
  return newest;
}

const GATHER_MS = 500;
/** The end of work is no event that could be waited for. */
const LOOK_MS = 25;

/** When a call stops waiting: somebody is needed, or what it waited for has happened. */
export function hasNews({ untilChange }: DeliverySession) {
  return ({ run }: RunView, changed: boolean): boolean =>
    run.status === "input_required" || (untilChange && changed);
}

/** Whether nothing more may be waited for in this call. */
export function isOver(session: DeliverySession): boolean {
  return session.context.mcpReq.signal.aborted || session.clock() >= session.deadline;
}

async function nextView(
  session: DeliverySession,
  enough: (view: RunView, changed: boolean) => boolean,
  stop: AbortSignal,
): Promise<RunView> {
  const { runs, principal, runId } = session;
  for (let changed = false; ;) {
    const view = await runs.view(principal, runId);
    if (view === undefined) throw new Error(`run ${runId} disappeared while it was followed`);
    if (isFinal(view.run.status) || stop.aborted || enough(view, changed)) return view;
    const next = await nextChange(session, stop);
    if (next === "end") return (await runs.view(principal, runId)) ?? view;
    changed ||= next === "change";
  }
}

/**
 * Resolves after an event that the call may be waiting for, or that asks for its client's model; or at the end.
 */
async function nextChange(
  session: DeliverySession,
  signal: AbortSignal,
): Promise<"change" | "model_requested" | "end"> {
  const { runs, principal, runId, progress, untilChange } = session;
  for await (const event of runs.watch(principal, runId, { after: session.seen, signal })) {
    session.seen = event.seq;
    progress.event(event);
    if (event.kind === "model_requested") return event.kind;
    if (untilChange ? isChange(event) : DECISIVE.has(event.kind)) return "change";
  }
  return "end";
}

/** What makes a run wait for somebody, or go on: without `untilChange` a call waits for nothing else. */
const DECISIVE: ReadonlySet<RunEventKind> = new Set([
  "approval_requested",
  "approval_decided",
  "model_awaited",
]);

function isChange(event: RunEvent): boolean {
  return !PASSING.has(event.kind);
}

/** Steps on the way: progress, but nothing that a call which waits for a change should return for. */
const PASSING: ReadonlySet<RunEventKind> = new Set([
  "tool_started",
  "tool_finished",
  "model_called",
  "answer_refused",
  "run_started",
]);
