/** Model calls that the client's own model answers, in the terms of sampling. */
import { ProtocolError } from "@modelcontextprotocol/server";
import { z } from "zod";
import { errorMessage } from "../../core/errors.ts";
import type { ModelCall, SamplingReply } from "../../runs/run.ts";
import type { Decider } from "./answers.ts";
import type { DeliverySession } from "./session.ts";

/**
 * Pushes the model calls of a run to the client while `work` lets its call wait for the run. Calls that are open
 * when `work` is done stay open, for `patienceMs` from their start; a later call does not push them again.
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

/** Pushes model calls as they come, several at once, until `done`. */
async function lend(session: DeliverySession, patienceMs: number, done: AbortSignal): Promise<void> {
  const { runs, runId, context, logger, open } = session;
  const stop = AbortSignal.any([done, context.mcpReq.signal]);
  const pushed = new Set<string>();
  const push = async (): Promise<void> => {
    for (const call of await runs.read.modelCalls(runId)) {
      const key = `${runId}/${call.id}`;
      if (pushed.has(key) || open.models.has(key) || stop.aborted) continue;
      pushed.add(key);
      open.models.add(key);
      void sample(session, call, patienceMs)
        .then((reply) => storeReply(session, call.id, reply))
        .catch((error: unknown) => logger.warn("model.not_lent", { runId, error }))
        .finally(() => open.models.delete(key));
    }
  };
  // Before the first look: a call that is made after it is in the journal behind this.
  const after = session.seen;
  try {
    await push();
    for await (const event of runs.watch.events(runId, { after, signal: stop })) {
      if (event.kind === "model_requested") await push();
    }
  } catch (error) {
    logger.warn("model.not_lent", { runId, error });
  }
}

/** Stores the reply of the client's model, if any; the first reply to a call counts. */
export async function storeReply(
  { runs, runId, logger }: Decider,
  callId: string,
  reply: SamplingReply | undefined,
): Promise<void> {
  const outcome = reply && (await runs.control.replyToModel(runId, callId, reply));
  if (outcome?.ok && outcome.repeated) logger.info("model.replied_before", { runId });
}

/** Returns `undefined` if no answer came, for any reason; the call is then made again. */
async function sample(
  { context, runId, logger }: DeliverySession,
  { request }: ModelCall,
  patienceMs: number,
): Promise<SamplingReply | undefined> {
  try {
    const result = await context.mcpReq.requestSampling(request, {
      timeout: patienceMs,
      signal: context.mcpReq.signal,
      // Without it the request would not travel on the stream of this call.
      relatedRequestId: context.mcpReq.id,
    });
    return samplingReply(result);
  } catch (error) {
    // The client answered with an error: its user, or its own model, refused.
    if (error instanceof ProtocolError) return { kind: "declined", message: errorMessage(error) };
    logger.debug("model.not_answered", { runId, error });
    return undefined;
  }
}

/** The parts of a reply to `sampling/createMessage` that an agent uses. */
const Reply = z.looseObject({
  model: z.string(),
  stopReason: z.string().optional(),
  content: z.preprocess(
    (content) => (Array.isArray(content) ? content : [content]),
    z.array(
      z.union([
        z.object({ type: z.literal("text"), text: z.string() }),
        z.object({
          type: z.literal("tool_use"),
          id: z.string(),
          name: z.string(),
          input: z.record(z.string(), z.unknown()),
        }),
        z.looseObject({ type: z.string() }).transform(({ type }) => ({
          type: "text" as const,
          text: `[${type}]`,
        })),
      ]),
    ),
  ),
});

/**
 * A refusal in the place of a reply. The protocol defines none for requests that are answered in a map, so
 * clients use the forms of other requests.
 */
const Declined = z.union([
  z.looseObject({ action: z.enum(["decline", "cancel"]) }).transform(() => "it was declined"),
  z.looseObject({ error: z.looseObject({ message: z.string() }) }).transform(({ error }) => error.message),
]);

/** Reads a reply to a sampling request; `undefined` for anything else. */
export function samplingReply(result: unknown): SamplingReply | undefined {
  const { data } = Reply.safeParse(result);
  if (data === undefined) {
    const declined = Declined.safeParse(result);
    return declined.success ? { kind: "declined", message: declined.data } : undefined;
  }
  const { content, model, stopReason } = data;
  return { kind: "answer", content, model, ...(stopReason === undefined ? {} : { stopReason }) };
}
