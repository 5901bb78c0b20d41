/** Delivers the outcome of a run to a client, and decides if the run stops when the client leaves. */
import { type Config, asksForClientModel } from "../../config/schema.ts";
import { type RunView, waitingIn } from "../../runs/run.ts";
import type { ToolCall } from "../calls/call.ts";
import { type ClientFacts, windowFor } from "../calls/client.ts";
import { originOf } from "../contracts/deps.ts";
import { type Outcome, withNotes } from "../calls/outcome.ts";
import { type Progress, createProgress } from "../views/progress.ts";
import { whileLending } from "./client-model.ts";
import { keyOf } from "../calls/open-requests.ts";
import { elicitDelivery, elicitPageDelivery } from "./elicit.ts";
import { inputRequiredDelivery } from "./input-required.ts";
import type { CarriedAnswers, Delivery, DeliverySession } from "./session.ts";
import { follow, gathered, hasNews } from "./session.ts";

const DELIVERIES = {
  /**
   * For clients with the Tasks extension: the call answers at once with the run as a task, and the
   * client polls it with `tasks/get`. The run is on disk already.
   */
  task: async ({ runs, runId }) => {
    const view = await runs.read.view(runId);
    if (view === undefined) throw new Error(`run ${runId} disappeared after it was started`);
    return { kind: "task", view };
  },
  input_required: inputRequiredDelivery,
  elicit: elicitDelivery,
  elicit_page: elicitPageDelivery,
  /**
   * Waits until the run ends or needs a person, for clients that cannot show a form. Returns the current state
   * when the window closes; the run continues, and `check_deep_agent` finds it.
   */
  handle: async (session) => {
    const view = await follow(session, hasNews(session));
    return { kind: "run", view: await gathered(session, view, waitingIn(view)) };
  },
} satisfies Record<string, Delivery>;

/**
 * Chooses the best way for this client before anything is answered, by capability and never by name.
 * `asTask`: whether this call may answer with a task; `lends`: whether runs here ask for the client's model.
 */
export function chooseDelivery(
  client: Pick<ClientFacts, "revision" | "forms" | "page" | "tasks" | "models">,
  { asTask, lends }: { asTask: boolean; lends: boolean },
): keyof typeof DELIVERIES {
  const { revision, forms, page, tasks, models } = client;
  const serves = lends && models;
  if (asTask && tasks && revision.tasks) return "task";
  if (revision.asks === "input_required") return forms || page || serves ? "input_required" : "handle";
  if (forms) return "elicit";
  return page ? "elicit_page" : "handle";
}

/** Lets a call wait for a run in the way that suits its client. */
export async function deliver(
  call: ToolCall,
  view: RunView,
  options: {
    /** Seconds that the caller asked for; the configured window is the limit. */
    waitSeconds?: number | undefined;
    untilChange: boolean;
    /** Number of the newest event that the caller knows. Default: the newest there is. */
    after?: number | undefined;
    answers?: CarriedAnswers | undefined;
    /** True if the call may answer with a task instead of waiting; default false. */
    asTask?: boolean;
    /** Sentence about the effects of the call, which precedes the state of the run. */
    note?: string | undefined;
  },
): Promise<Outcome> {
  const { principal, context, deps, client } = call;
  const { logger, config } = deps;
  const { answers, untilChange, note, after } = options;
  const { id: runId, lastSeq } = view.run;
  const progress = openProgress(call, runId);
  const { pausesForForms, ...window } = windowFor(client.name, progress !== undefined, config.delivery);
  const seconds = Math.min(options.waitSeconds ?? window.seconds, window.seconds);
  // A client that knows the newest event has already seen the open requests, if through another server.
  if ((after ?? -1) >= lastSeq) rememberReported(call, view);
  progress?.started(view);
  try {
    const session: DeliverySession = {
      ...call,
      runId,
      logger,
      pageLink: async () => deps.page?.decide(principal, runId, originOf(context)),
      openCommand: deps.openCommand(view.run),
      progress,
      deadline: deps.monotonic() + seconds * 1000,
      pausesForForms,
      untilChange,
      answers,
      seen: Math.min(after ?? Infinity, lastSeq),
      notes: [...(note === undefined ? [] : [note]), ...(answers?.notes ?? [])],
    };
    const lends = asksForClientModel(config);
    const delivery: Delivery = DELIVERIES[chooseDelivery(client, { asTask: options.asTask === true, lends })];
    // No call may take longer than this.
    const patienceMs = config.delivery.windowWithProgress * 1000;
    const outcome =
      lends && client.models && client.revision.asks === "pushed"
        ? await whileLending(session, patienceMs, () => delivery(session))
        : await delivery(session);
    if (outcome.kind === "run" && !context.mcpReq.signal.aborted) rememberReported(call, outcome.view);
    await stopWithCall(call, runId);
    return withNotes(outcome, session.notes);
  } finally {
    progress?.stop();
  }
}

function rememberReported({ open }: ToolCall, view: RunView): void {
  for (const waiting of waitingIn(view)) open.reported.add(keyOf(waiting));
}

/**
 * Ends the run when the call was aborted and the configuration wants that. This is decided before the answer
 * is sent, because the signal also aborts afterwards.
 */
async function stopWithCall({ runs, context, deps }: ToolCall, runId: string): Promise<void> {
  const { signal } = context.mcpReq;
  if (!signal.aborted) return;
  const leaving = leavingBy(signal.reason);
  deps.logger.info("call.left", { runId, leaving });
  if (!stopsRun(leaving, deps.config.delivery.stopRunOn)) return;
  const reason = leaving === "cancellation" ? "the client cancelled its call" : "the client is gone";
  await runs.control.cancel(runId, reason);
}

function openProgress({ runs, context, deps }: ToolCall, runId: string): Progress | undefined {
  const token = context.mcpReq._meta?.progressToken;
  if (token === undefined) return undefined;
  return createProgress({
    token,
    notify: context.mcpReq.notify,
    heartbeat: deps.config.delivery.heartbeat * 1000,
    clock: deps.monotonic,
    now: deps.clock,
    signal: context.mcpReq.signal,
    view: () => runs.read.view(runId),
    logger: deps.logger,
  });
}

/** Reason why a client stopped waiting for its call. */
export type Leaving = "cancellation" | "disconnect";

/**
 * Distinguishes a person's cancel from a client that stopped listening, by the reason of the signal. Only a
 * `notifications/cancelled` carries a text; clients send it for their time-outs too, and name them in it. One without
 * a text, and the closed stream that cancels over HTTP since 2026-07-28, could be either: then nobody counts as
 * having cancelled.
 */
export const leavingBy = (reason: unknown): Leaving =>
  typeof reason === "string" && !/time[sd]?[ -]?out|deadline|-32001/i.test(reason)
    ? "cancellation"
    : "disconnect";

export const stopsRun = (leaving: Leaving, on: Config["delivery"]["stopRunOn"]): boolean =>
  on === "disconnect" || (on === "cancellation" && leaving === "cancellation");
