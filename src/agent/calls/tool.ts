/** Makes one form of every kind of tool: its checks, its calls, and how they are shown. */
import { CallbackManager } from "@langchain/core/callbacks/manager";
import { ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  DynamicStructuredTool,
  type StructuredToolInterface,
  tool as langChainTool,
} from "@langchain/core/tools";
import { Validator } from "@langchain/core/utils/json_schema";
import { isStandardSchema } from "@langchain/core/utils/standard_schema";
import { interopSafeParse, isInteropZodSchema } from "@langchain/core/utils/types";
import { ConfigurationError, isAbortError, isTransient } from "../../core/errors.ts";
import { headOf, oneLine } from "../../core/text.ts";
import { type ArgumentIssue, invalidArguments, parametersOf, parseArguments } from "../../tools/call.ts";
import { argumentsPreview, destinationOf } from "../../tools/call-preview.ts";
import type { BoundPreview, ToolContext, ToolKind, ToolResult, ToolSpec } from "../../tools/tool.ts";
import type { AgentTool, ToolInput, ValidatedArgs } from "../contracts/call.ts";
import { Command, isCommand, isGraphBubbleUp } from "../langgraph/internals.ts";
import { isObserved } from "../langgraph/untraced-node.ts";

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
  if ("lc_namespace" in input) return fromStructuredTool(input, "execute");
  if ("type" in input && !("invoke" in input)) {
    throw new ConfigurationError(
      "INVALID_TOOL",
      `${JSON.stringify(input)} is a provider's own tool, which runs there; offer it through middleware that adds it to \`tools\` of the request in wrapModelCall.`,
    );
  }
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

/** Returns the problems of a call's arguments; empty if none can be found before the tool runs. */
export type ArgumentsCheck = (args: unknown) => readonly ArgumentIssue[];

/**
 * Checks by any schema that a LangChain tool can have: zod 4 or 3, Standard Schema, JSON Schema. The check is made on
 * first use. An invalid or asynchronous schema reports nothing: the tool itself validates when it runs.
 */
export function argumentsCheck(schema: unknown): ArgumentsCheck {
  let check: ArgumentsCheck | undefined;
  return (args) => {
    try {
      check ??= checkBy(schema);
      return check(args);
    } catch {
      return [];
    }
  };
}

function checkBy(schema: unknown): ArgumentsCheck {
  if (isInteropZodSchema(schema)) {
    return (args) => {
      const parsed = interopSafeParse(schema, args);
      // An error without issues is one of the schema: it has to wait, or failed itself.
      return parsed.success ? [] : (parsed.error.issues ?? []);
    };
  }
  if (isStandardSchema(schema)) {
    return (args) => {
      const result = schema["~standard"].validate(args);
      if (!(result instanceof Promise)) return (result.issues ?? []).map(fromStandard);
      result.catch(() => {}); // told by the tool when it runs
      return [];
    };
  }
  if (typeof schema !== "object" || schema === null) return () => [];
  // The validator and draft that LangChain uses when it runs the tool, but reporting every problem.
  const validator = new Validator(schema, "2019-09", false);
  return (args) => issuesOf(validator.validate(args).errors);
}

type StandardIssue = Pick<ArgumentIssue, "message"> & {
  path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
};

const fromStandard = ({ message, path = [] }: StandardIssue): ArgumentIssue => ({
  message,
  path: path.map((segment) => (typeof segment === "object" ? segment.key : segment)),
});

type SchemaError = ReturnType<Validator["validate"]>["errors"][number];

/** Keywords that only repeat that something below them is wrong. */
const OUTER: ReadonlySet<string> = new Set(
  (
    "properties patternProperties additionalProperties unevaluatedProperties " +
    "items prefixItems additionalItems unevaluatedItems allOf $ref $recursiveRef"
  ).split(" "),
);
/** Keywords that take one of several forms; the problems of each form are left out. */
const CHOICE: ReadonlySet<string> = new Set(["anyOf", "oneOf"]);
/** The schema `false`: nothing may be there. */
const NOTHING = "false";

