import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseMessage } from "@langchain/core/messages";
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import type { FilesUpdate } from "../backends/backend.ts";
import { type AgentState, filesReducer } from "./state.ts";

/**
 * What the finished calls of an unfinished step brought. LangGraph forgets it when a thread goes on with a
 * new message instead, and calls that took effect would be told as cancelled.
 */
export async function finishedCalls(
  checkpointer: BaseCheckpointSaver,
  { thread_id, checkpoint_id }: NonNullable<RunnableConfig["configurable"]>,
): Promise<Partial<AgentState>> {
  const at = { thread_id, checkpoint_ns: "", ...(checkpoint_id === undefined ? {} : { checkpoint_id }) };
  const writes = (await checkpointer.getTuple({ configurable: at }))?.pendingWrites ?? [];
  const of = (name: string): unknown[] =>
    writes.flatMap(([, channel, value]) => (channel === name && value !== undefined ? [value] : []));
  const messages = of("messages").flat() as BaseMessage[]; // our channels, and so are the next two
  const files = filesReducer(true)({}, of("files") as FilesUpdate[]);
  const todos = of("todos").at(-1) as AgentState["todos"] | undefined;
  return {
    ...(messages.length > 0 ? { messages } : {}),
    ...(Object.keys(files).length > 0 ? { files } : {}),
    ...(todos ? { todos } : {}),
  };
}
