import type { CreateMessageRequestParams } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { SamplingReply, SamplingRequest } from "../../runs/run.ts";

/** What a client replies to `sampling/createMessage`; other parts of it are nothing for an agent. */
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

export function samplingParams(request: SamplingRequest): CreateMessageRequestParams {
  // The same shape; the SDK's type only has more members that may be left out.
  return request as CreateMessageRequestParams;
}

/**
 * A no in the place of a reply. The protocol has none for requests that are answered in a map; what clients
 * put there are the forms it has for other requests.
 */
const Declined = z.union([
  z.looseObject({ action: z.enum(["decline", "cancel"]) }).transform(() => "it was declined"),
  z.looseObject({ error: z.looseObject({ message: z.string() }) }).transform(({ error }) => error.message),
]);

/** `undefined` for what is no reply to a sampling request. */
export function samplingReply(result: unknown): SamplingReply | undefined {
  const { data } = Reply.safeParse(result);
  if (data === undefined) {
    const declined = Declined.safeParse(result);
    return declined.success ? { kind: "declined", message: declined.data } : undefined;
  }
  const { content, model, stopReason } = data;
  return { kind: "answer", content, model, ...(stopReason === undefined ? {} : { stopReason }) };
}
