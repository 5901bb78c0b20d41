/** Runs subagents that were not built here: graphs of LangGraph, agents of LangChain, anything with `invoke`. */
import {
  AIMessage,
  BaseMessage,
  type BaseMessageLike,
  ChatMessage,
  coerceMessageLikeToMessage,
} from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import type { AgentState } from "../contracts.ts";
import type { SubagentRunnable } from "../definition/agent-definition.ts";
import { CHECKPOINTER_KEY } from "../engine/langgraph.ts";

/** The line about files in the report of a foreign subagent that shows no state before its end. */
export const FILES_NOT_KNOWN =
  "Which files it had changed is not known: it does not tell its state while it works.";

/** A runnable that tells its state while it works, with a graph that reads it from checkpoints. */
interface StatefulRunnable {
  stream(input: Record<string, unknown>, config: RunnableConfig): Promise<AsyncIterable<unknown>>;
}

interface Graph extends StatefulRunnable {
  withConfig(config: RunnableConfig): Graph;
  getState(config: RunnableConfig): Promise<{ values: unknown }>;
}

/** The runnable itself, if it is a graph of LangGraph or an agent of LangChain, which has one inside. */
export function statefulRunnable(runnable: SubagentRunnable): StatefulRunnable | undefined {
  // Both have LangGraph's `stream`.
  return graphIn(runnable) && (runnable as SubagentRunnable & StatefulRunnable);
}

/** The state that a foreign subagent had reached; `undefined`: no checkpoint of ours has it. */
export async function stateReached(
  runnable: SubagentRunnable,
  checkpointer: BaseCheckpointSaver,
  address: Readonly<{ thread_id: unknown; checkpoint_ns: string }>,
): Promise<Partial<AgentState> | undefined> {
  const graph = graphIn(runnable);
  if (!graph || !(await checkpointer.getTuple({ configurable: address }))) return undefined;
  // A copy, because a graph reads parts of its state by a checkpointer of its own.
  const kept = Object.assign(graph.withConfig({}), { checkpointer });
  const configurable = { ...address, [CHECKPOINTER_KEY]: checkpointer };
  const { values } = await kept.getState({ configurable });
  return foreignState(values);
}

/**
 * The result of a foreign subagent as the state of an agent. Its messages may be plain objects, as those of a
 * graph on a server are; a text or a message alone is its answer.
 */
export function foreignState(output: unknown): Partial<AgentState> {
  if (typeof output === "string") return { messages: [new AIMessage(output)] };
  if (!isRecord(output)) return {};
  if (BaseMessage.isInstance(output) || isMessageFields(output)) return { messages: [toMessage(output)] };
  const { messages, structuredResponse, ...rest } = output;
  return {
    ...rest,
    // A server tells channels that hold nothing as null.
    ...(structuredResponse === undefined || structuredResponse === null ? {} : { structuredResponse }),
    ...(Array.isArray(messages) ? { messages: messages.filter(isMessageLike).map(toMessage) } : {}),
  };
}

const isMessageLike = (value: unknown): value is BaseMessageLike =>
  BaseMessage.isInstance(value) || (isRecord(value) && isMessageFields(value)) || Array.isArray(value);

const isMessageFields = (value: Record<string, unknown>): boolean =>
  ("role" in value || "type" in value) && ("content" in value || "kwargs" in value);

/** Names of types as LangChain's classes have them, such as `AIMessageChunk`, mean the same as `ai`. */
function toMessage(given: unknown): BaseMessage {
  if (BaseMessage.isInstance(given)) return given;
  const fields: Record<string, unknown> = isRecord(given) ? given : {};
  const { type, role, content } = fields;
  const kind = typeof type === "string" ? type.replace(/Message(Chunk)?$/, "").toLowerCase() : undefined;
  const like = Array.isArray(given) ? given : { ...fields, ...(kind === undefined ? {} : { type: kind }) };
  try {
    return coerceMessageLikeToMessage(like as BaseMessageLike); // anything else throws
  } catch {
    return new ChatMessage(
      typeof content === "string" ? content : "",
      typeof role === "string" ? role : "other",
    );
  }
}

/** The configuration for a graph on a server, which is sent there: nothing of ours, which holds this thread's files. */
export function configFor(runnable: SubagentRunnable, config: RunnableConfig): RunnableConfig {
  if (!isGraph(runnable) || !("graphId" in runnable)) return config;
  const shared = Object.entries(config.configurable ?? {}).filter(([key]) => !key.startsWith("__"));
  return { ...config, configurable: Object.fromEntries(shared) };
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function graphIn(runnable: unknown): Graph | undefined {
  if (isGraph(runnable)) return runnable;
  const inner: unknown =
    typeof runnable === "object" && runnable !== null && "graph" in runnable ? runnable.graph : undefined;
  return isGraph(inner) ? inner : undefined;
}

/** LangGraph marks its graphs: several versions of its package may be installed. */
const isGraph = (value: unknown): value is Graph =>
  typeof value === "object" && value !== null && "lg_is_pregel" in value && value.lg_is_pregel === true;
