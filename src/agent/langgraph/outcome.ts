/** Results of calls as the messages and commands of LangChain, and back; records of them in LangGraph's encoding. */
import { BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import { Command, MemorySaver, Send, isCommand } from "@langchain/langgraph";
import { defined } from "../../core/unknown.ts";
import type { Effects } from "../calls/effects.ts";
import type { CallIdentity, CallResult, EffectLog, StoredOutcome } from "../contracts/middleware.ts";

/** The result of a call as LangChain has it: a message, or a change of the state with any number of messages. */
export type Outcome = ToolMessage | Command;

/** Shows a result to LangChain and the graph, with all other fields of a LangChain tool's answer. */
export function toOutcome(call: ToolCall, result: CallResult): Outcome {
  const { native, update } = result;
  if (isCommand(native)) return toCommand(call, result, native);
  const message = toMessage(call, result);
  return update ? new Command({ update: { messages: [message], ...update } }) : message;
}

function toMessage(
  { id = "", name }: ToolCall,
  { content, status, artifact, native }: CallResult,
): ToolMessage {
  if (!ToolMessage.isInstance(native))
    return new ToolMessage({ content, name, tool_call_id: id, status: status ?? "success", artifact });
  const isSame = native.content === content && native.status === status && native.artifact === artifact;
  if (isSame) return native;
  // A copy of its class with all its fields, in their order.
  const copy = Object.assign(Object.create(Object.getPrototypeOf(native) as object) as ToolMessage, native);
  const own = { content, ...defined({ status, artifact }) };
  return Object.assign(copy, own, { lc_kwargs: { ...native.lc_kwargs, ...own } });
}

function toCommand(call: ToolCall, result: CallResult, native: Command): Command {
  const { goto, graph, resume, update: given } = native;
  const results = [result, ...(result.further ?? [])];
  const place = (message: unknown): unknown => {
    const own = ToolMessage.isInstance(message) ? results.shift() : undefined;
    return own ? toMessage(call, { ...own, native: message }) : message;
  };
  const others = defined({ goto, graph, resume });
  const added = result.update ?? {};
  if (Array.isArray(given)) return new Command({ ...others, update: [...given, ...Object.entries(added)] });
  const messages = messagesIn(native)?.map(place) ?? given?.["messages"];
  return new Command({ ...others, update: { ...defined({ messages }), ...added } });
}

export function fromOutcome(outcome: Outcome): CallResult {
  if (!isCommand(outcome)) return fromMessage(outcome);
  const shown = (messagesIn(outcome) ?? []).filter((message) => ToolMessage.isInstance(message));
  const [first = { content: "" }, ...further] = shown.map(fromMessage);
  const { messages: _shown, ...update } = Array.isArray(outcome.update) ? {} : { ...outcome.update };
  return {
    ...first,
    native: outcome,
    ...(Object.keys(update).length > 0 ? { update } : {}),
    ...(further.length > 0 ? { further } : {}),
  };
}

const fromMessage = (message: ToolMessage): CallResult => ({
  content: message.content,
  ...defined({ status: message.status, artifact: message.artifact as unknown }),
  native: message,
});

function messagesIn({ update }: Command): unknown[] | undefined {
  const messages: unknown = Array.isArray(update) ? undefined : update?.["messages"];
  return Array.isArray(messages) ? messages : undefined;
}

/** Shows messages to stream mode `messages`, which does not look into commands; `streamed` ones were shown before. */
export function showMessages(answer: Command, streamed: readonly BaseMessage[] = []): Command {
  const { update = {} } = answer;
  const { messages } = (Array.isArray(update) ? Object.fromEntries(update) : update) ?? {};
  const isShown = (message: unknown) => BaseMessage.isInstance(message) && !streamed.includes(message);
  const shown = [messages].flat().filter(isShown);
  return shown.length === 0 ? answer : Object.assign(answer, { messages: shown });
}

/** LangGraph exports its encoding through its savers only. */
const { serde } = new MemorySaver();

/** Records calls with outside effects. */
export const storedEffects = (log: EffectLog, at: CallIdentity): Effects => ({
  find: async () => {
    const known = await log.find(at);
    if (known?.outcome) return { result: fromOutcome(await revive(known.outcome)) };
    if (known?.handle === undefined) return known && {};
    return { handle: JSON.parse(Buffer.from(known.handle).toString()) as unknown };
  },
  begin: (tool) => log.begin(at, tool),
  finish: async (call, result) => log.finish(at, await store(toOutcome(call, result))),
  keep: (handle) => log.keep(at, Buffer.from(JSON.stringify(handle))),
  withdraw: () => log.withdraw(at),
});

async function store(outcome: Outcome): Promise<StoredOutcome> {
  const { update, goto, graph, resume } = isCommand(outcome) ? outcome : {};
  const plain = isCommand(outcome) ? { command: { update, goto, graph, resume } } : { message: outcome };
  const [type, data] = await serde.dumpsTyped(plain);
  return { type, data };
}

async function revive({ type, data }: StoredOutcome): Promise<Outcome> {
  // Written by `store` from an outcome.
  const plain = (await serde.loadsTyped(type, data)) as { message: ToolMessage } | { command: StoredCommand };
  if ("message" in plain) return plain.message;
  const { goto, ...rest } = plain.command;
  const targets = [goto ?? []].flat().map((to) => (typeof to === "string" ? to : new Send(to.node, to.args)));
  return new Command({ ...rest, ...(goto === undefined ? {} : { goto: targets }) });
}

type Target = string | { node: string; args: unknown };

interface StoredCommand {
  update?: Record<string, unknown>;
  goto?: Target | Target[];
  graph?: string;
  resume?: unknown;
}
