import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import { interrupt, isGraphInterrupt } from "@langchain/langgraph";
import { type ToolResult, toolError } from "../tools/tool.ts";
import type { AgentTool, CallScope } from "./agent-tool.ts";
import type { Decision, HitlRequest, HitlResponse } from "./events.ts";
import { responseProblem } from "./middleware/human-in-the-loop.ts";
import type { Gate, ToolCallRequest, ToolGate } from "./middleware/middleware.ts";
import { agentPath, emit } from "./step.ts";

/** A call that may run, exactly as it stands here, or the answer in its place. */
export type Verdict = { run: true; toolCall: ToolCall; edited: boolean } | { run: false; result: ToolResult };

/**
 * Asks a person about a call when a gate demands it.
 *
 * The task stops here until there is an answer and starts again from its top then, so nothing with an
 * effect may come before. An answer that does not fit leaves the request open under the same id.
 */
export async function authorize(
  request: ToolCallRequest,
  gates: readonly ToolGate[],
  tools: ReadonlyMap<string, AgentTool>,
  scope: CallScope,
): Promise<Verdict> {
  const { toolCall } = request;
  const gate = await firstGate(gates, request);
  if (!gate) return { run: true, toolCall, edited: false };
  const question = await reviewRequest(toolCall, gate, tools, scope);
  for (;;) {
    const answer: unknown = ask(question, scope.config);
    if (responseProblem(question, answer)) continue;
    const [decision] = (answer as HitlResponse).decisions; // checked by responseProblem
    if (decision) return apply(decision, toolCall, tools);
  }
}

async function firstGate(gates: readonly ToolGate[], request: ToolCallRequest): Promise<Gate | undefined> {
  for (const gate of gates) {
    const asked = await gate(request);
    if (asked) return asked;
  }
  return undefined;
}

async function reviewRequest(
  { id = "", name, args }: ToolCall,
  gate: Gate,
  tools: ReadonlyMap<string, AgentTool>,
  { context, config }: CallScope,
): Promise<HitlRequest> {
  const preview = await tools.get(name)?.preview(args, context);
  const description =
    gate.description ??
    `Tool execution requires approval\n\nTool: ${name}\n\n${preview?.detail ?? JSON.stringify(args, null, 2)}`;
  const argsSchema = gate.argsSchema ? { argsSchema: gate.argsSchema } : {};
  return {
    actionRequests: [{ name, args, description, toolCallId: id, ...(preview ? { preview } : {}) }],
    reviewConfigs: [{ actionName: name, allowedDecisions: gate.allowedDecisions, ...argsSchema }],
    agent: agentPath(config),
  };
}

/** LangGraph's `interrupt`, telling watchers about a question that is new. */
function ask(request: HitlRequest, config: RunnableConfig): unknown {
  try {
    return interrupt(request);
  } catch (error) {
    if (isGraphInterrupt(error)) {
      const interruptId = error.interrupts[0]?.id;
      if (interruptId) {
        emit(config, { kind: "approval_requested", agent: agentPath(config), interruptId, request });
      }
    }
    throw error;
  }
}

function apply(decision: Decision, toolCall: ToolCall, tools: ReadonlyMap<string, AgentTool>): Verdict {
  if (decision.type === "approve") return { run: true, toolCall, edited: false };
  if (decision.type === "reject") {
    const text =
      decision.message ?? `User rejected the tool call for ${toolCall.name} with id ${toolCall.id}`;
    return { run: false, result: { content: text, status: "error" } };
  }
  const { name, args } = decision.editedAction;
  const tool = tools.get(name);
  if (!tool) {
    return {
      run: false,
      result: toolError(`The person changed the call to '${name}', which is not a tool here.`),
    };
  }
  const checked = tool.validate(args);
  if (!checked.ok)
    return { run: false, result: toolError(`The person changed the call. ${checked.message}`) };
  return { run: true, toolCall: { ...toolCall, name, args: checked.args }, edited: true };
}
