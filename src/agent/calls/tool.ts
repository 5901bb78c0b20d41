/** Makes one form of every kind of tool: its checks, its calls, and how they are shown. */
import { ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  DynamicStructuredTool,
  type StructuredToolInterface,
  tool as langChainTool,
} from "@langchain/core/tools";
import { ConfigurationError, isAbortError, isTransient } from "../../core/errors.ts";
import { invalidArguments, parametersOf, parseArguments } from "../../tools/call.ts";
import { argumentsPreview, destinationOf } from "../../tools/call-preview.ts";
import type { BoundPreview, ToolContext, ToolKind, ToolResult, ToolSpec } from "../../tools/tool.ts";
import type { AgentTool, ProviderTool, ToolInput, ValidatedArgs } from "../contracts/call.ts";
import { Command, isCommand, isGraphBubbleUp } from "../langgraph/internals.ts";
import { type ArgumentsCheck, argumentsCheck } from "./arguments.ts";
import { withToolCallbacks } from "./callbacks.ts";

/** Makes an `AgentTool` of any accepted form. */
export function toAgentTool(input: ToolInput): AgentTool {
  const given: unknown = input; // what callers without types pass
  if (typeof given !== "object" && typeof given !== "function") {
    throw new ConfigurationError(
      "INVALID_TOOL",
      `${JSON.stringify(given)} is not a tool. \`tools\` takes tools themselves, not their names.`,
    );
  }
  if ("offered" in input) return input;
  if ("handle" in input) return fromSpec(input);
  if ("lc_namespace" in input) return fromStructuredTool(input as StructuredToolInterface, "execute"); // a runnable is called alike
  if (typeof input.invoke !== "function" || !input.name) {
    throw new ConfigurationError(
      "INVALID_TOOL",
      "A tool needs a name, a description, a schema and a function.",
    );
  }
  const made = langChainTool(
    (args: Record<string, unknown>, config: RunnableConfig) => input.invoke(args, config),
    {
      name: input.name,
      description: input.description,
      schema: input.schema,
    },
  );
  return fromStructuredTool(made, input.kind ?? "execute");
}

/** True for a tool that runs at the model's provider: it has a type, or one field named after it, and nothing to call. */
export const isProviderTool = (input: ToolInput | ProviderTool): input is ProviderTool =>
  typeof input === "object" &&
  !["invoke", "handle", "offered", "lc_namespace"].some((field) => field in input) &&
  ("type" in input || (!("name" in input) && Object.keys(input).length === 1));

/** The tool message and state update of a result, as the graph takes them. */
export function toolOutcome(call: ToolCall, result: ToolResult): ToolMessage | Command {
  const message = new ToolMessage({
    content: result.content,
    name: call.name,
    tool_call_id: call.id ?? "",
    status: result.status ?? "success",
    artifact: result.artifact,
  });
  if (result.whole) wholeTexts.set(message, result.whole);
  if (!result.update) return message;
  return new Command({ update: { messages: [message], ...result.update } });
}

/** Texts too large for their messages, until the files layer has put them into files: no state ever holds them. */
const wholeTexts = new WeakMap<ToolMessage, NonNullable<ToolResult["whole"]>>();

/** The text that goes into a file instead of the message's own, and the note below its preview. */
export const wholeTextOf = (message: ToolMessage): ToolResult["whole"] => wholeTexts.get(message);

/** The tool messages of an outcome; a command's update may carry any number. */
export function toolMessagesOf(outcome: ToolMessage | Command): ToolMessage[] {
  if (!isCommand(outcome)) return [outcome];
  const messages: unknown = Array.isArray(outcome.update) ? undefined : outcome.update?.["messages"];
  return Array.isArray(messages) ? messages.filter((message) => ToolMessage.isInstance(message)) : [];
}

function fromSpec(spec: ToolSpec): AgentTool {
  const offered = new DynamicStructuredTool({
    name: spec.name,
    description: spec.description,
    schema: parametersOf(spec),
    func: () => Promise.reject(new Error(`${spec.name} runs inside a deep agent only`)),
  });
  return {
    name: spec.name,
    kind: spec.kind,
    offered,
    validate: (args) => parseArguments(spec, args),
    run: (call, { context, config }) =>
      withToolCallbacks(call, offered, config, async () =>
        toolOutcome(call, await handled(spec, call.args, context)),
      ),
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
  const to = await destinationOf(path, backend);
  return to.place === path
    ? argumentsPreview(spec.name, args)
    : argumentsPreview(`${spec.name} of ${to.name}`, args, to);
}

/**
 * Runs a tool of this project. It returns its failures; what else it throws is a bug, whose text is not shown, unless
 * steps of a subagent could not be stored.
 */
async function handled(
  spec: ToolSpec,
  args: Record<string, unknown>,
  context: ToolContext,
): Promise<ToolResult> {
  try {
    return await spec.handle(args, context);
  } catch (error) {
    if (isGraphBubbleUp(error) || isAbortError(error)) throw error;
    if (isTransient(error) && spec.kind === "delegate") throw error;
    throw new Error(`${spec.name} failed unexpectedly; try another way.`, { cause: error });
  }
}

function fromStructuredTool(offered: StructuredToolInterface, kind: ToolKind): AgentTool {
  const check = argumentsCheck(offered.schema);
  return {
    name: offered.name,
    kind,
    offered,
    validate: (args) => validateBy(check, offered.name, args),
    run: async (call, { config, state }) => {
      // LangChain's tools read the run from their configuration.
      const runtime = { ...config, config, state, toolCallId: call.id };
      const output: unknown = await offered.invoke({ ...call, type: "tool_call" }, runtime);
      if (ToolMessage.isInstance(output) || isCommand(output)) return output;
      return toolOutcome(call, {
        content: typeof output === "string" ? output : JSON.stringify(output ?? null),
      });
    },
    preview: async (args) => argumentsPreview(offered.name, args),
    pathOf: () => undefined,
  };
}

function validateBy(check: ArgumentsCheck, name: string, args: unknown): ValidatedArgs {
  const issues = check(args);
  if (issues.length > 0) return { ok: false, message: invalidArguments(name, issues) };
  if (typeof args !== "object" || args === null || Array.isArray(args)) {
    return { ok: false, message: `Invalid arguments for ${name}: expected an object` };
  }
  return { ok: true, args: { ...args } };
}
