import type { Step } from "../contracts/step.ts";
import { createHash } from "node:crypto";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { Backend } from "../../backends/backend.ts";
import { cutDiff } from "../../core/diff.ts";
import { defined } from "../../core/defined.ts";
import { canonicalJson } from "../../core/json.ts";
import { cutMiddle, displayName, oneLine } from "../../core/text.ts";
import { invalidArguments } from "../../tools/call.ts";
import { argumentsPreview } from "../../tools/call-preview.ts";
import { type BoundPreview, type CallPreview, type ToolResult, toolError } from "../../tools/tool.ts";
import type { AgentTool, CallScope, ValidatedArgs } from "../contracts/call.ts";
import type { Decision, HitlRequest, HitlResponse, SameCalls } from "../contracts/question.ts";
import type { Gate, ToolCallRequest, ToolGate } from "../contracts/middleware.ts";
import type { AgentDefinition, EditRules } from "../langgraph/definition.ts";
import { interrupt, isGraphInterrupt } from "../langgraph/internals.ts";
import { isRequest, questionId, refuseBroadcastAnswer } from "../langgraph/open-interrupts.ts";
import { lastQuestion } from "../langgraph/resume.ts";
import { ALL_DECISIONS, MAX_DESCRIPTION, responseProblem } from "./answers.ts";
import { toAgentTool } from "./tool.ts";

/** Checks a call, asks a person about it when a gate says so, and runs it only as it was approved. */

/** A call that may run, exactly as it stands here, or the answer in its place. */
export type Verdict = Go | { run: false; result: ToolResult; rejected?: true };

export interface Go {
  run: true;
  toolCall: ToolCall;
  edited: boolean;
  /** True if a person was asked about exactly this call, and approved it. */
  approved: boolean;
  /** Version of the file that a person was shown the change of. */
  expectedVersion?: string | undefined;
  /** The person was told that the file is read-only. */
  evenReadOnly?: boolean | undefined;
}

/** The verdict on a call that nobody was asked about, besides the call. */
export const UNASKED = { run: true, edited: false, approved: false } as const;

/** The part of the agent's definition that asking needs. */
type ApprovalRules = EditRules & Pick<AgentDefinition, "log">;

/** Asks people about one call: as the model made it and, when middleware changes it, once more. */
export class Approval {
  readonly #gates: readonly ToolGate[];
  readonly #rules: ApprovalRules;
  readonly #scope: CallScope;
  /** Digests of the calls asked about so far. */
  readonly #shown: string[] = [];
  /** Digests of the calls asked about before the process ended or the run paused. */
  #before: Promise<readonly string[]> | undefined;
  #hasBegun = false;
  /** The newest answer, and the call that it was given for. */
  #answered: Answered | undefined;

  constructor(gates: readonly ToolGate[], rules: ApprovalRules, scope: CallScope) {
    this.#gates = gates;
    this.#rules = rules;
    this.#scope = scope;
  }

  /** The call runs now: from here on nobody can be asked, because its task would start over and run it again. */
  begin(): void {
    this.#hasBegun = true;
  }

