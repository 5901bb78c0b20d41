import { CallbackManager } from "@langchain/core/callbacks/manager";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { DynamicStructuredTool } from "@langchain/core/tools";
import { isObserved } from "./direct-tasks.ts";

/**
 * Runs a call and tells whoever observes the graph through callbacks (tracers, `streamEvents`, stream mode
 * `tools`) of its beginning and end, as LangChain's own tools do.
 */
export function toldCall<Outcome>(
  call: ToolCall,
  offered: DynamicStructuredTool,
  config: RunnableConfig,
  work: () => Promise<Outcome>,
): Promise<Outcome> {
  return isObserved(config) ? tell(call, offered, config, work) : work();
}

async function tell<Outcome>(
  { name, args, id }: ToolCall,
  offered: DynamicStructuredTool,
  { callbacks, tags, metadata }: RunnableConfig,
  work: () => Promise<Outcome>,
): Promise<Outcome> {
  const manager = CallbackManager.configure(callbacks, undefined, tags, undefined, metadata);
  if (!manager) return work();
  const tool = offered.toJSON();
  // Tracers take arguments as they are, though LangChain's type says text: its own tools give them so.
  const input = args as unknown as string;
  const told = await manager.handleToolStart(
    tool,
    input,
    undefined,
    undefined,
    undefined,
    undefined,
    name,
    id,
  );
  try {
    const outcome = await work();
    await told.handleToolEnd(outcome);
    return outcome;
  } catch (error) {
    await told.handleToolError(error);
    throw error;
  }
}
