import type { Logger } from "../../core/logger.ts";
import { callSummary } from "../calls/report-call.ts";
import type { AgentRuntime, Middleware } from "../contracts/middleware.ts";

/** One log line for each model call and each tool call. */
export function debugMiddleware(log: Logger): Middleware {
  const agentOf = (runtime: AgentRuntime): string => runtime.step.agent.map(({ name }) => name).join("/");
  return {
    name: "DebugMiddleware",
    wrapModelCall: async (request, next) => {
      const reply = await next(request);
      log.debug("model_call", {
        agent: agentOf(request.runtime),
        messages: request.messages.length,
        tools: request.tools.length,
        calls: (reply.tool_calls ?? []).map(({ name }) => name),
        usage: reply.usage_metadata,
      });
      return reply;
    },
    wrapCall: async (request, next) => {
      const { name, args, id } = request.toolCall;
      const result = await next(request);
      const { status = "success" } = result;
      const agent = agentOf(request.runtime);
      log.debug("tool_call", { agent, callId: id, call: callSummary(name, args), status });
      return result;
    },
  };
}
