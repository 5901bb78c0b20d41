/** Checks calls by the tools and rules of their agent, and the answers of people to requests for approval. */
import type { ToolCall } from "@langchain/core/messages/tool";
import type { Backend } from "../../backends/backend.ts";
import { isObject, isRecord, memberOf } from "../../core/unknown.ts";
import { invalidArguments } from "../../tools/call.ts";
import type { Decision } from "../../tools/request.ts";
import { type ToolResult, toolError } from "../../tools/tool.ts";
import type { CallRules } from "../../rules/call.ts";
import type { AgentTool, Gate, ValidatedArgs } from "../contracts/middleware.ts";
import type { HitlRequest } from "../contracts/question.ts";
import type { ArgumentsCheck } from "./arguments.ts";
import { ALL_DECISIONS, type Permissions } from "./permissions.ts";

/** The rules by which calls, and a person's edits of them, are checked. */
export interface EditRules {
  readonly tools: ReadonlyMap<string, AgentTool>;
  /** Rules for paths, where there are any. */
  readonly permissions: Permissions | undefined;
  /** The forms that edits of calls have to have, by tool. */
  readonly editForms: ReadonlyMap<string, ArgumentsCheck>;
  /** Rules for calls of all kinds, where there are any. */
  readonly callRules?: CallRules | undefined;
}

/**
 * Returns the call with the arguments that will run, for gates and people, and the gate of the path rules; no `tool` if
 * the agent has none of this name, which a wrapper may add.
 *
 * @param instead the tool to run in place of the agent's own.
 * @param begun it was checked in an earlier process: a tool that takes or allows it no more does not undo it.
 */
export async function checkCall(
  rules: EditRules,
  toolCall: ToolCall,
  { backend, instead, begun = false }: { backend: Backend; instead?: AgentTool | undefined; begun?: boolean },
): Promise<{ toolCall: ToolCall; tool?: AgentTool; gate?: Gate | undefined } | { invalid: ToolResult }> {
  const own = rules.tools.get(toolCall.name);
  const tool = instead ?? own;
  if (!tool) return { toolCall };
  const checked = tool.validate(toolCall.args);
  if (!checked.ok) return begun ? { toolCall, tool } : { invalid: toolError(checked.message) };
  const call = { toolCall: { ...toolCall, args: checked.args }, tool };
  const permissions = own && rules.permissions;
  const { deny, ask } = rules.callRules?.judge(toolCall.name, checked.args) ?? {};
  const known = begun ? undefined : (deny ?? (own && permissions?.denial(own, checked.args)));
  if (known !== undefined) return { invalid: toolError(known) };
  const { denial, gate } = own && permissions ? await permissions.judge(own, checked.args, backend) : {};
  if (!begun && denial !== undefined) return { invalid: toolError(denial) };
  return { ...call, gate: gate ?? (ask && { allowedDecisions: [...ALL_DECISIONS], asksAlways: true }) };
}

/** Checks a person's edit against the tool, the form of its edits and the rules. Returns the arguments to run. */
export function checkEdit(
  { tools, permissions, editForms, callRules }: EditRules,
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
  const denial = permissions?.denial(tool, checked.args) ?? callRules?.judge(name, checked.args).deny;
  return denial === undefined ? checked : { ok: false, message: denial };
}

/** Longest description a person is shown, in characters: it is stored with the request. */
export const MAX_DESCRIPTION = 20_000;

/** The problem of an answer to a request, in words for its author; undefined if there is none. */
export function responseProblem(request: HitlRequest, response: unknown): string | undefined {
  const given = memberOf(response, "decisions");
  if (!Array.isArray(given) || !given.every(isObject))
    return "An answer must be an object with a list of decisions.";
  const decisions = given as Decision[]; // whose fields are checked now
  if (decisions.length !== request.actionRequests.length)
    return `${request.actionRequests.length} decision(s) expected, got ${decisions.length}.`;
  for (const [index, decision] of decisions.entries()) {
    const allowed = request.reviewConfigs[index]?.allowedDecisions ?? ALL_DECISIONS;
    // A deadline denies whatever a person may do.
    const isExpiry = decision.type === "reject" && decision.expired === true;
    if (!allowed.includes(decision.type) && !isExpiry)
      return `Decision '${decision.type}' is not allowed here; allowed: ${allowed.join(", ")}.`;
    const action: unknown = decision.type === "edit" && decision.editedAction;
    const isAction = isRecord(action) && typeof action["name"] === "string" && isRecord(action["args"]);
    if (decision.type === "edit" && !isAction)
      return "An edit needs editedAction with the name and the arguments to run instead.";
    if (decision.type === "reject" && !["string", "undefined"].includes(typeof decision.message))
      return "The message of a reject must be a text.";
  }
  return undefined;
}
