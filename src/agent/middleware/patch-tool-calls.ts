import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { isOpenAi, openAiHistory } from "../models/openai-history.ts";
import { sendable } from "../sendable.ts";
import type { Middleware } from "./middleware.ts";

const UNFINISHED = "Tool call was cancelled or did not complete.";

/**
 * The history as a model may see it: every tool call is followed by exactly one result, results come in
 * call order right after their reply, and results without a call are left out. Linear in the number of
 * messages; a history that is correct already is returned as the same object.
 */
export function repairHistory(messages: BaseMessage[]): BaseMessage[] {
  const results = new Map<string, ToolMessage>();
  for (const message of messages) {
    if (ToolMessage.isInstance(message) && !results.has(message.tool_call_id)) {
      results.set(message.tool_call_id, message);
    }
  }
  const repaired: BaseMessage[] = [];
  const answered = new Set<string>();
  for (const message of messages) {
    if (ToolMessage.isInstance(message)) continue;
    repaired.push(message);
    for (const call of callsOf(message)) {
      if (answered.has(call.id)) continue;
      answered.add(call.id);
      repaired.push(results.get(call.id) ?? unfinished(call));
    }
  }
  const same = repaired.length === messages.length && repaired.every((message, i) => message === messages[i]);
  return same ? messages : repaired;
}

/** Repairs what the model sees of interrupted, cancelled and parallel tool calls. */
export function patchToolCallsMiddleware(): Middleware {
  return {
    name: "PatchToolCallsMiddleware",
    wrapModelCall: (request, next) => {
      const messages = sendable(repairHistory(request.messages));
      const { model } = request;
      return next({
        ...request,
        messages: isOpenAi(model) ? openAiHistory(messages) : messages,
      });
    },
  };
}

interface CallRef {
  id: string;
  name: string;
}

/** All calls of a reply, those with arguments that could not be parsed included. */
function callsOf(message: BaseMessage): CallRef[] {
  if (!AIMessage.isInstance(message)) return [];
  const calls = [...(message.tool_calls ?? []), ...(message.invalid_tool_calls ?? [])];
  return calls.flatMap(({ id, name }) => (id ? [{ id, name: name ?? "unknown" }] : []));
}

function unfinished({ id, name }: CallRef): ToolMessage {
  return new ToolMessage({ content: UNFINISHED, name, tool_call_id: id, status: "error" });
}
