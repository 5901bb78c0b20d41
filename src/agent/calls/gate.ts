/** Asks a person about a call when a gate requires it, and lets it run only as it was approved. */
import type { ToolCall } from "@langchain/core/messages/tool";
import { CODES_WITHOUT_PATH } from "../../backends/errors.ts";
import { cutDiff } from "../../core/diff.ts";
import { cutMiddle } from "../../core/text.ts";
import { memberOf, defined } from "../../core/unknown.ts";
import { argumentsPreview } from "../../tools/call-preview.ts";
import { type BoundPreview, type ToolResult, toolError } from "../../tools/tool.ts";
import type { CallPreview, Decision } from "../../tools/request.ts";
import type { HitlRequest, HitlResponse } from "../contracts/question.ts";
import type { Gate, Middleware, ToolCallRequest } from "../contracts/middleware.ts";
import { isNear, pathTouched } from "../step/files.ts";
import type { CallStep } from "./call-step.ts";
import { MAX_DESCRIPTION, checkEdit, responseProblem } from "./check.ts";
import { ALL_DECISIONS } from "./permissions.ts";
import { callOf, isSame, sameCalls, sealOf } from "./seal.ts";

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
  /** The person has seen that the file is read-only. */
  evenReadOnly?: boolean | undefined;
}

/** Asks people about one call: as the model made it and, when middleware changes it, once more. */
export class Approval {
  readonly #step: CallStep;
  /** Digests of the calls asked about so far. */
  readonly #shown: string[] = [];
  /** Digests of the calls asked about before the process ended or the run paused. */
  #before: Promise<readonly string[]> | undefined;
  #hasBegun = false;
  /** The newest answer, and the call that it is for. */
  #answered: Answered | undefined;

  constructor(step: CallStep) {
    this.#step = step;
  }

  /** The call runs now: from here on nobody can be asked, because the call would start over and run again. */
  begin(): void {
    this.#hasBegun = true;
  }

