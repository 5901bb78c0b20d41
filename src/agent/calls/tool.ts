/** Makes tools of this project callable by an agent: their checks, their calls, and how they are shown. */
import { DynamicStructuredTool } from "@langchain/core/tools";
import { isAbortError, isTransient } from "../../core/errors.ts";
import { toolParameters, parseArguments } from "../../tools/call.ts";
import { argumentsPreview, resolveDestination } from "../../tools/call-preview.ts";
import type { BoundPreview, ToolContext, ToolResult, ToolSpec } from "../../tools/tool.ts";
import type { AgentTool, CallScope } from "../contracts/middleware.ts";

export function specTool(spec: ToolSpec): AgentTool {
  const offered = new DynamicStructuredTool({
    name: spec.name,
    description: spec.description,
    schema: toolParameters(spec.schema),
    func: () => Promise.reject(new Error(`${spec.name} runs inside a deep agent only`)),
  });
  return {
    name: spec.name,
    kind: spec.kind,
    offered,
    validate: (args) => parseArguments(spec, args),
    run: (call, scope) => scope.observe(call, offered, () => handled(spec, call.args, scope)),
    preview: async (args, context) =>
      (await spec.preview?.(args, context)) ?? plainPreview(spec, args, context),
    pathOf: (args) => spec.pathOf?.(args),
    changeOf: (args, artifact) => spec.changeOf?.(args, artifact),
  };
}

/** Shows the arguments, and the place that a path among them leads to. */
async function plainPreview(
  spec: ToolSpec,
  args: Record<string, unknown>,
  { backend }: ToolContext,
): Promise<BoundPreview> {
  const path = spec.pathOf?.(args);
  if (path === undefined) return argumentsPreview(spec.name, args);
  const to = await resolveDestination(path, backend);
  if (to.place === path) return argumentsPreview(spec.name, args);
  return argumentsPreview(`${spec.name} of ${to.name}`, args, to);
}

/** Runs a tool, which returns its failures. Other errors are bugs, not shown, or steps that could not be stored. */
async function handled(
  spec: ToolSpec,
  args: Record<string, unknown>,
  { context, isPause }: CallScope,
): Promise<ToolResult> {
  try {
    return await spec.handle(args, context);
  } catch (error) {
    if (isPause(error) || isAbortError(error)) throw error;
    if (isTransient(error) && spec.kind === "delegate") throw error;
    throw new Error(`${spec.name} failed unexpectedly; try another way.`, { cause: error });
  }
}
