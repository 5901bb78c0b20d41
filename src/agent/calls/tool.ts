/** Makes tools of this project callable by an agent: their checks, their calls, and how they are shown. */
import { DynamicStructuredTool } from "@langchain/core/tools";
import { isAbortError, isTransient } from "../../core/errors.ts";
import { toolParameters, parseArguments } from "../../tools/call.ts";
import { argumentsPreview, resolveDestination } from "../../tools/call-preview.ts";
import type { ToolSpec } from "../../tools/tool.ts";
import { offeredFunction } from "./offered-call.ts";
import type { AgentTool } from "../contracts/middleware.ts";

export function specTool(spec: ToolSpec): AgentTool {
  const offered = new DynamicStructuredTool({
    name: spec.name,
    description: spec.description,
    schema: toolParameters(spec.schema),
    func: offeredFunction(spec.name),
  });
  return {
    name: spec.name,
    kind: spec.kind,
    offered,
    validate: (args) => parseArguments(spec, args),
    // A tool returns its failures. Other errors are bugs, not shown, or steps that could not be stored.
    run: (call, scope) =>
      scope.observe(call, offered, async () => {
        try {
          return await spec.handle(call.args, scope.context);
        } catch (error) {
          if (scope.isPause(error) || isAbortError(error)) throw error;
          if (isTransient(error) && spec.kind === "delegate") throw error;
          throw new Error(`${spec.name} failed unexpectedly; try another way.`, { cause: error });
        }
      }),
    // By default, shows the arguments, and the place that a path among them leads to.
    preview: async (args, context) => {
      const own = await spec.preview?.(args, context);
      const path = own === undefined ? spec.pathOf?.(args) : undefined;
      if (path === undefined) return own ?? argumentsPreview(spec.name, args);
      const to = await resolveDestination(path, context.backend);
      if (to.place === path) return argumentsPreview(spec.name, args);
      return argumentsPreview(`${spec.name} of ${to.name}`, args, to);
    },
    pathOf: (args) => spec.pathOf?.(args),
    changeOf: (args, artifact) => spec.changeOf?.(args, artifact),
  };
}
