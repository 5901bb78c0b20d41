import { randomUUID } from "node:crypto";
import { AIMessage, AIMessageChunk, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import { shapeProblem } from "../../core/json-shape.ts";
import { headOf, wellFormed } from "../../core/text.ts";
import { isReply } from "../message-kind.ts";
import { ARGUMENTS_SHAPE, isJson, TOO_MANY_VALUES } from "./reply-bounds.ts";
import { isCut } from "./reply.ts";

/** A reply that the history can hold, whatever comes next and whichever provider reads it. */
export interface SafeReply {
  reply: AIMessage;
  /** Results of calls that cannot run, because nobody can tell with which arguments. */
  refused: ToolMessage[];
}

/** What every provider takes as the id and the name of a call. */
const CALL_ID = /^[a-zA-Z0-9_-]{1,40}$/;
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const CALL_BLOCKS: ReadonlySet<string> = new Set([
  "tool_use",
  "tool_call",
  "tool_call_chunk",
  "invalid_tool_call",
  "function_call",
  "input_json_delta",
]);

/**
 * Mends what a model gets wrong about its calls: ids that are missing, used before or of a form that other
 * providers refuse, names that can be none, and arguments that cannot be read. The latter are answered at
 * once. Ids that are fine stay: some providers refer to them later.
 */
export function safeReply(given: AIMessage, thread: readonly BaseMessage[]): SafeReply {
  const isShort = isCut(given);
  const incomplete = isShort ? CUT : INCOMPLETE;
  const broken = brokenCalls(given, isShort);
  const { tool_calls: calls = [], invalid_tool_calls: invalid = [] } = given;
  const read = [
    ...calls.map((call) => ({ call, why: broken.has(call) ? incomplete : refusalOf(call.args) })),
    ...invalid.map(({ id, name = "", error }) => ({
      call: { name, args: {}, type: "tool_call" as const, ...(id ? { id } : {}) },
      why: error === TOO_MANY_VALUES ? TOO_MANY : incomplete,
    })),
  ];
  const callIds = read.length > 0 ? callIdsOf(thread) : new Set<string | undefined>();
  const mended = read.map(({ call, why }) =>
    mendCall(why === undefined ? call : { ...call, args: {} }, callIds),
  );
  const isChanged = mended.some((call, index) => call !== calls[index]);
  const reply = mended.length > 0 ? withCalls(given, mended, isChanged) : given;
  // An id that is only assigned is not stored with the message.
  const isNew = reply.id && thread.every(({ id }) => id !== reply.id);
  reply._updateId(isNew ? reply.id : randomUUID());
  const refused = mended.flatMap((call, index) => {
    const why = read[index]?.why;
    return why === undefined ? [] : [refusal(call, why)];
  });
  return { reply, refused };
}

/** Why a call with these arguments cannot run, if it cannot. */
function refusalOf(args: unknown): string | undefined {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return INCOMPLETE;
  return shapeProblem(args, ARGUMENTS_SHAPE) === undefined ? undefined : TOO_MANY;
}

function callIdsOf(thread: readonly BaseMessage[]): Set<string | undefined> {
  const ids = new Set<string | undefined>();
  for (const message of thread) {
    if (isReply(message)) for (const { id } of message.tool_calls ?? []) ids.add(id);
  }
  return ids;
}

/**
 * Calls whose arguments LangChain completed: when an answer is cut at the limit of output tokens, it closes
 * the JSON where it ended, and half a file would be written. Of a cut answer that was not streamed nobody can
 * tell whether its last call is whole.
 */
function brokenCalls(reply: AIMessage, isShort: boolean): ReadonlySet<ToolCall> {
  if (!AIMessageChunk.isInstance(reply)) return new Set(isShort ? reply.tool_calls?.slice(-1) : []);
  const groups: Array<{ id: string | undefined; index: number | undefined; json: string }> = [];
  for (const { id, index, args = "" } of reply.tool_call_chunks ?? []) {
    const group = groups.find(
      (known) =>
        (index !== undefined && known.index === index && (!id || id === known.id)) ||
        (index === undefined && id === known.id),
    );
    if (group) group.json += args;
    else groups.push({ id, index, json: args });
  }
  const broken = new Set<ToolCall>();
  for (const call of reply.tool_calls ?? []) {
    const at = groups.findIndex(({ id }) => id === call.id);
    const [group] = at < 0 ? [] : groups.splice(at, 1);
    // Most calls without arguments have no JSON; a cut one may have been about to have some.
    const isWhole = group?.json.trim() === "" ? !isShort : isJson(group?.json ?? "{}");
    if (!isWhole) broken.add(call);
  }
  return broken;
}

function mendCall(call: ToolCall, used: Set<string | undefined>): ToolCall {
  const id =
    call.id && CALL_ID.test(call.id) && !used.has(call.id)
      ? call.id
      : `call_${randomUUID().replaceAll("-", "")}`;
  used.add(id);
  const called: unknown = call.name; // whatever the provider's package made of what came
  const name = nameOf(typeof called === "string" ? called : "");
  const args = wellFormedArgs(call.args);
  return id === call.id && name === call.name && args === call.args ? call : { ...call, id, name, args };
}

const nameOf = (given: string): string =>
  NAME.test(given) ? given : headOf(given, 64).replaceAll(/[^a-zA-Z0-9_-]/g, "_") || "unknown";

/** Half of a surrogate pair is no text that could be sent. */
function wellFormedArgs(args: Record<string, unknown>): Record<string, unknown> {
  const json = JSON.stringify(args);
  if (!/\\ud[89a-f]/i.test(json)) return args;
  return JSON.parse(json, (_key, value: unknown) =>
    typeof value === "string" ? wellFormed(value) : value,
  ) as Record<string, unknown>; // it was one before
}

/**
 * The reply with these calls, and without the copies of them that packages keep: long arguments would be stored and
 * loaded three times. What OpenAI's package sends in place of the message stays, unless the calls have changed.
 */
function withCalls(reply: AIMessage, calls: ToolCall[], isChanged: boolean): AIMessage {
  const { content, additional_kwargs, response_metadata, usage_metadata, id, name } = reply;
  const { tool_calls: _calls, ...kwargs } = additional_kwargs;
  const metadata = { ...response_metadata };
  if (isChanged) {
    delete kwargs["__openai_function_call_ids__"];
    delete metadata["output"];
  }
  return new AIMessage({
    content: typeof content === "string" ? content : content.filter(({ type }) => !CALL_BLOCKS.has(type)),
    tool_calls: calls,
    additional_kwargs: kwargs,
    response_metadata: metadata,
    ...(usage_metadata ? { usage_metadata } : {}),
    ...(id ? { id } : {}),
    ...(name ? { name } : {}),
  });
}

const CUT =
  "the reply was cut at the limit of output tokens, before the arguments were complete. Call it again; give long content in several calls.";
const INCOMPLETE = "its arguments are not a complete JSON object. Call it again with all of them.";
const TOO_MANY = `its arguments have more than ${ARGUMENTS_SHAPE.values} values or are nested deeper than ${ARGUMENTS_SHAPE.depth} levels. Call it again with fewer; give long lists in several calls.`;

const refusal = ({ id = "", name }: ToolCall, why: string): ToolMessage =>
  new ToolMessage({
    content: `Error: ${name} was not run: ${why}`,
    name,
    tool_call_id: id,
    status: "error",
  });
