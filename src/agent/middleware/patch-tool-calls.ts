import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { isReply, isResult } from "../message-kind.ts";
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
  if (isWhole(messages)) return messages;
  const results = new Map<string, ToolMessage>();
  for (const message of messages) {
    if (isResult(message) && !results.has(message.tool_call_id)) {
      results.set(message.tool_call_id, message);
    }
  }
  const repaired: BaseMessage[] = [];
  const answered = new Set<string>();
  for (const message of messages) {
    if (isResult(message)) continue;
    repaired.push(message);
    for (const call of callsOf(message)) {
      if (answered.has(call.id)) continue;
      answered.add(call.id);
      repaired.push(results.get(call.id) ?? unfinished(call));
    }
  }
  return repaired;
}

/** Whether every reply is followed by the results of its calls, in their order, and by nothing else of the kind. */
function isWhole(messages: readonly BaseMessage[]): boolean {
  const made = new Set<string>();
  let due: ReadonlyArray<{ id?: string }> = [];
  let given = 0;
  for (const message of messages) {
    if (isResult(message)) {
      if (message.tool_call_id !== due[given]?.id) return false;
      given += 1;
      continue;
    }
    if (given < due.length) return false;
    given = 0;
    due = isReply(message) ? (message.tool_calls ?? []) : [];
    if (isReply(message) && (message.invalid_tool_calls ?? []).length > 0) return false;
    for (const { id } of due) {
      if (!id || made.has(id)) return false;
      made.add(id);
    }
  }
  return given === due.length;
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
  if (!isReply(message)) return [];
  const { tool_calls: valid = [], invalid_tool_calls: invalid = [] } = message;
  const calls = [...valid, ...invalid];
  return calls.flatMap(({ id, name }) => (id ? [{ id, name: name ?? "unknown" }] : []));
}

function unfinished({ id, name }: CallRef): ToolMessage {
  return new ToolMessage({ content: UNFINISHED, name, tool_call_id: id, status: "error" });
}