  /**
   * Asks when a gate demands it, and waits for whoever was asked before, though no gate may demand it any more.
   * About a call that was `begun` nobody is asked: it is not made again. `gate`: that of the rules for paths, which
   * comes first.
   *
   * The task stops here until there is an answer and starts again from its top then, so nothing with an
   * effect may come before. An answer that does not fit leaves the request open under the same id. An answer counts
   * for what was shown: when the call would do something else by now, it is asked again under a new id.
   */
  async of(
    request: ToolCallRequest,
    { begun = false, gate: own }: { begun?: boolean; gate?: Gate | undefined } = {},
  ): Promise<Verdict> {
    const { toolCall } = request;
    const gate = own ?? (await firstGate(this.#gates, request)) ?? NO_GATE;
    const known = (await (this.#before ??= questionsBefore(this.#scope)))[this.#shown.length];
    const isFree = gate.isWaived || begun;
    if (isFree && known === undefined) return { ...UNASKED, toolCall };
    const isKnown = known !== undefined && callOf(known) === sealOf(toolCall);
    if (isFree && !isKnown) return { ...UNASKED, toolCall };
    if (this.#hasBegun) return { run: false, result: toolError(changedTooLate(toolCall)) };
    // This answer, or the one that comes, is for another call.
    if (known !== undefined && !isKnown) return { run: false, result: toolError(changedAgain(toolCall)) };
    return this.#review({ toolCall, gate, begun });
  }

  /** Judges an approved call again that did nothing because its file had just changed. Asks as `of` does. */
  async again(): Promise<Verdict> {
    if (!this.#answered) throw new Error("nobody was asked to approve this call");
    return this.#review(this.#answered.question, this.#answered);
  }

  async #review(question: Question, answered?: Answered): Promise<Verdict> {
    const { toolCall, begun } = question;
    for (let last = answered; ;) {
      const preview = await previewOf(toolCall, this.#rules, this.#scope);
      const now = sealOf(toolCall, preview);
      const known = (await this.#before)?.[this.#shown.length];
      const isAskedAgain = known !== undefined && callOf(known) === callOf(now);
      // A call that was begun may have made the change itself: nobody is asked about that.
      if (last && !isAskedAgain && (begun || isSame(last.shown, now))) {
        this.#answered = last;
        // The preview of the call as the model made it says nothing about an edited one.
        const { version: expectedVersion, evenReadOnly } = (last.go.edited ? undefined : preview) ?? {};
        return { ...last.go, expectedVersion, evenReadOnly };
      }
      // The person may still be looking at the earlier question, which showed something else.
      const shown = isAskedAgain ? known : now;
      this.#shown.push(shown);
      const verdict = await this.#ask(question, preview, last !== undefined);
      if (!verdict.run) return verdict;
      last = { question, shown, go: verdict };
    }
  }

  async #ask(
    { toolCall, gate }: Question,
    preview: BoundPreview | undefined,
    again: boolean,
  ): Promise<Verdict> {
    const number = this.#shown.length > 1 ? { question: this.#shown.length } : {};
    const review = reviewRequest(toolCall, gate, this.#rules, { scope: this.#scope, preview, again });
    const question = { ...review, ...number, shown: [...this.#shown] };
    for (;;) {
      await refuseBroadcastAnswer(this.#scope.config);
      const answer: unknown = ask(question, this.#scope.step);
      if (responseProblem(question, answer)) continue;
      const [decision] = (answer as HitlResponse).decisions; // checked by responseProblem
      const verdict = decision && apply(decision, toolCall, this.#rules);
      if (verdict) return verdict;
    }
  }
}

/** The gate of a call that needs no approval. */
const NO_GATE: Gate = { allowedDecisions: [...ALL_DECISIONS], isWaived: true };

interface Question {
  toolCall: ToolCall;
  gate: Gate;
  /** The call was at work before the process ended. */
  begun: boolean;
}

interface Answered {
  question: Question;
  /** Digest of the call and its effect as the person was shown them. */
  shown: string;
  go: Go;
}

/** Binds an approval to the call and, if its tool can say it, to the effect of the call. */
function sealOf({ name, args }: ToolCall, preview?: BoundPreview): string {
  const call = digest([name, args]);
  return preview?.effect === undefined
    ? call
    : `${call}.${digest([preview.summary, preview.place, preview.effect])}`;
}

const digest = (facts: unknown): string =>
  createHash("sha256").update(canonicalJson(facts)).digest("base64url").slice(0, 22);

const callOf = (seal: string): string => seal.split(".", 1)[0] ?? "";

/** Questions of earlier versions are sealed without the effect. */
const isSame = (shown: string, now: string): boolean => shown === now || shown === callOf(now);

/** The digests in the newest question of the running task; questions of a subagent do not count. */
async function questionsBefore({ config, step }: CallScope): Promise<readonly string[]> {
  const asked = await lastQuestion(config);
  const isOwn = isRequest(asked) && asked.agent?.length === step.agent.length;
  return isOwn ? (asked.shown ?? []) : [];
}

const changedTooLate = ({ name }: ToolCall): string =>
  `${name} was changed after it had run, and needs approval again. The changed call was not run.`;

const changedAgain = ({ name }: ToolCall): string =>
  `${name} is no longer the call that the person saw, so it was not run. Middleware must change a call in the same way each time.`;

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

/** Leaves room for the words around it. */
const MAX_SHOWN_DIFF = MAX_DESCRIPTION - 1000;

interface Showing {
  scope: CallScope;
  preview: BoundPreview | undefined;
  /** The person has approved something else before. */
  again: boolean;
}

function reviewRequest(
  toolCall: ToolCall,
  gate: Gate,
  rules: ApprovalRules,
  { scope, preview: bound, again }: Showing,
): HitlRequest {
  const { id = "", name, args } = toolCall;
  const tool = rules.tools.get(name);
  const same = tool && bound ? { same: sameCalls(tool, args, bound) } : {};
  const preview = bound && shownOf(bound, again);
  const detail = preview?.detail ?? argumentsPreview(name, args).detail;
  const shown = preview?.kind === "diff" ? cutDiff(detail, MAX_SHOWN_DIFF) : detail;
  const description =
    gate.description ??
    cutMiddle(`Tool execution requires approval\n\nTool: ${name}\n\n${shown}`, MAX_DESCRIPTION);
  const argsSchema = gate.argsSchema ? { argsSchema: gate.argsSchema } : {};
  return {
    actionRequests: [{ name, args, description, toolCallId: id, ...(preview ? { preview } : {}), ...same }],
    reviewConfigs: [{ actionName: name, allowedDecisions: gate.allowedDecisions, ...argsSchema }],
    agent: scope.step.agent,
  };
}

const shownOf = (
  { kind, summary, destination, detail, isPart }: BoundPreview,
  again: boolean,
): CallPreview => ({
  kind,
  summary: again ? `${summary}. Asked again: its effect would differ from the one shown before` : summary,
  ...defined({ destination }),
  detail,
  ...defined({ isPart }),
});

/** A preview that fails is left out: the person has the arguments. */
async function previewOf(
  { name, args }: ToolCall,
  { tools, log }: ApprovalRules,
  { context }: CallScope,
): Promise<BoundPreview | undefined> {
  try {
    return await tools.get(name)?.preview(args, context);
  } catch (error) {
    if (context.signal.aborted) throw error;
    log.warn("preview_failed", { tool: name, error });
    return undefined;
  }
}

/** LangGraph's `interrupt`, telling watchers about a question that is new. */
function ask(request: HitlRequest, step: Step): unknown {
  try {
    return interrupt(request);
  } catch (error) {
    if (isGraphInterrupt(error)) {
      const id = error.interrupts[0]?.id;
      if (id) {
        const interruptId = questionId(id, request);
        step.tell({ kind: "approval_requested", interruptId, request });
      }
    }
    throw error;
  }
}

/** `undefined`: the call it was edited to cannot run, and the question stays. */
function apply(decision: Decision, toolCall: ToolCall, rules: ApprovalRules): Verdict | undefined {
  if (decision.type === "approve") return { run: true, toolCall, edited: false, approved: true };
  if (decision.type === "reject") {
    const { message = "" } = decision;
    const text =
      message.trim() === ""
        ? `User rejected the tool call for ${toolCall.name} with id ${toolCall.id}`
        : message;
    return { run: false, result: { content: text, status: "error" }, rejected: true };
  }
  const { name, args } = decision.editedAction;
  const checked = checkEdit(rules, name, args);
  return checked.ok
    ? { run: true, toolCall: { ...toolCall, name, args: checked.args }, edited: true, approved: true }
    : undefined;
}

/**
 * Defines which later calls count as the same as this one when a person approves "the same" for the run. These are
 * changes of the same file by the same tool, and otherwise only calls with the same arguments and the same effect. For
 * a command, the effect includes whether a sandbox confines it.
 */
export function sameCalls(tool: AgentTool, args: Record<string, unknown>, preview: BoundPreview): SameCalls {
  const name = oneLine(displayName(tool.name), 64);
  const path = tool.kind === "write" ? tool.pathOf(args) : undefined;
  if (path !== undefined) {
    // If links lead somewhere else, the same path may later name another file.
    return {
      key: keyOf([tool.name, "path", path, ...(preview.place === path ? [] : [preview.place])]),
      text: `${name} of ${preview.destination ?? displayName(path)}, whatever it changes there`,
    };
  }
  const subject = tool.kind === "execute" && preview.kind === "command" ? "command" : "arguments";
  return {
    key: keyOf([tool.name, "arguments", args, preview.summary, preview.place ?? null]),
    text: `${name} with exactly the ${subject} shown here`,
  };
}

const keyOf = (facts: unknown): string =>
  createHash("sha256").update(canonicalJson(facts)).digest("base64url");

/** Without `tool`: the agent has none of this name, but a wrapper may bring it. */
export type CheckedCall =
  | { toolCall: ToolCall; tool?: AgentTool; gate?: Gate | undefined }
  | { invalid: ToolResult };

interface CheckOptions {
  backend: Backend;
  /** The tool to run instead of the agent's own. */
  given?: AgentTool | undefined;
  /** The call was checked in an earlier process: a tool that takes or allows it no more does not undo it. */
  begun?: boolean;
}

/**
 * Gives the call with its arguments as the tool takes them, so that gates and people see what will run, and the gate
 * of the rules for paths.
 */
export async function checkCall(
  rules: AgentDefinition,
  toolCall: ToolCall,
  { backend, given, begun = false }: CheckOptions,
): Promise<CheckedCall> {
  const own = rules.tools.get(toolCall.name);
  const tool = given ?? own;
  if (!tool) return { toolCall };
  const checked = tool.validate(toolCall.args);
  if (!checked.ok) return begun ? { toolCall, tool } : { invalid: toolError(checked.message) };
  const call = { toolCall: { ...toolCall, args: checked.args }, tool };
  if (!own || !rules.permissions) return call;
  const known = begun ? undefined : rules.permissions.denial(own, checked.args);
  if (known !== undefined) return { invalid: toolError(known) };
  const { denial, gate } = await rules.permissions.judge(own, checked.args, backend);
  return denial === undefined || begun ? { ...call, gate } : { invalid: toolError(denial) };
}

export function unknownTool({ tools }: AgentDefinition, { name }: ToolCall): ToolResult {
  return toolError(`${name} is not a valid tool, try one of [${[...tools.keys()].join(", ")}].`);
}

/** The tool that a wrapper put in the place of the agent's own, or brought for a call that it offered itself. */
export function broughtTool({ tool }: ToolCallRequest, { tools }: AgentDefinition): AgentTool | undefined {
  if (!tool || tools.get(tool.name)?.offered === tool) return undefined;
  return toAgentTool(tool);
}

/**
 * Checks a person's edit of a call. Returns its arguments, if the agent has the tool, it takes them, they are of the form
 * that edits of it have, and no rule forbids it.
 */
export function checkEdit(
  { tools, permissions, editForms }: EditRules,
  name: string,
  args: unknown,
): ValidatedArgs {
  const tool = tools.get(name);
  if (!tool) return { ok: false, message: `${name} is not a tool of this agent` };
  const checked = tool.validate(args);
  if (!checked.ok) return checked;
  // The arguments as they will run; a stored edit is checked once more before that.
  const issues = editForms.get(name)?.(checked.args) ?? [];
  if (issues.length > 0) return { ok: false, message: invalidArguments(name, issues) };
  const denial = permissions?.denial(tool, checked.args);
  return denial === undefined ? checked : { ok: false, message: denial };
}
