import type { ToolCall } from "@langchain/core/messages/tool";
import { invalidArguments } from "../tools/call.ts";
import { type ToolResult, toolError } from "../tools/tool.ts";
import type { AgentParts, EditRules } from "./agent-parts.ts";
import { type AgentTool, type ValidatedArgs, toAgentTool } from "./agent-tool.ts";
import type { ToolCallRequest } from "./middleware/middleware.ts";

/** Without `tool`: the agent has none of this name, but a wrapper may bring it. */
export type CheckedCall = { toolCall: ToolCall; tool?: AgentTool } | { invalid: ToolResult };

/**
 * The call with its arguments as the tool takes them, so that gates and people see what will run; `given`:
 * the tool to run instead of the agent's own. What has `begun` in an earlier process was checked there: a tool
 * that takes or allows it no more does not undo it.
 */
export function checkCall(
  parts: AgentParts,
  toolCall: ToolCall,
  { given, begun = false }: { given?: AgentTool | undefined; begun?: boolean } = {},
): CheckedCall {
  const own = parts.tools.get(toolCall.name);
  const tool = given ?? own;
  if (!tool) return { toolCall };
  const checked = tool.validate(toolCall.args);
  if (!checked.ok) return begun ? { toolCall, tool } : { invalid: toolError(checked.message) };
  const denial = own && !begun ? parts.permissions?.denial(own, checked.args) : undefined;
  if (denial !== undefined) return { invalid: toolError(denial) };
  return { toolCall: { ...toolCall, args: checked.args }, tool };
}

export function unknownTool({ tools }: AgentParts, { name }: ToolCall): ToolResult {
  return toolError(`${name} is not a valid tool, try one of [${[...tools.keys()].join(", ")}].`);
}

/** The tool that a wrapper put in the place of the agent's own, or brought for a call that it offered itself. */
export function broughtTool({ tool }: ToolCallRequest, { tools }: AgentParts): AgentTool | undefined {
  if (!tool || tools.get(tool.name)?.offered === tool) return undefined;
  return toAgentTool(tool);
}

/**
 * What a person made of a call: its arguments, if the agent has the tool, it takes them, they are of the form
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
  // As they will run: what is stored of an edit is checked once more before it does.
  const issues = editForms.get(name)?.(checked.args) ?? [];
  if (issues.length > 0) return { ok: false, message: invalidArguments(name, issues) };
  const denial = permissions?.denial(tool, checked.args);
  return denial === undefined ? checked : { ok: false, message: denial };
}
