import { AIMessage } from "@langchain/core/messages";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { type AgentTool, toAgentTool } from "../agent-tool.ts";
import type { AgentMiddleware, HookName, Middleware } from "./middleware.ts";

type AnyHook = NonNullable<Middleware[HookName]>;

type Source = Omit<Middleware, HookName> & Partial<Record<HookName, AnyHook | { hook: AnyHook }>>;

const HOOKS: readonly HookName[] = ["beforeAgent", "beforeModel", "afterModel", "afterAgent"];

/** Middleware in our form: LangChain's may wrap hooks in objects and carries LangChain tools. */
export function adaptMiddleware(input: AgentMiddleware): Middleware {
  // Both forms agree on names and calling conventions; what differs is handled field by field here.
  const source = input as Source;
  const hooks = Object.fromEntries(
    HOOKS.flatMap((name) => {
      const hook = source[name];
      if (!hook) return [];
      return [[name, typeof hook === "function" ? hook.bind(source) : hook.hook]];
    }),
  );
  return {
    name: source.name,
    ...(source.stateSchema ? { stateSchema: source.stateSchema } : {}),
    ...(source.tools ? { tools: source.tools.map(adaptTool) } : {}),
    ...(source.gate ? { gate: source.gate } : {}),
    ...hooks,
    ...adaptWrappers(source),
  };
}

function adaptTool(tool: AgentTool | StructuredToolInterface): AgentTool {
  return "offered" in tool ? tool : toAgentTool(tool);
}

function adaptWrappers(source: Source): Pick<Middleware, "wrapModelCall" | "wrapToolCall"> {
  const wrapModelCall = source.wrapModelCall?.bind(source);
  const wrapToolCall = source.wrapToolCall?.bind(source);
  return {
    ...(wrapModelCall
      ? {
          wrapModelCall: async (request, next) => {
            const reply: unknown = await wrapModelCall(request, next);
            if (AIMessage.isInstance(reply)) return reply;
            throw new Error(`Middleware ${source.name} must answer a model call with an assistant message.`);
          },
        }
      : {}),
    ...(wrapToolCall ? { wrapToolCall: async (request, next) => wrapToolCall(request, next) } : {}),
  };
}
