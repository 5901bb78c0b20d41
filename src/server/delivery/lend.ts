import { ProtocolError } from "@modelcontextprotocol/server";
import type { ModelCall, SamplingReply } from "../../runs/run.ts";
import { errorMessage } from "../../core/errors.ts";
import { samplingParams, samplingReply } from "./sampling.ts";
import type { DeliverySession } from "./session.ts";

/**
 * For 2025-era clients: while `work` lets their call wait for the run, the model calls of the run are pushed
 * to them. What they have begun when `work` is done is waited for, but no longer than `patienceMs`.
 */
export async function whileLending<Result>(
  session: DeliverySession,
  patienceMs: number,
  work: () => Promise<Result>,
): Promise<Result> {
  const done = new AbortController();
  const lending = lend(session, patienceMs, done.signal);
  try {
    return await work();
  } finally {
    done.abort();
    await lending;
  }
}

/** Pushes model calls as they come, several at once, until `done`; resolves when none is with the client. */
async function lend(session: DeliverySession, patienceMs: number, done: AbortSignal): Promise<void> {
  const { runs, principal, runId, context, logger } = session;
  const { signal } = context.mcpReq;
  const stop = AbortSignal.any([done, signal]);
  const pushed = new Map<string, Promise<void>>();
  const push = async (): Promise<void> => {
    for (const call of await runs.modelCalls(principal, runId)) {
      if (pushed.has(call.id) || stop.aborted) continue;
      const serving = serve(session, call, patienceMs).catch((error: unknown) =>
        logger.warn("model.not_lent", { runId, error }),
      );
      pushed.set(call.id, serving);
    }
  };
  // Before the first look: a call that is made after it is in the journal behind this.
  const after = session.seen;
  try {
    await push();
    for await (const event of runs.watch(principal, runId, { after, signal: stop })) {
      if (event.kind === "model_requested") await push();
    }
  } catch (error) {
    logger.warn("model.not_lent", { runId, error });
  }
  await Promise.all(pushed.values());
}

async function serve(session: DeliverySession, call: ModelCall, patienceMs: number): Promise<void> {
  const { runs, principal, runId, logger } = session;
  const reply = await sample(session, call, patienceMs);
  if (reply === undefined) return;
  const outcome = await runs.replyToModel(principal, runId, call.id, reply);
  if (outcome.ok && outcome.repeated) logger.info("model.replied_before", { runId });
}

/** `undefined`: no answer, for whatever reason; somebody is asked again. */
async function sample(
  { context, runId, logger }: DeliverySession,
  { request }: ModelCall,
  patienceMs: number,
): Promise<SamplingReply | undefined> {
  try {
    const result = await context.mcpReq.requestSampling(samplingParams(request), {
      timeout: patienceMs,
      signal: context.mcpReq.signal,
      // Without it the request would not travel on the stream of this call.
      relatedRequestId: context.mcpReq.id,
    });
    return samplingReply(result);
  } catch (error) {
    // The client answered with an error: its user, or its own model, said no.
    if (error instanceof ProtocolError) return { kind: "declined", message: errorMessage(error) };
    logger.debug("model.not_answered", { runId, error });
    return undefined;
  }
}
