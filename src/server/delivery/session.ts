/** Lets a call wait for a run, and keeps the forms that are open with its client. */
import { randomUUID } from "node:crypto";
import { LONGEST_TIMER_MS } from "../../core/clock.ts";
import { relevanceOf } from "../../runs/events.ts";
import { type RunView, type RunRequest, isFinal, waitingIn } from "../../runs/run.ts";
import type { ToolCall } from "../calls/call.ts";
import type { Outcome } from "../calls/outcome.ts";
import type { ApprovalState } from "../calls/state.ts";
import type { FormPlace } from "../views/request-form.ts";
import type { Progress } from "../views/progress.ts";
import { type OpenForm, type Taken, keyOf } from "../calls/open-requests.ts";
import { type Asking, type Decider, formFor, refuseAnswer, takeAnswer } from "./answers.ts";

/** Answers that came with a call and were carried out. */
export interface CarriedAnswers {
  readonly state: ApprovalState;
  /** Ids of requests that stay open and are not asked again in this call. */
  readonly left: ReadonlySet<string>;
  /** Reasons why answers could not be carried out, by the id of the request that is asked again. */
  readonly problems: ReadonlyMap<string, string>;
  /** Sentences that the call has to report about them. */
  readonly notes: readonly string[];
}

export interface DeliverySession extends ToolCall, Decider, Asking {
  readonly client: ToolCall["client"];
  /** Absent: the request carries no token. */
  readonly progress: Progress | undefined;
  /** When the window of this call closes, by the monotonic clock. */
  deadline: number;
  /** The client does not count the time while a form of the call is open. */
  readonly pausesForForms: boolean;
  /** True if the call returns at the first change instead of at the end of the run. */
  readonly untilChange: boolean;
  /** Answers to the questions of an earlier call that came with this one. */
  readonly answers: CarriedAnswers | undefined;
  /** Sequence number of the newest event this call knows. */
  seen: number;
  readonly notes: string[];
}

/** One way in which the outcome of a run reaches a client call. It never ends or changes the run itself. */
export type Delivery = (session: DeliverySession) => Promise<Outcome>;

/**
 * Follows the run and reports its progress until it is final or `enough`, the window closes or the request
 * ends; returns the newest view. `until` ends the wait before the window closes, by the monotonic clock. The request's
 * signal counts only until this returns, because it also aborts after a normal end.
 */
export async function follow(
  session: DeliverySession,
  enough: (view: RunView, changed: boolean) => boolean,
  { until = session.deadline, signal }: { until?: number; signal?: AbortSignal } = {},
): Promise<RunView> {
  const stop = new AbortController();
  const end = (): void => stop.abort();
  const signals = [session.context.mcpReq.signal, ...(signal === undefined ? [] : [signal])];
  const left = until - session.deps.monotonic();
  if (left <= 0 || signals.some((source) => source.aborted)) end();
  // Timers fire up to a millisecond early, and the window would seem to be open yet.
  const timer = setTimeout(end, Math.min(left + 1, LONGEST_TIMER_MS));
  for (const source of signals) source.addEventListener("abort", end);
  const { runs, runId } = session;
  try {
    for (let changed = false; ;) {
      const view = await runs.read.view(runId);
      if (view === undefined) throw new Error(`run ${runId} disappeared while it was followed`);
      if (isFinal(view.run.status) || stop.signal.aborted || enough(view, changed)) return view;
      const next = await nextChange(session, stop.signal);
      if (next === "end") return (await runs.read.view(runId)) ?? view;
      changed ||= next === "change";
    }
  } finally {
    clearTimeout(timer);
    for (const source of signals) source.removeEventListener("abort", end);
  }
}

/**
 * Waits briefly for more to ask after the first of `open`, because calls and subagents tend to ask at the
 * same moment. Stops when nobody works on the run any more.
 */
export async function gathered(session: DeliverySession, view: RunView, [first]: readonly RunRequest[]) {
  if (first === undefined) return view;
  const { clock, monotonic } = session.deps;
  const age = Math.max(0, clock() - first.requestedAt);
  const end = Math.min(monotonic() + Math.max(0, GATHER_MS - age), session.deadline);
  let newest = view;
  const mayGrow = ({ run }: RunView): boolean => run.leasedUntil !== undefined && !isFinal(run.status);
  while (mayGrow(newest) && monotonic() < end && !isOver(session)) {
    const until = Math.min(monotonic() + LOOK_MS, end);
    newest = await follow(session, () => false, { until });
  }
  return newest;
}

