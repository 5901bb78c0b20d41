/** Converts streams of chat completions, and of the Messages API, as servers write them, to the protocol's form. */
import { randomUUID } from "node:crypto";
import { isRecord, memberOf, recordOf } from "../../core/unknown.ts";
import { asArray } from "./tool-schema.ts";

export type Json = Record<string, unknown>;

interface OpenCall {
  /** Its id, and its index, as the server writes them. */
  id: string;
  index: unknown;
  name: string;
}

/** Completes every piece with a role, plain text, and calls with an index, an id and a name; counts tokens as OpenAI. */
export async function* strictChunks(chunks: AsyncIterable<unknown>): AsyncGenerator {
  const calls: OpenCall[] = [];
  for await (const given of chunks) {
    const { usage, ...others } = recordOf(given);
    let chunk = given;
    if (isRecord(usage)) {
      // Others name cached tokens in another way or count them beside the prompt, and reasoning in the total only.
      const count = (value: unknown): number => Number(value) || 0;
      const details = recordOf(usage["prompt_tokens_details"]);
      const names = ["cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens"];
      const cached = Math.max(...[details, usage].flatMap((part) => names.map((name) => count(part[name]))));
      const asked = count(usage["prompt_tokens"]);
      const input = cached > asked ? asked + cached : asked;
      const output = Math.max(count(usage["completion_tokens"]), count(usage["total_tokens"]) - input);
      const told = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
      const prompt_tokens_details = { ...details, cached_tokens: cached };
      chunk = { ...others, usage: { ...usage, ...told, prompt_tokens_details } };
    }
    const [choice] = asArray(recordOf(chunk)["choices"]);
    if (!isRecord(choice)) yield chunk;
    // Some gateways answer a request for a stream with the whole message.
    else yield { ...recordOf(chunk), choices: [{ ...choice, delta: strictDelta(choice, calls) }] };
  }
}

function strictDelta({ delta, message }: Json, calls: OpenCall[]): Json {
  const given = recordOf(delta ?? message);
  const { content, tool_calls, reasoning_content: thoughts = given["reasoning"], ...others } = given;
  const pieces = [tool_calls ?? []].flat().filter(isRecord);
  const text = [content].flat().map((block) => textOrEmpty(recordOf(block)["text"] ?? block));
  return {
    ...others,
    // LangChain takes a piece without a role for a message of somebody else, and drops its calls.
    role: "assistant",
    // OpenAI puts the words of a refusal into a field of their own.
    content: text.join("") || textOrEmpty(given["refusal"]),
    ...(typeof thoughts === "string" ? { reasoning_content: thoughts } : {}),
    ...(pieces.length > 0 ? { tool_calls: pieces.map((piece) => strictPiece(piece, calls)) } : {}),
  };
}

export const textOrEmpty = (value: unknown): string => (typeof value === "string" ? value : "");

function strictPiece({ index, id: givenId, function: called, ...others }: Json, calls: OpenCall[]): Json {
  const [id, name] = [textOrEmpty(givenId), textOrEmpty(recordOf(called)["name"])];
  const { arguments: args = "" } = recordOf(called);
  const known = openCall({ id, index, name }, calls);
  const call = known ?? { id, index, name };
  if (known === undefined) calls.push(call);
  const isNamed = call.name !== "" && known !== undefined;
  call.id ||= id;
  call.name ||= name;
  return {
    ...others,
    index: calls.indexOf(call),
    // Later pieces belong to it by their index.
    ...(known === undefined ? { id: id || `call_${randomUUID().replaceAll("-", "")}` } : {}),
    function: {
      ...(isNamed ? {} : { name: call.name }),
      arguments: typeof args === "string" ? args : args === null ? "" : JSON.stringify(args),
    },
  };
}

/** The call that a piece continues; undefined if it begins one. Some servers repeat an index, and some an id. */
function openCall({ id, index, name }: OpenCall, calls: readonly OpenCall[]): OpenCall | undefined {
  const isOf = (call: OpenCall): boolean => call.id === id && (name === "" || call.index === index);
  const byId = id === "" ? undefined : calls.findLast(isOf);
  if (byId) return byId;
  const byIndex = calls.findLast((call) => call.index === index);
  if (name === "") return byIndex ?? calls.at(-1);
  const isContinued = byIndex?.name === "" || (id === "" && byIndex?.name === name);
  return isContinued ? byIndex : undefined;
}

/** Completes every event with its usage and delta, and every call with an id and its arguments in pieces. */
export async function* strictEvents(events: AsyncIterable<unknown>): AsyncGenerator {
  /** Arguments that came with the beginning of the open call. */
  let whole = "";
  let hasInput = false;
  for await (const given of events) {
    const event = recordOf(given);
    const { type, index, delta, content_block: block } = event;
    if (type === "message_start") hasInput = inputTokens(recordOf(event["message"])["usage"]) > 0;
    // Some servers count the request at the end only, where LangChain does not look for it.
    if (type === "message_delta" && !hasInput && inputTokens(event["usage"]) > 0) {
      hasInput = true;
      const usage = { ...recordOf(event["usage"]), output_tokens: 0 };
      yield { type: "message_start", message: { content: [], usage } };
    }
    if (type === "content_block_stop" && whole !== "")
      yield { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: whole } };
    if (type === "content_block_delta" && !isRecord(delta)) continue;
    if (type !== "ping") whole = "";
    if (type === "content_block_start" && recordOf(block)["type"] === "tool_use") {
      const { id: given, input, ...others } = recordOf(block);
      whole = isRecord(input) && Object.keys(input).length > 0 ? JSON.stringify(input) : textOrEmpty(input);
      const id = textOrEmpty(given) || `toolu_${randomUUID().replaceAll("-", "")}`;
      yield { ...event, content_block: { ...others, id, input: {} } };
    } else yield strictEvent(event);
  }
}

function inputTokens(usage: unknown): number {
  const names = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
  return names.reduce((sum, name) => sum + (Number(memberOf(usage, name)) || 0), 0);
}

function strictEvent(event: Json): Json {
  const { type, message, usage, delta } = event;
  if (type === "message_delta")
    return { ...event, delta: recordOf(delta), usage: { output_tokens: 0, ...recordOf(usage) } };
  if (type !== "message_start") return event;
  const told: Json = { content: [], ...recordOf(message) };
  const used = { input_tokens: 0, output_tokens: 0, ...recordOf(told["usage"]) };
  return { ...event, message: { ...told, usage: used } };
}
