/** Stores thoughts and signatures, which LangChain's packages drop, with a reply, and sends them back to their provider. */
import { AIMessage, AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { byIdentity } from "../../core/by-identity.ts";
import { copyMessage } from "../messages/messages.ts";
import type { Json } from "./strict-chunks.ts";
import { asArray } from "./tool-schema.ts";
import { isRecord, recordOf } from "../../core/unknown.ts";

/** The part of a reply that LangChain has no place for. */
interface Extras {
  /** The provider, by the address that answered. */
  origin: string;
  /** The name under which the thoughts came, where it is not the usual one. */
  field?: "reasoning";
  /** OpenRouter's. */
  reasoning_details: Json[];
  /** `extra_content` of calls, by the index of the call: Gemini signs its thoughts there. */
  calls: Record<string, unknown>;
}

const EXTRAS = "provider_extras";
/** The name of DeepSeek, Kimi and Qwen. LangChain keeps it under the same one, and does not send it. */
const THOUGHTS = "reasoning_content";

/** Makes a model of this protocol carry them; `unpacked` writes them into a request. Other models stay as they are. */
export function carryExtras<Model extends object>(model: Model, origin: string): Model {
  const methods = ["_convertCompletionsDeltaToBaseMessageChunk", "_streamResponseChunks"];
  if (!methods.every((name) => typeof Reflect.get(model, name) === "function")) return model;
  const completions = model as Model & {
    _convertCompletionsDeltaToBaseMessageChunk(delta: Json, ...more: unknown[]): AIMessageChunk;
    _streamResponseChunks(messages: BaseMessage[], ...more: unknown[]): AsyncGenerator<ChatGenerationChunk>;
  }; // it has the methods
  const deltas = new WeakMap<object, Json>();
  const convert = completions._convertCompletionsDeltaToBaseMessageChunk.bind(completions);
  completions._convertCompletionsDeltaToBaseMessageChunk = (delta, ...more) => {
    const chunk = convert(delta, ...more);
    deltas.set(chunk, delta);
    return chunk;
  };
  const stream = completions._streamResponseChunks.bind(completions);
  const carrying = byIdentity((message: BaseMessage) => carried(message, origin));
  completions._streamResponseChunks = async function* (messages, ...more) {
    const extras: Extras = { origin, reasoning_details: [], calls: {} };
    let isGiven = false;
    for await (const piece of stream(messages.map(carrying), ...more)) {
      isGiven = take(deltas.get(piece.message) ?? {}, extras) || isGiven;
      yield piece;
    }
    if (!isGiven) return;
    const message = new AIMessageChunk({ content: "", additional_kwargs: { [EXTRAS]: extras } });
    yield new ChatGenerationChunk({ text: "", message });
  };
  return model;
}

/** Adds those of one piece of an answer. Returns true if there were any. */
function take({ reasoning_details: details, tool_calls: calls, ...delta }: Json, extras: Extras) {
  for (const detail of asArray(details).filter(isRecord)) takeDetail(detail, extras.reasoning_details);
  const signed = asArray(calls).filter((call) => isRecord(recordOf(call)["extra_content"]));
  for (const call of signed.map(recordOf))
    extras.calls[typeof call["index"] === "number" ? call["index"] : 0] = call["extra_content"];
  if (typeof delta["reasoning"] === "string") extras.field = "reasoning";
  return typeof delta[THOUGHTS] === "string" || asArray(details).length > 0 || signed.length > 0;
}

function takeDetail(piece: Json, details: Json[]): void {
  const { index, type } = piece;
  const isSame = (detail: Json): boolean => detail["index"] === index && detail["type"] === type;
  const known = index === undefined ? undefined : details.find(isSame);
  if (!known) return void details.push({ ...piece });
  for (const [name, value] of Object.entries(piece)) {
    const before = ["text", "summary", "data"].includes(name) ? known[name] : undefined;
    if (typeof before === "string" && typeof value === "string") known[name] = before + value;
    else if (value !== null) known[name] = value;
  }
}

/** LangChain passes this field of a message on as it is. */
const PASSED = "function_call";
const PACKED = Symbol("extras");
type Packed = Pick<Extras, "calls"> & { fields: Json };

function carried(message: BaseMessage, origin: string): BaseMessage {
  const { additional_kwargs: kwargs, content } = message;
  const given = kwargs[EXTRAS] as Extras | undefined; // written above only
  // Thoughts that stood in the text are not signed: any model may have them.
  const isFor = given === undefined ? kwargs["tagged_thoughts"] !== undefined : given.origin === origin;
  if (!AIMessage.isInstance(message) || !isFor) return message;
  const { reasoning_details = [], calls = {} } = given ?? {};
  const fields = {
    ...(typeof kwargs[THOUGHTS] === "string" ? { [given?.field ?? THOUGHTS]: kwargs[THOUGHTS] } : {}),
    ...(reasoning_details.length > 0 ? { reasoning_details } : {}),
  };
  const packed = { [PACKED]: { fields, calls } satisfies Packed };
  // LangChain types the field as the calls of a former version.
  return copyMessage(message, { content, additional_kwargs: { ...kwargs, [PASSED]: packed as never } });
}

/** A message of a request with the extras that it carries. */
export function unpacked({ [PASSED]: passed, ...message }: Json): Json {
  const packed = Reflect.get(Object(passed), PACKED) as Packed | undefined; // written above only
  if (packed === undefined) return passed === undefined ? message : { ...message, [PASSED]: passed };
  const calls = asArray(message["tool_calls"]).map((call, index) =>
    Object.hasOwn(packed.calls, index) ? { ...recordOf(call), extra_content: packed.calls[index] } : call,
  );
  return { ...message, ...packed.fields, ...(calls.length > 0 && { tool_calls: calls }) };
}
