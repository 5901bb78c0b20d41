import { checkBackend } from "../../backends/runtime.ts";
import { criteriaProblem } from "../../core/criteria.ts";
import { ConfigurationError } from "../../core/errors.ts";
import { type Logger, createLogger } from "../../core/logger.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import { trimEndOf } from "../../core/text.ts";
import { isObject } from "../../core/unknown.ts";
import { FILE_TOOL_NAMES } from "../../tools/index.ts";
import { WEB_TOOL_NAMES } from "../../tools/options.ts";
import { type ResponseFormat, answerToolNames } from "../models/structured-answer.ts";
import type { AgentLimits } from "../contracts/limits.ts";
import type { FilesystemOptions } from "../layers/filesystem.ts";
import type { WebOptions } from "../layers/web.ts";
import { SEARCH_PROVIDERS } from "../../web/search/options.ts";
import type { CompiledSubAgent, DeepAgentParams, GoalOptions, SubAgent } from "./params.ts";

/** Checks the parameters of `createDeepAgent`, as callers without types may pass them. */

/**
 * The parameters of an agent as the rest of the code may rely on them: known names, values of the right kind,
 * nothing that is `null` where null has no meaning.
 *
 * @throws ConfigurationError for anything else, subagents and nested options included.
 */
export function readParams(given: DeepAgentParams | null | undefined): DeepAgentParams {
  const params = readOptions("createDeepAgent", given, PARAMS);
  const { subagents, web, goal } = params;
  if (params.backend !== undefined) checkBackend("`backend`", params.backend);
  const nested = Object.entries(NESTED).flatMap(([name, table]) => {
    const options = params[name as keyof typeof NESTED]; // a name of the table
    return typeof options === "object" ? [[name, readOptions<object>(name, options, table)]] : [];
  });
  return {
    ...params,
    ...Object.fromEntries(nested),
    ...(subagents && { subagents: subagents.map(readSubagent) }),
    ...(web !== undefined && { web: readWeb(web) }),
    ...(goal && { goal: readGoal(goal) }),
  };
}

function readWeb(given: NonNullable<DeepAgentParams["web"]>): WebOptions {
  const options = readOptions<WebOptions>("web", typeof given === "object" ? given : { mode: given }, {
    mode: "a text",
    hosts: "a list of non-empty texts",
    search: "anything",
    userAgent: "a text",
  });
  const { mode = "ask", search } = options;
  if (!["ask", "allow", "off"].includes(mode))
    throw invalidOption(`web has the mode '${mode}'; modes are ask, allow and off.`);
  if (typeof search !== "object") return options;
  const read = readOptions("web.search", search, {
    provider: "a text",
    url: "a text",
    command: "a list of non-empty texts",
  });
  const { provider } = read;
  if (provider === undefined || SEARCH_PROVIDERS.includes(provider)) return { ...options, search: read };
  throw invalidOption(
    `web.search has the provider '${provider}'; providers are ${SEARCH_PROVIDERS.join(", ")}.`,
  );
}

const invalidOption = (problem: string): ConfigurationError =>
  new ConfigurationError("INVALID_OPTION", problem);

const MOST_ROUNDS = 20;

/** @throws ConfigurationError `INVALID_GOAL` for no criteria, too many, too long or equal ones, and for other rounds. */
function readGoal(given: GoalOptions): GoalOptions {
  const goal = readOptions("goal", given, {
    criteria: "a list of non-empty texts",
    rounds: "a number",
    model: "anything",
  });
  const { criteria = [], rounds = 1 } = goal as Partial<GoalOptions>; // callers without types may leave them out
  const isCount = Number.isInteger(rounds) && rounds >= 1 && rounds <= MOST_ROUNDS;
  const roundsProblem = `goal.rounds is ${rounds}; it must be a whole number from 1 to ${MOST_ROUNDS}.`;
  const problem = criteriaProblem(criteria) ?? (isCount ? undefined : roundsProblem);
  if (problem !== undefined) throw new ConfigurationError("INVALID_GOAL", problem);
  return { ...goal, criteria: criteria.map((criterion) => criterion.trim()) };
}

function readSubagent(given: SubAgent | CompiledSubAgent, index: number): SubAgent | CompiledSubAgent {
  const owner = `subagents[${index}]`;
  if (!isObject(given) || !isText(given.name) || !isText(given.description))
    throw invalidSubagent(`${owner} needs a name and a description of its purpose.`);
  const subject = `The subagent '${given.name}'`;
  if ("graphId" in given) {
    throw invalidSubagent(
      `${subject} is an assistant of a LangGraph server (graphId), which cannot be called from here; pass a \`runnable\` whose \`invoke\` calls it.`,
    );
  }
  const spec = "runnable" in given ? readCompiled(owner, given) : readOptions(owner, given, SUBAGENT);
  if (!["isolated", "handoff", "fork", undefined].includes(spec.mode)) {
    throw invalidSubagent(
      `${subject} has the mode '${String(spec.mode)}'; modes are isolated (or handoff, which means the same) and fork.`,
    );
  }
  if ("runnable" in spec) return spec;
  const { limits, filesystem } = spec;
  return {
    ...spec,
    ...(limits && { limits: readOptions(`${owner}.limits`, limits, SUBAGENT_LIMITS) }),
    ...(filesystem && { filesystem: readOptions(`${owner}.filesystem`, filesystem, FILESYSTEM) }),
  };
}

