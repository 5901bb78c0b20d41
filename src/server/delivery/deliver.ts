import type { RunView } from "../../runs/run.ts";
import { createProgress, noProgress, type Progress } from "../progress.ts";
import type { Outcome } from "../outcome.ts";
import type { ApprovalState } from "../state-codec.ts";
import type { ToolCall } from "../tools/tool.ts";
import { asksForClientModel } from "../../config/client-model.ts";
import { chooseDelivery, DELIVERIES } from "./choose.ts";
import { whileLending } from "./lend.ts";
import type { DeliverySession } from "./session.ts";

export interface DeliverOptions {
  /** What the caller asked for; the configured window is the limit. */
  waitSeconds?: number | undefined;
  untilChange: boolean;
  state?: ApprovalState | undefined;
  /** Whether the call may answer with a task instead of waiting; by default it may not. */
  asTask?: boolean;
}

/** Lets a call wait for a run in the way that suits its client. */
export async function deliver(call: ToolCall, view: RunView, options: DeliverOptions): Promise<Outcome> {
  const { runs, principal, context, codec, deps } = call;
  const { clock, logger, config } = deps;
  const progress = progressOf(call);
  const hasToken = progress !== noProgress;
  const window = hasToken ? config.delivery.windowWithProgress : config.delivery.windowWithoutProgress;
  const seconds = Math.min(options.waitSeconds ?? window, window);
  progress.started(view);
  try {
    const wishes = { asTask: options.asTask === true, lends: asksForClientModel(config) };
    const session: DeliverySession = {
      runs,
      principal,
      runId: view.run.id,
      digest: call.digest,
      context,
      codec,
      progress,
      clock,
      logger,
      deadline: clock() + seconds * 1000,
      untilChange: options.untilChange,
      state: options.state,
      seen: view.run.lastSeq,
      client: call.client,
    };
    const delivery = DELIVERIES[chooseDelivery(call.client, wishes)];
    if (!wishes.lends || !call.client.models || call.client.era === "modern")
      return await delivery.deliver(session);
    // The client is at work for the run: what it has begun may take as long as a call may take at all.
    const patienceMs = config.delivery.windowWithProgress * 1000;
    return await whileLending(session, patienceMs, () => delivery.deliver(session));
  } finally {
    progress.stop();
  }
}

function progressOf({ context, deps }: ToolCall): Progress {
  const token = context.mcpReq._meta?.progressToken;
  if (token === undefined) return noProgress;
  return createProgress({
    token,
    notify: context.mcpReq.notify,
    heartbeat: deps.config.delivery.heartbeat * 1000,
    logger: deps.logger,
  });
}