const GATHER_MS = 500;
/** Interval of looks at the run, because the end of its work is not an event. */
const LOOK_MS = 25;

/**
 * True if a call should stop waiting: a person is needed, or a change that it waited for happened. A repeated
 * check keeps waiting if all that is open was reported before and the client cannot ask about them. Otherwise
 * a model that checks until the run ends would repeat itself, and clients stop such models.
 */
export function hasNews({ untilChange, client, open }: DeliverySession) {
  const canAsk = client.forms || client.page;
  const isKnown = (waiting: RunRequest): boolean =>
    open.reported.has(keyOf(waiting)) && (!canAsk || open.isPointless(waiting));
  return (view: RunView, changed: boolean): boolean => {
    if (untilChange && changed) return true;
    if (view.run.status !== "input_required") return false;
    const pending = waitingIn(view);
    return !untilChange || pending.length === 0 || !pending.every(isKnown);
  };
}

/** True if this call must return now: its request was aborted or its window has closed. */
export const isOver = ({ context, deps, deadline }: DeliverySession): boolean =>
  context.mcpReq.signal.aborted || deps.monotonic() >= deadline;

/** Resolves after an event that the call may be waiting for, or that asks for its client's model; or at the end. */
async function nextChange(session: DeliverySession, signal: AbortSignal) {
  const { runs, runId, progress, untilChange } = session;
  for await (const event of runs.watch.events(runId, { after: session.seen, signal })) {
    session.seen = event.seq;
    progress?.event(event);
    if (event.kind === "model_requested") return event.kind;
    const relevance = relevanceOf(event);
    if (untilChange ? relevance !== "progress" : relevance === "decision") return "change";
  }
  return "end";
}

/** The form for what waits: the one that is open already, or a new one. */
export function openForm(session: DeliverySession, waiting: RunRequest, place: FormPlace): OpenForm {
  return session.open.form(waiting, (form) =>
    showForm(session, waiting, place, form).catch((error: unknown) => {
      session.logger.warn("question.not_taken", { runId: waiting.runId, questionId: waiting.id, error });
      return undefined;
    }),
  );
}

/** Shows the form until it is answered, here or elsewhere, and carries out the answer. */
async function showForm(
  session: DeliverySession,
  waiting: RunRequest,
  place: FormPlace,
  form: AbortController,
): Promise<Taken | undefined> {
  const { context, runId, deps, logger, client } = session;
  const request = await formFor(waiting, place, session);
  const asked = deps.monotonic();
  // A request as it is pushed: an address has an id of its own.
  const answered = context.mcpReq
    .elicitInput(request.mode === "url" ? { ...request, elicitationId: randomUUID() } : request, {
      timeout: LONGEST_TIMER_MS,
      signal: form.signal,
      // Without it the form would not travel on the stream of this call.
      relatedRequestId: context.mcpReq.id,
    })
    .catch((error: unknown) => {
      logger.debug("question.not_answered", { runId, questionId: waiting.id, error });
      return undefined;
    });
  const decided = whilePending(session, waiting, form.signal);
  const response = await Promise.race([answered, decided]).finally(() => form.abort());
  if (response === undefined) return undefined;
  const elapsed = deps.monotonic() - asked;
  const taken = await takeAnswer(session, waiting, response, { elapsed, client, by: BY });
  if (taken.kind === "left" && taken.isUnread) session.open.refusedUnread(waiting);
  // The call that would show the form again has ended.
  if (taken.kind === "again" && isOver(session)) await refuseAnswer(session, taken.problem, BY);
  return taken;
}

const BY = "elicitation";

/** Resolves when an approval or a question waits for nobody any more. */
async function whilePending({ runs, runId, seen }: DeliverySession, { id }: RunRequest, signal: AbortSignal) {
  for await (const { kind } of runs.watch.events(runId, { after: seen, signal })) {
    if (kind !== "approval_decided" && kind !== "question_answered") continue;
    const view = await runs.read.view(runId);
    if (view === undefined || !waitingIn(view).some((waiting) => waiting.id === id)) return;
  }
}