  /**
   * Asks when a gate demands it, and waits for whoever was asked before, but not about a call that was `begun`. `gate`: that
   * of the rules for paths, which comes first.
   *
   * The call starts again from its top when there is an answer, so nothing with an effect may come before. An answer that
   * does not fit leaves the request open. It counts for the call as shown: one that would do something else is asked about
   * under a new id.
   */
  async of(
    request: ToolCallRequest,
    { begun = false, gate: own }: { begun?: boolean; gate?: Gate | undefined } = {},
  ): Promise<Verdict> {
    const { toolCall } = request;
    const gate = own ?? (await firstGate(this.#step.agent.middleware, request));
    const known = (await (this.#before ??= this.#step.questions.shown()))[this.#shown.length];
    const isFree = gate.isWaived || begun;
    const isKnown = known !== undefined && callOf(known) === sealOf(toolCall);
    if (isFree && !isKnown) return { run: true, toolCall, edited: false, approved: false };
    const { name } = toolCall;
    const tooLate = `${name} was changed after it had run, and needs approval again. The changed call was not run.`;
    const changed = `${name} is no longer the call that the person saw, so it was not run. Middleware must change a call in the same way each time.`;
    if (this.#hasBegun) return { run: false, result: toolError(tooLate) };
    // This answer, or the one that comes, is for another call.
    if (known !== undefined && !isKnown) return { run: false, result: toolError(changed) };
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
      const preview = await previewOf(toolCall, this.#step);
      const now = sealOf(toolCall, preview);
      const known = (await this.#before)?.[this.#shown.length];
      const isAskedAgain = known !== undefined && callOf(known) === callOf(now);
      const isNew = known === undefined && last === undefined;
      if (isNew && preview?.failure && isCertain(toolCall, preview, this.#step))
        return { run: false, result: preview.failure };
      // A call that was begun may have made the change itself: nobody is asked about that.
      if (last && !isAskedAgain && (begun || isSame(last.shown, now))) {
        this.#answered = last;
        // The preview of the call as the model made it does not apply to an edited one.
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

  async #ask({ toolCall, gate }: Question, preview: BoundPreview | undefined, again: boolean) {
    const number = this.#shown.length > 1 ? { question: this.#shown.length } : {};
    const review = reviewRequest(toolCall, gate, this.#step, { preview, again });
    const question = { ...review, ...number, shown: [...this.#shown] };
    if (this.#shown.length === 1 && !this.#step.inner) await this.#step.turn.begun;
    for (;;) {
      const answer = await this.#step.questions.ask(question);
      if (responseProblem(question, answer)) continue;
      const [decision] = (answer as HitlResponse).decisions; // checked by responseProblem
      const verdict = decision && apply(decision, toolCall, this.#step);
      if (verdict) return verdict;
    }
  }
}

/** True if a call fails whatever else its reply does, and its error quotes no file that a person has to let it read. */
function isCertain(
  { id, name, args }: ToolCall,
  { place, failure }: BoundPreview,
  { reply, agent: { tools, permissions } }: CallStep,
): boolean {
  const path = tools.get(name)?.pathOf(args) ?? place ?? "";
  const isQuoting = CODES_WITHOUT_PATH.has(memberOf(failure?.artifact, "code"));
  const isGuarded = (at: string): boolean => permissions?.decide("read", at) === "interrupt";
  if (isQuoting && (isGuarded(path) || isGuarded(place ?? path))) return false;
  if (place === undefined) return true;
  return reply.every((other) => {
    const tool = tools.get(other.name);
    if (other.id === id || tool?.kind === "read" || tool?.kind === "plan") return true;
    const at = tool?.kind === "write" ? pathTouched(tool, other) : undefined;
    return at !== undefined && !isNear(at, path) && !isNear(at, place);
  });
}

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

/** The first gate that asks, else the first that would, else one that does not ask. */
async function firstGate(layers: readonly Middleware[], request: ToolCallRequest): Promise<Gate> {
  let waived: Gate | undefined;
  for (const { gate } of layers) {
    const asked = await gate?.(request);
    if (asked && !asked.isWaived) return asked;
    waived ??= asked;
  }
  return waived ?? { allowedDecisions: [...ALL_DECISIONS], isWaived: true };
}

/** `again`: the person has approved something else before. */
function reviewRequest(
  { id = "", name, args }: ToolCall,
  gate: Gate,
  { agent, scope }: CallStep,
  { preview: bound, again }: { preview: BoundPreview | undefined; again: boolean },
): HitlRequest {
  const tool = agent.tools.get(name);
  const same = tool && bound ? { same: sameCalls(tool, args, bound) } : {};
  const preview = bound && shownOf(bound, again);
  const detail = preview?.detail ?? argumentsPreview(name, args).detail;
  // Leaves room for the words around it.
  const shown = preview?.kind === "diff" ? cutDiff(detail, MAX_DESCRIPTION - 1000) : detail;
  const standard = `Tool execution requires approval\n\nTool: ${name}\n\n${shown}`;
  const {
    allowedDecisions,
    argsSchema,
    asksAlways,
    description = cutMiddle(standard, MAX_DESCRIPTION),
  } = gate;
  // No rule covers a call that was shown in part, or that a person has to look at again.
  const isRuled = asksAlways !== true && bound !== undefined && !bound.isPart && !again;
  const ruled = isRuled ? agent.callRules?.describe(name, args, bound) : undefined;
  return {
    actionRequests: [{ name, args, description, toolCallId: id, ...defined({ preview, ruled }), ...same }],
    reviewConfigs: [{ actionName: name, allowedDecisions, ...defined({ argsSchema }) }],
    agent: scope.step.agent,
  };
}

function shownOf(bound: BoundPreview, again: boolean): CallPreview {
  const { kind, summary, title, destination, detail, isPart, whole, lost } = bound;
  const shown = { kind, summary, detail, ...defined({ title, destination, isPart, whole, lost }) };
  const what = kind === "diff" ? "the file" : "what it would do";
  const why = `Asked again: ${what} changed after the approval, so nothing was done`;
  return again ? { ...shown, summary: `${summary}. ${why}`, again } : shown;
}

/** A preview that fails is left out: the person has the arguments. */
async function previewOf(
  { name, args }: ToolCall,
  { agent: { tools, log }, scope: { context } }: CallStep,
): Promise<BoundPreview | undefined> {
  try {
    return await tools.get(name)?.preview(args, context);
  } catch (error) {
    if (context.signal.aborted) throw error;
    log.warn("preview_failed", { tool: name, error });
    return undefined;
  }
}

/** Returns undefined if the call it was edited to cannot run, and the question stays. */
function apply(decision: Decision, toolCall: ToolCall, { agent }: CallStep): Verdict | undefined {
  if (decision.type === "approve")
    return { run: true, toolCall, edited: false, approved: decision.byRule !== true };
  if (decision.type === "reject") {
    const { message = "" } = decision;
    const standard = `User rejected the tool call for ${toolCall.name} with id ${toolCall.id}`;
    const content = message.trim() === "" ? standard : message;
    return { run: false, result: { content, status: "error" }, rejected: true };
  }
  const { name, args } = decision.editedAction;
  const checked = checkEdit(agent, name, args);
  if (!checked.ok) return undefined;
  return { run: true, toolCall: { ...toolCall, name, args: checked.args }, edited: true, approved: true };
}