const invalidSubagent = (problem: string): ConfigurationError =>
  new ConfigurationError("INVALID_SUBAGENT", problem);

function readCompiled(owner: string, given: CompiledSubAgent): CompiledSubAgent {
  const spec = readOptions(owner, given, {
    name: "a text",
    description: "a text",
    runnable: "anything",
    mode: "a text",
    isRepeatable: "true or false",
  });
  const { runnable } = spec as { runnable?: { invoke?: unknown } | null }; // callers without types pass anything
  if (typeof runnable?.invoke === "function") return spec;
  throw invalidSubagent(
    `The runnable of the subagent '${spec.name}' has no \`invoke\`; pass a graph, an agent or another runnable.`,
  );
}

const isText = (value: unknown): boolean => typeof value === "string" && value.trim() !== "";

const MODEL = "a model, or a text such as 'anthropic:NAME'";

const PARAMS: OptionTable<DeepAgentParams> = {
  model: MODEL,
  fallbackModels: "a list",
  instructions: "a plain object",
  memory: "a list of non-empty texts",
  skills: "a list of non-empty texts",
  promptCaching: "true or false",
  summarization: "a plain object or false",
  tools: "a list",
  systemPrompt: "anything",
  middleware: "a list",
  subagents: "a list",
  backend: "anything",
  store: "a store, such as `new InMemoryStore()`",
  checkpointer: "a checkpointer, or true or false",
  cache: "anything",
  interruptOn: "a plain object",
  stateSchema: "anything or null",
  contextSchema: "anything",
  responseFormat: "a schema, or a list of them",
  goal: "a plain object",
  name: "a text",
  todos: "true or false",
  askUser: "true or false",
  web: "anything",
  toolsOnDemand: "a plain object",
  programs: "true or false",
  hints: "a plain object",
  filesystem: "a plain object",
  permissions: "a list",
  callRules: "anything",
  delegation: "a plain object",
  generalPurpose: "anything",
  limits: "a plain object",
  recursionLimit: "a number",
  streamTransformers: "a list",
  debug: "true or false",
  log: "anything",
};

const SUBAGENT: OptionTable<SubAgent> = {
  name: "a text",
  description: "a text",
  systemPrompt: "anything",
  tools: "a list",
  model: MODEL,
  middleware: "a list",
  skills: "a list of non-empty texts",
  interruptOn: "a plain object or false",
  responseFormat: "a schema, or a list of them",
  mode: "a text",
  permissions: "a list",
  filesystem: "a plain object",
  webTools: "a list of non-empty texts",
  limits: "a plain object",
  recursionLimit: "a number",
  delegates: "true or false",
  buildOnUse: "true or false",
};

const FILESYSTEM: OptionTable<FilesystemOptions> = {
  evictTokens: "a number or null",
  humanEvictTokens: "a number or null",
  systemPrompt: "a text or null",
  grepMaxCount: "a number",
  readLimit: "a number",
  maxLineChars: "a number",
  allowedPrefixes: "a list of non-empty texts",
  toolDescriptions: "a plain object of texts",
  tools: "a list of non-empty texts",
  delete: "true or false",
  jobs: "true or false",
  acceptsMedia: "a function",
};

const SUBAGENT_LIMITS: OptionTable<NonNullable<SubAgent["limits"]>> = {
  maxIterations: "a number",
  toolCalls: "a number",
  tokens: "a number",
  costUsd: "a number",
  prices: "an object with { input, output } for each model",
  wallTimeMs: "a number",
  toolTimeoutMs: "a number",
  modelPatienceMs: "a number",
  parallelTools: "a number",
  repeatedTurns: "a number",
};

type Table<Name extends keyof DeepAgentParams> = OptionTable<Extract<DeepAgentParams[Name], object>>;

/** Options that have options of their own. */
const NESTED: {
  [Name in "limits" | "filesystem" | "summarization" | "delegation" | "instructions" | "hints"]: Table<Name>;
} & { [Name in "toolsOnDemand" | "generalPurpose"]: Table<Name> } = {
  limits: {
    ...SUBAGENT_LIMITS,
    parallelSubagents: "a number",
    subagentDepth: "a number",
    listedCharacters: "a number",
  },
  filesystem: FILESYSTEM,
  summarization: {
    trigger: "anything",
    keep: "a plain object",
    model: "anything",
    prompt: "a text",
    historyPathPrefix: "a text",
    truncateArgs: "true or false",
    countTokens: "a function",
  },
  delegation: {
    systemPrompt: "a text or null",
    taskDescription: "a text",
    folders: "a list of non-empty texts",
  },
  instructions: {
    folder: "a text",
    repository: "a plain object",
    home: "a plain object",
    isPrivate: "a function",
  },
  hints: {
    workspace: "a text",
    listing: "true or false",
    ending: "true or false",
    failures: "true or false",
  },
  toolsOnDemand: { names: "a list of non-empty texts", tokens: "a number" },
  generalPurpose: { description: "a text", systemPrompt: "anything", middleware: "a list" },
};

