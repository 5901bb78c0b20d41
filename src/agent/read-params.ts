import { checkBackend } from "../backends/resolve.ts";
import { ConfigurationError } from "../core/errors.ts";
import { type OptionTable, readOptions } from "../core/options.ts";
import type { AgentLimits } from "./limits/limits.ts";
import type { FilesystemOptions } from "./middleware/filesystem.ts";
import type { DelegationOptions } from "./middleware/subagents.ts";
import type { SummarizationOptions } from "./middleware/summarization.ts";
import type { CompiledSubAgent, DeepAgentParams, SubAgent } from "./params.ts";

/**
 * The parameters of an agent as the rest of the code may rely on them: known names, values of the right kind,
 * nothing that is `null` where null has no meaning.
 *
 * @throws ConfigurationError for anything else, subagents and nested options included.
 */
export function readParams(given: DeepAgentParams | null | undefined): DeepAgentParams {
  const params = readOptions("createDeepAgent", given, PARAMS);
  const { subagents, limits, filesystem, summarization, delegation, generalPurpose } = params;
  if (params.backend !== undefined) checkBackend("`backend`", params.backend);
  return {
    ...params,
    ...(subagents && { subagents: subagents.map(readSubagent) }),
    ...(limits && { limits: readOptions("limits", limits, LIMITS) }),
    ...(filesystem && { filesystem: readOptions("filesystem", filesystem, FILESYSTEM) }),
    ...(summarization && { summarization: readOptions("summarization", summarization, SUMMARIZATION) }),
    ...(delegation && { delegation: readOptions("delegation", delegation, DELEGATION) }),
    ...(typeof generalPurpose === "object" && {
      generalPurpose: readOptions("generalPurpose", generalPurpose, GENERAL_PURPOSE_OPTIONS),
    }),
  };
}

function readSubagent(given: SubAgent | CompiledSubAgent, index: number): SubAgent | CompiledSubAgent {
  const owner = `subagents[${index}]`;
  const untyped: unknown = given;
  if (typeof untyped !== "object" || untyped === null || !isText(given.name) || !isText(given.description)) {
    throw new ConfigurationError(
      "INVALID_SUBAGENT",
      `${owner} needs a name, by which it is called, and a description of what it is for.`,
    );
  }
  if ("graphId" in given) {
    throw new ConfigurationError(
      "INVALID_SUBAGENT",
      `The subagent '${given.name}' is an assistant of a LangGraph server (graphId), which is not called from here; give something with \`invoke\` that calls it as \`runnable\`.`,
    );
  }
  const spec = "runnable" in given ? readCompiled(owner, given) : readOptions(owner, given, SUBAGENT);
  if (!["isolated", "handoff", "fork", undefined].includes(spec.mode)) {
    throw new ConfigurationError(
      "INVALID_SUBAGENT",
      `The subagent '${given.name}' has the mode '${String(spec.mode)}'; modes are isolated (or handoff, which means the same) and fork.`,
    );
  }
  if ("runnable" in spec) return spec;
  return {
    ...spec,
    ...(spec.limits && { limits: readOptions(`${owner}.limits`, spec.limits, SUBAGENT_LIMITS) }),
    ...(spec.filesystem && {
      filesystem: readOptions(`${owner}.filesystem`, spec.filesystem, FILESYSTEM),
    }),
  };
}

function readCompiled(owner: string, given: CompiledSubAgent): CompiledSubAgent {
  const spec = readOptions(owner, given, COMPILED);
  const runnable: unknown = spec.runnable;
  const canInvoke =
    runnable !== null &&
    (typeof runnable === "object" || typeof runnable === "function") &&
    "invoke" in runnable &&
    typeof runnable.invoke === "function";
  if (canInvoke) return spec;
  throw new ConfigurationError(
    "INVALID_SUBAGENT",
    `The runnable of the subagent '${spec.name}' has no \`invoke\`; give a graph, an agent or another runnable.`,
  );
}

const isText = (value: unknown): boolean => typeof value === "string" && value.trim() !== "";

const PARAMS: OptionTable<DeepAgentParams> = {
  model: "anything",
  fallbackModels: "a list",
  memory: "a list of non-empty texts",
  skills: "a list of non-empty texts",
  promptCaching: "true or false",
  summarization: "a plain object or false",
  tools: "a list",
  systemPrompt: "anything",
  middleware: "a list",
  subagents: "a list",
  backend: "anything",
  store: "anything",
  checkpointer: "anything",
  cache: "anything",
  interruptOn: "a plain object",
  stateSchema: "anything or null",
  contextSchema: "anything",
  responseFormat: "anything",
  name: "a text",
  todos: "true or false",
  filesystem: "a plain object",
  permissions: "a list",
  delegation: "a plain object",
  generalPurpose: "anything",
  limits: "a plain object",
  recursionLimit: "a number",
  debug: "true or false",
  log: "anything",
};

const SUBAGENT: OptionTable<SubAgent> = {
  name: "a text",
  description: "a text",
  systemPrompt: "anything",
  tools: "a list",
  model: "anything",
  middleware: "a list",
  skills: "a list of non-empty texts",
  interruptOn: "a plain object or false",
  responseFormat: "anything",
  mode: "a text",
  permissions: "a list",
  filesystem: "a plain object",
  limits: "a plain object",
  recursionLimit: "a number",
};

const COMPILED: OptionTable<CompiledSubAgent> = {
  name: "a text",
  description: "a text",
  runnable: "anything",
  mode: "a text",
  isRepeatable: "true or false",
};

const FILESYSTEM: OptionTable<FilesystemOptions> = {
  evictTokens: "a number or null",
  humanEvictTokens: "a number or null",
  systemPrompt: "a text or null",
  grepMaxCount: "a number",
  readLimit: "a number",
  maxLineChars: "a number",
  allowedPrefixes: "a list of non-empty texts",
  toolDescriptions: "a plain object",
  tools: "a list of non-empty texts",
  delete: "true or false",
  jobs: "true or false",
  acceptsMedia: "a function",
};

const SUMMARIZATION: OptionTable<SummarizationOptions> = {
  trigger: "anything",
  keep: "a plain object",
  model: "anything",
  prompt: "a text",
  historyPathPrefix: "a text",
  truncateArgs: "true or false",
  countTokens: "a function",
};

const DELEGATION: OptionTable<DelegationOptions> = {
  systemPrompt: "a text or null",
  taskDescription: "a text",
};

const GENERAL_PURPOSE_OPTIONS: OptionTable<{ description?: string; systemPrompt?: string }> = {
  description: "a text",
  systemPrompt: "a text",
};

const SUBAGENT_LIMITS: OptionTable<NonNullable<SubAgent["limits"]>> = {
  maxIterations: "a number",
  toolCalls: "a number",
  tokens: "a number",
  costUsd: "a number",
  prices: "a plain object",
  wallTimeMs: "a number",
  toolTimeoutMs: "a number",
  modelPatienceMs: "a number",
  parallelTools: "a number",
};

const LIMITS: OptionTable<AgentLimits> = {
  ...SUBAGENT_LIMITS,
  parallelSubagents: "a number",
  subagentDepth: "a number",
};
