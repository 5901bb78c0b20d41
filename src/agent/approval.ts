import { createHash } from "node:crypto";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import { interrupt, isGraphInterrupt } from "@langchain/langgraph";
import { type ToolResult, toolError } from "../tools/tool.ts";
import type { AgentTool, CallScope } from "./agent-tool.ts";
import type { Decision, HitlRequest, HitlResponse } from "./events.ts";
import type { AgentParts } from "./agent-parts.ts";
import { checkEdit, type EditRules } from "./check-call.ts";
import { canonicalJson } from "../core/canonical-json.ts";
import { cutMiddle } from "../core/text.ts";
import type { CallPreview } from "../tools/tool.ts";
import { ALL_DECISIONS, MAX_DESCRIPTION, responseProblem } from "./middleware/human-in-the-loop.ts";
import type { Gate, ToolCallRequest, ToolGate } from "./middleware/middleware.ts";
import { isRequest, questionId } from "./pending.ts";
import { sameCalls } from "./same-calls.ts";
import { refuseSharedAnswer } from "./shared-answers.ts";
import { agentPath, emit, lastQuestion } from "./step.ts";

/** A call that may run, exactly as it stands here, or the answer in its place. */
export type Verdict = { run: true; toolCall: ToolCall; edited: boolean } | { run: false; result: ToolResult };

/** What asking needs to know of the agent. */
type Parts = EditRules & Pick<AgentParts, "log">;

/** Asks people about one call: as the model made it and, when middleware changes it, once more. */
export class Approval {
  readonly #gates: readonly ToolGate[];
  readonly #parts: Parts;
  readonly #scope: CallScope;
  /** Digests of the calls asked about so far. */
  readonly #shown: string[] = [];
  /** The same of what was asked before the process ended or the run paused. */
  #before: Promise<readonly string[]> | undefined;
  #hasBegun = false;

  constructor(gates: readonly ToolGate[], parts: Parts, scope: CallScope) {
    this.#gates = gates;
    this.#parts = parts;
    this.#scope = scope;
  }

  /** The call runs now: from here on nobody can be asked, because its task would start over and run it again. */
  begin(): void {
    this.#hasBegun = true;
  }

  /**
   * Asks when a gate demands it, and waits for whoever was asked before, though no gate may demand it any more.
   * About a call that was `begun` nobody is asked: it is not made again.
   *
   * The task stops here until there is an answer and starts again from its top then, so nothing with an
   * effect may come before. An answer that does not fit leaves the request open under the same id.
   */
  async of(request: ToolCallRequest, begun = false): Promise<Verdict> {
    const { toolCall } = request;
    const gate = (await firstGate(this.#gates, request)) ?? NO_GATE;
    const known = (await (this.#before ??= questionsBefore(this.#scope.config)))[this.#shown.length];
    const isFree = gate.isWaived || begun;
    if (isFree && known === undefined) return { run: true, toolCall, edited: false };
    const seal = sealOf(toolCall);
    if (isFree && known !== seal) return { run: true, toolCall, edited: false };
    if (this.#hasBegun) return { run: false, result: toolError(changedTooLate(toolCall)) };
    // The answer that is there, or comes, is for another call.
    if (known !== undefined && known !== seal)
      return { run: false, result: toolError(changedAgain(toolCall)) };
    this.#shown.push(seal);
    const number = this.#shown.length > 1 ? { question: this.#shown.length } : {};
    const review = await reviewRequest(toolCall, gate, this.#parts, this.#scope);
    const question = { ...review, ...number, shown: [...this.#shown] };
    for (;;) {
      await refuseSharedAnswer(this.#scope.config);
      const answer: unknown = ask(question, this.#scope.config);
      if (responseProblem(question, answer)) continue;
      const [decision] = (answer as HitlResponse).decisions; // checked by responseProblem
      const verdict = decision && apply(decision, toolCall, this.#parts);
      if (verdict) return verdict;
    }
  }
}

/** Of a call that nobody need be asked about. */
const NO_GATE: Gate = { allowedDecisions: [...ALL_DECISIONS], isWaived: true };

/** What an approval is bound to. */
const sealOf = ({ name, args }: ToolCall): string =>
  createHash("sha256")
    .update(canonicalJson([name, args]))
    .digest("base64url")
    .slice(0, 22);

/** What the running task has asked about, as its newest question says; a subagent's questions are its own. */
async function questionsBefore(config: RunnableConfig): Promise<readonly string[]> {
  const asked = await lastQuestion(config);
  const isOwn = isRequest(asked) && asked.agent?.length === agentPath(config).length;
  return isOwn ? (asked.shown ?? []) : [];
}

const changedTooLate = ({ name }: ToolCall): string =>
  `${name} was changed when it had run already, and needs approval as it is now. The changed call was not run.`;

const changedAgain = ({ name }: ToolCall): string =>
  `${name} is not the call any more that a person was asked about, and was not run. What changes calls has to change them in the same way each time.`;

/** The first gate that asks, else the first that would. */
async function firstGate(gates: readonly ToolGate[], request: ToolCallRequest): Promise<Gate | undefined> {
  let waived: Gate | undefined;
  for (const gate of gates) {
    const asked = await gate(request);
    if (asked && !asked.isWaived) return asked;
    waived ??= asked;
  }
  return waived;
}

async function reviewRequest(
  toolCall: ToolCall,
  gate: Gate,
  parts: Parts,
  scope: CallScope,
): Promise<HitlRequest> {
  const { id = "", name, args } = toolCall;
  const tool = parts.tools.get(name);
  const preview = await previewOf(tool, toolCall, parts, scope);
  const same = tool && preview ? { same: sameCalls(tool, args, preview) } : {};
  const shown = preview?.detail ?? JSON.stringify(args, null, 2);
  const description =
    gate.description ??
    cutMiddle(`Tool execution requires approval\n\nTool: ${name}\n\n${shown}`, MAX_DESCRIPTION);
  const argsSchema = gate.argsSchema ? { argsSchema: gate.argsSchema } : {};
  return {
    actionRequests: [{ name, args, description, toolCallId: id, ...(preview ? { preview } : {}), ...same }],
    reviewConfigs: [{ actionName: name, allowedDecisions: gate.allowedDecisions, ...argsSchema }],
    agent: agentPath(scope.config),
  };
}

/** A preview that fails is left out: the person has the arguments. */
async function previewOf(
  tool: AgentTool | undefined,
  { name, args }: ToolCall,
  { log }: Parts,
  { context }: CallScope,
): Promise<CallPreview | undefined> {
  try {
    return await tool?.preview(args, context);
  } catch (error) {
    if (context.signal.aborted) throw error;
    log.warn("preview_failed", { tool: name, error });
    return undefined;
  }
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

/** `undefined`: the call it was edited to cannot run, and the question stays. */
function apply(decision: Decision, toolCall: ToolCall, parts: Parts): Verdict | undefined {
  if (decision.type === "approve") return { run: true, toolCall, edited: false };
  if (decision.type === "reject") {
    const { message = "" } = decision;
    const text =
      message.trim() === ""
        ? `User rejected the tool call for ${toolCall.name} with id ${toolCall.id}`
        : message;
    return { run: false, result: { content: text, status: "error" } };
  }
  const { name, args } = decision.editedAction;
  const checked = checkEdit(parts, name, args);
  return checked.ok
    ? { run: true, toolCall: { ...toolCall, name, args: checked.args }, edited: true }
    : undefined;
}