/**
 * Warns about gates that name no existing tool: a misspelt gate asks nobody. This is not an error, because middleware
 * may add the tool later. Subagents inherit the agent's gates, so these may name their tools.
 */
export function warnOfGates(
  params: DeepAgentParams,
  own: Iterable<string>,
  toolsOfSubagent: (name: string) => Iterable<string>,
): void {
  const log = params.log ?? createLogger("warn");
  // One that is built on its first use has none but the agent's tools, or warns then.
  const specs = (params.subagents ?? []).filter((spec) => "runnable" in spec || spec.buildOnUse !== true);
  const known = [...own, ...specs.flatMap((spec) => [...toolsOfSubagent(spec.name)])];
  // Options switch these on or off: a gate for a tool that is off is not a mistake.
  const builtIn = [...FILE_TOOL_NAMES, "write_todos", "ask_user", ...WEB_TOOL_NAMES, "task"];
  const warn = (gates: SubAgent["interruptOn"], tools: readonly string[], owner: string): void => {
    const unknown = Object.entries(gates || {}).flatMap(([name, gate]) =>
      gate === false || tools.includes(name) || builtIn.includes(name) ? [] : [name],
    );
    if (unknown.length === 0) return;
    const advice =
      "interruptOn names tools that do not exist: nobody will be asked, unless middleware adds them. Correct the names or leave them out.";
    log.warn("unknown_tools_gated", { tools: unknown, owner, advice });
  };
  warn(params.interruptOn, known, "the agent and its subagents");
  for (const spec of specs) {
    if ("runnable" in spec) continue;
    warn(spec.interruptOn, [...toolsOfSubagent(spec.name)], `the subagent '${spec.name}'`);
  }
}

let isSaverTold = false;

/** Warns of approvals that are lost with the process: programs without a log, which may build many agents, once. */
export function warnOfMemorySaver(log: Logger | undefined): void {
  if (log === undefined && isSaverTold) return;
  isSaverTold ||= log === undefined;
  const reason =
    "interruptOn needs a checkpointer, but none was passed; waiting approvals are lost with this process";
  (log ?? createLogger("warn")).warn("in_memory_checkpointer", { reason });
}

/** @throws ConfigurationError `UNKNOWN_TOOL` when options of the file tools name a tool that does not exist. */
export function checkFileTools({ tools = [], toolDescriptions = {} }: FilesystemOptions = {}): void {
  const named: readonly string[] = [...tools, ...Object.keys(toolDescriptions)];
  const unknown = named.find((name) => !FILE_TOOL_NAMES.includes(name));
  if (unknown === undefined) return;
  throw new ConfigurationError(
    "UNKNOWN_TOOL",
    `filesystem names '${unknown}', which is not a file tool. File tools are ${FILE_TOOL_NAMES.join(", ")}.`,
  );
}

/** @throws ConfigurationError `INVALID_LIMIT` for anything but amounts. */
export function checkLimits({ prices: _amounts, ...limits }: AgentLimits = {}): void {
  for (const [name, value] of Object.entries(limits)) {
    const least = name === "parallelTools" || name === "parallelSubagents" ? 1 : 0;
    if (value === undefined || (typeof value === "number" && value >= least)) continue;
    throw new ConfigurationError(
      "INVALID_LIMIT",
      `limits.${name} is ${String(value)}; it must be a number from ${least}, or be left out.`,
    );
  }
}

/** @throws ConfigurationError for a folder of skills that is listed twice: one of them was to be another. */
export function checkSkillSources(sources: readonly string[] = []): void {
  const folders = sources.map((source) => trimEndOf(source, "/"));
  const twice = folders.find((folder, index) => folders.indexOf(folder) !== index);
  if (twice === undefined) return;
  throw new ConfigurationError(
    "SKILL_SOURCE_COLLISION",
    `The skill source '${twice || "/"}' is given twice; name each folder once.`,
  );
}

/** @throws ConfigurationError when the tool for the structured answer has the name of another one. */
export function checkAnswerTools(format: ResponseFormat | undefined, tools: ReadonlyMap<string, unknown>) {
  const names = format ? answerToolNames(format) : [];
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  const taken = names.find((name) => tools.has(name));
  if (taken === undefined && twice === undefined) return;
  throw new ConfigurationError(
    "TOOL_NAME_COLLISION",
    taken === undefined
      ? `Two schemas of responseFormat have the title '${twice}', which names the answer; titles must differ.`
      : `'${taken}' is both a tool and the title of a responseFormat schema; change the title, or rename the tool.`,
  );
}
