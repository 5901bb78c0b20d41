import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import { interrupt, isGraphInterrupt } from "@langchain/langgraph";
import { type ToolResult, toolError } from "../tools/tool.ts";
import type { AgentTool, CallScope } from "./agent-tool.ts";
import type { Decision, HitlRequest, HitlResponse } from "./events.ts";
import { responseProblem } from "./middleware/human-in-the-loop.ts";
import type { Gate, ToolCallRequest, ToolGate } from "./middleware/middleware.ts";
import { questionId } from "./pending.ts";
import { sameCalls } from "./same-calls.ts";
import { agentPath, emit } from "./step.ts";

/** A call that may run, exactly as it stands here, or the answer in its place. */
export type Verdict = { run: true; toolCall: ToolCall; edited: boolean } | { run: false; result: ToolResult };

/** Asks people about one call: as the model made it and, when middleware changes it, once more. */
export class Approval {
  readonly #gates: readonly ToolGate[];
  readonly #tools: ReadonlyMap<string, AgentTool>;
  readonly #scope: CallScope;
  #questions = 0;
  #hasBegun = false;

  constructor(gates: readonly ToolGate[], tools: ReadonlyMap<string, AgentTool>, scope: CallScope) {
    this.#gates = gates;
    this.#tools = tools;
    this.#scope = scope;
  }

  /** The call runs now: from here on nobody can be asked, because its task would start over and run it again. */
  begin(): void {
    this.#hasBegun = true;
  }

  /**
   * Asks when a gate demands it.
   *
   * The task stops here until there is an answer and starts again from its top then, so nothing with an
   * effect may come before. An answer that does not fit leaves the request open under the same id.
   */
  async of(request: ToolCallRequest): Promise<Verdict> {
    const { toolCall } = request;
    const gate = await firstGate(this.#gates, request);
    if (!gate) return { run: true, toolCall, edited: false };
    if (this.#hasBegun) return { run: false, result: toolError(changedTooLate(toolCall)) };
    this.#questions += 1;
    const number = this.#questions > 1 ? { question: this.#questions } : {};
    const review = { ...(await reviewRequest(toolCall, gate, this.#tools, this.#scope)), ...number };
    for (;;) {
      const answer: unknown = ask(review, this.#scope.config);
      if (responseProblem(review, answer)) continue;
      const [decision] = (answer as HitlResponse).decisions; // checked by responseProblem
      if (decision) return apply(decision, toolCall, this.#tools);
    }
  }
}

const changedTooLate = ({ name }: ToolCall): string =>
  `${name} was changed when it had run already, and needs approval as it is now. The changed call was not run.`;

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
  const tool = tools.get(name);
  const preview = await tool?.preview(args, context);
  const same = tool && preview ? { same: sameCalls(tool, args, preview) } : {};
  const description =
    gate.description ??
    `Tool execution requires approval\n\nTool: ${name}\n\n${preview?.detail ?? JSON.stringify(args, null, 2)}`;
  const argsSchema = gate.argsSchema ? { argsSchema: gate.argsSchema } : {};
  return {
    actionRequests: [{ name, args, description, toolCallId: id, ...(preview ? { preview } : {}), ...same }],
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
      const id = error.interrupts[0]?.id;
      if (id) {
        const interruptId = questionId(id, request);
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
