/** Makes one form of every kind of tool: those of this project, of LangChain, and plain functions. */
import { ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { type StructuredToolInterface, tool as langChainTool } from "@langchain/core/tools";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { isCommand } from "@langchain/langgraph";
import { ConfigurationError, orElse } from "../../core/errors.ts";
import { isRecord } from "../../core/unknown.ts";
import { invalidArguments } from "../../tools/call.ts";
import { argumentsPreview } from "../../tools/call-preview.ts";
import { mendedArguments } from "../../tools/mend-arguments.ts";
import type { ToolKind } from "../../tools/tool.ts";
import { argumentsCheck } from "../calls/arguments.ts";
import { specTool } from "../calls/tool.ts";
import type { AgentTool, ProviderTool, ToolInput } from "../contracts/middleware.ts";
import { tellQuestions } from "./ask-person.ts";
import { fromOutcome } from "./outcome.ts";

export function toAgentTool(input: ToolInput): AgentTool {
  const given: unknown = input; // callers without types pass anything
  if (typeof given !== "object" && typeof given !== "function")
    throw invalid(
      `${JSON.stringify(given)} is not a tool. \`tools\` takes tools themselves, not their names.`,
    );
  if ("offered" in input) return input;
  if ("handle" in input) return specTool(input);
  if ("lc_namespace" in input) return fromStructuredTool(input as StructuredToolInterface, "execute"); // a runnable is called alike
  if (typeof input.invoke !== "function" || !input.name)
    throw invalid("A tool needs a name, a description, a schema and a function.");
  const { name, description, schema } = input;
  const invoke = (args: Record<string, unknown>, config: RunnableConfig) => input.invoke(args, config);
  return fromStructuredTool(langChainTool(invoke, { name, description, schema }), input.kind ?? "execute");
}

const invalid = (problem: string): ConfigurationError => new ConfigurationError("INVALID_TOOL", problem);

/** True for a tool that runs at the model's provider: it has a type, or one field named after it, and nothing to call. */
export const isProviderTool = (input: ToolInput | ProviderTool): input is ProviderTool =>
  typeof input === "object" &&
  !["invoke", "handle", "offered", "lc_namespace"].some((field) => field in input) &&
  ("type" in input || (!("name" in input) && Object.keys(input).length === 1));

function fromStructuredTool(offered: StructuredToolInterface, kind: ToolKind): AgentTool {
  const check = argumentsCheck(offered.schema);
  return {
    name: offered.name,
    kind,
    offered,
    validate: (given) => {
      let [args, issues] = [given, check(given)];
      if (issues.length > 0) {
        const wanted = orElse(() => toJsonSchema(offered.schema), {});
        args = mendedArguments(wanted, given);
        issues = check(args);
      }
      if (issues.length > 0) return { ok: false, message: invalidArguments(offered.name, issues) };
      if (isRecord(args)) return { ok: true, args: { ...args } };
      return { ok: false, message: `Invalid arguments for ${offered.name}: expected an object` };
    },
    run: async (call, { config, state, step }) => {
      // LangChain's tools read the run from their configuration.
      const runtime = { ...config, config, state, toolCallId: call.id };
      const invoked: Promise<unknown> = offered.invoke({ ...call, type: "tool_call" }, runtime);
      const output = await invoked.catch((error: unknown) => {
        tellQuestions(error, step, call.id);
        throw error;
      });
      if (ToolMessage.isInstance(output) || isCommand(output)) return fromOutcome(output);
      return { content: typeof output === "string" ? output : JSON.stringify(output ?? null) };
    },
    preview: async (args) => argumentsPreview(offered.name, args),
    pathOf: () => undefined,
  };
}