function issuesOf(errors: readonly SchemaError[]): ArgumentIssue[] {
  const choices: SchemaError[] = [];
  const telling = errors.filter((error) => {
    if (OUTER.has(error.keyword) || choices.some((choice) => isBelow(error, choice))) return false;
    if (CHOICE.has(error.keyword)) choices.push(error);
    return true;
  });
  return telling.map(({ keyword, error, instanceLocation }) => ({
    message: keyword === NOTHING ? "not expected here" : error,
    path: instanceLocation.split("/").slice(1).map(unescaped),
  }));
}

/** True if an error belongs to one form of the choice. The schema `false` is reported without its location. */
const isBelow = (error: SchemaError, choice: SchemaError): boolean =>
  `${error.instanceLocation}/`.startsWith(`${choice.instanceLocation}/`) &&
  (error.keyword === NOTHING || error.keywordLocation.startsWith(`${choice.keywordLocation}/`));

/** One part of a JSON pointer. */
const unescaped = (part: string): string => part.replaceAll("~1", "/").replaceAll("~0", "~");

/**
 * Runs a call and tells whoever observes the graph through callbacks (tracers, `streamEvents`, stream mode
 * `tools`) of its beginning and end, as LangChain's own tools do.
 */
export function withToolCallbacks<Outcome>(
  call: ToolCall,
  offered: DynamicStructuredTool,
  config: RunnableConfig,
  work: () => Promise<Outcome>,
): Promise<Outcome> {
  return isObserved(config) ? reportToCallbacks(call, offered, config, work) : work();
}

async function reportToCallbacks<Outcome>(
  { name, args, id }: ToolCall,
  offered: DynamicStructuredTool,
  { callbacks, tags, metadata }: RunnableConfig,
  work: () => Promise<Outcome>,
): Promise<Outcome> {
  const manager = CallbackManager.configure(callbacks, undefined, tags, undefined, metadata);
  if (!manager) return work();
  const tool = offered.toJSON();
  // Tracers take arguments as they are, though LangChain's type says text: its own tools give them so.
  const input = args as unknown as string;
  const told = await manager.handleToolStart(
    tool,
    input,
    undefined,
    undefined,
    undefined,
    undefined,
    name,
    id,
  );
  try {
    const outcome = await work();
    await told.handleToolEnd(outcome);
    return outcome;
  } catch (error) {
    await told.handleToolError(error);
    throw error;
  }
}

const SUMMARY_LIMIT = 160;
/** The argument that says most about a call, most telling first. */
const TELLING = ["file_path", "path", "pattern", "command", "description", "query", "url"] as const;

/** One line for people: the tool and what it is about, such as `grep "TODO" in /workspace/`. */
export function callSummary(name: string, args: Readonly<Record<string, unknown>>): string {
  if (name === "write_todos") return "write_todos";
  if (name === "grep" || name === "glob") {
    const where = typeof args["path"] === "string" ? ` in ${args["path"]}` : "";
    return oneLine(`${name} ${JSON.stringify(args["pattern"] ?? "")}${where}`, SUMMARY_LIMIT);
  }
  const telling = TELLING.map((key) => args[key]).find((value) => typeof value === "string");
  return oneLine(typeof telling === "string" ? `${name} ${telling}` : name, SUMMARY_LIMIT);
}

/** The first line of a result that says something, for people: no heading, fence or bracket alone. */
export function resultSummary(text: string): string {
  const lines = headOf(text.trimStart(), LOOKED_AT).split("\n");
  const telling = lines.find(
    (line) => /[\p{L}\p{N}]/u.test(line) && !/^\s*(?:#|`{3}|~{3}|<[^<>]*>\s*$)/.test(line),
  );
  return oneLine(telling ?? lines[0] ?? "", SUMMARY_LIMIT);
}

/** Characters of a result in which a telling line is looked for. */
const LOOKED_AT = 4000;
