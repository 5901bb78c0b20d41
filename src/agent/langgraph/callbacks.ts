/** Reports calls to LangChain's callbacks, where there are any. */
import { CallbackManager } from "@langchain/core/callbacks/manager";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { DynamicStructuredTool } from "@langchain/core/tools";
import type { CallResult } from "../contracts/middleware.ts";
import { toOutcome } from "./outcome.ts";

/**
 * True if a task has observers: callbacks, or tracers that LangChain adds by environment and context. LangChain also
 * looks for those when a graph begins. If it finds none, the tasks of that graph get no callbacks.
 */
export function isObserved({ callbacks }: RunnableConfig): boolean {
  if (callbacks === undefined) return false;
  const manager = CallbackManager.configure(callbacks);
  return manager !== undefined && manager.handlers.length > 0;
}

/** Reports a call to observers (tracers, `streamEvents`, stream mode `tools`), as LangChain's own tools do. */
export async function withToolCallbacks(
  call: ToolCall,
  offered: DynamicStructuredTool,
  config: RunnableConfig,
  work: () => Promise<CallResult>,
): Promise<CallResult> {
  if (!isObserved(config)) return work();
  const { name, args, id } = call;
  const { callbacks, tags, metadata } = config;
  const manager = CallbackManager.configure(callbacks, undefined, tags, undefined, metadata);
  if (!manager) return work();
  const tool = offered.toJSON();
  // Tracers take arguments as they are, though LangChain's type is text: its own tools pass them so.
  const input = args as unknown as string;
  const unused = [undefined, undefined, undefined, undefined] as const;
  const told = await manager.handleToolStart(tool, input, ...unused, name, id);
  try {
    const result = await work();
    await told.handleToolEnd(toOutcome(call, result));
    return result;
  } catch (error) {
    await told.handleToolError(error);
    throw error;
  }
}
