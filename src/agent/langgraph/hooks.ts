import type { BaseMessage } from "@langchain/core/messages";
import { Command, type Send } from "@langchain/langgraph";
import type { HookName } from "../contracts/middleware.ts";
import type { JumpTarget } from "../contracts/state.ts";
import { runHooks } from "../layers/compose.ts";
import type { AgentDefinition } from "./definition.ts";
import type { AgentNode } from "./graph.ts";
import { showMessages } from "./outcome.ts";
import { agentRuntime } from "./step-of-task.ts";

/** The node for all hooks of one kind. */
export function hookNode(
  definition: AgentDefinition,
  hook: HookName,
  next: (messages: readonly BaseMessage[]) => Send[] | string,
  jump: (target: JumpTarget, messages: readonly BaseMessage[]) => Send[] | string,
): AgentNode {
  const layers = definition.middleware.filter((layer) => layer[hook]);
  return async (before, config) => {
    const { update, state, jumpTo } = await runHooks(layers, hook, before, agentRuntime(config));
    const goto = jumpTo ? jump(jumpTo, state.messages) : next(state.messages);
    return showMessages(new Command({ update, goto }));
  };
}
