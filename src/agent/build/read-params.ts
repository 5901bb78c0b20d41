import { checkBackend } from "../../backends/runtime.ts";
import { criteriaProblem } from "../../core/criteria.ts";
import { ConfigurationError } from "../../core/errors.ts";
import { type Logger, createLogger } from "../../core/logger.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import { trimEndOf, fill } from "../../core/text.ts";
import { isObject } from "../../core/unknown.ts";
import { FILE_TOOL_NAMES, WEB_TOOL_NAMES } from "../../tools/options.ts";
import { type ResponseFormat, answerToolNames } from "../models/structured-answer.ts";
import type { AgentLimits } from "../contracts/limits.ts";
import type { FilesystemOptions } from "../layers/filesystem.ts";
import type { WebOptions } from "../layers/web.ts";
import { SEARCH_PROVIDERS } from "../../web/search/options.ts";
import tables from "./options.json" with { type: "json" };
import type { CompiledSubAgent, DeepAgentParams, GoalOptions, SubAgent } from "./params.ts";
import texts from "./texts.json" with { type: "json" };

/** Checks the parameters of `createDeepAgent`, as callers without types may pass them. */

/**
 * The parameters of an agent as the rest of the code may rely on them: known names, values of the right kind,
 * nothing that is `null` where null has no meaning.
 *
 * @throws ConfigurationError for anything else, subagents and nested options included.
 */
export function readParams(given: DeepAgentParams | null | undefined): DeepAgentParams {
  const params = readOptions("createDeepAgent", given, tables.createDeepAgent);
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
  const whole: WebOptions = typeof given === "object" ? given : { mode: given };
  const options = readOptions("web", whole, tables.web);
  const { mode = "ask", search } = options;
  if (!["ask", "allow", "off"].includes(mode))
    throw invalidOption(`web has the mode '${mode}'; modes are ask, allow and off.`);
  if (typeof search !== "object") return options;
  const read = readOptions("web.search", search, tables.webSearch);
  const { provider } = read;
  if (provider === undefined || SEARCH_PROVIDERS.includes(provider)) return { ...options, search: read };
  throw invalidOption(fill(texts.unknownSearchProvider, provider, SEARCH_PROVIDERS.join(", ")));
}

const invalidOption = (problem: string): ConfigurationError =>
  new ConfigurationError("INVALID_OPTION", problem);

const MOST_ROUNDS = 20;

/** @throws ConfigurationError `INVALID_GOAL` for no criteria, too many, too long or equal ones, and for other rounds. */
function readGoal(given: GoalOptions): GoalOptions {
  const goal = readOptions("goal", given, tables.goal);
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
  if ("graphId" in given) throw invalidSubagent(fill(texts.isAssistant, subject));
  const spec = "runnable" in given ? readCompiled(owner, given) : readOptions(owner, given, tables.subagent);
  if (!["isolated", "handoff", "fork", undefined].includes(spec.mode))
    throw invalidSubagent(fill(texts.unknownMode, subject, String(spec.mode)));
  if ("runnable" in spec) return spec;
  const { limits, filesystem } = spec;
  return {
    ...spec,
    ...(limits && { limits: readOptions(`${owner}.limits`, limits, tables.subagentLimits) }),
    ...(filesystem && { filesystem: readOptions(`${owner}.filesystem`, filesystem, NESTED.filesystem) }),
  };
}

const invalidSubagent = (problem: string): ConfigurationError =>
  new ConfigurationError("INVALID_SUBAGENT", problem);

function readCompiled(owner: string, given: CompiledSubAgent): CompiledSubAgent {
  const spec = readOptions(owner, given, tables.compiled);
  const { runnable } = spec as { runnable?: { invoke?: unknown } | null }; // callers without types pass anything
  if (typeof runnable?.invoke === "function") return spec;
  throw invalidSubagent(fill(texts.noInvoke, spec.name));
}

const isText = (value: unknown): boolean => typeof value === "string" && value.trim() !== "";

/** Options that have options of their own. */
const NESTED: {
  [Name in keyof typeof tables.nested]: OptionTable<Extract<DeepAgentParams[Name], object>>;
} = tables.nested;

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
  const warn = (gates: SubAgent["interruptOn"], tools: Iterable<string>, owner: string): void => {
    const existing = new Set([...tools, ...builtIn]);
    const unknown = Object.entries(gates || {}).flatMap(([name, gate]) =>
      gate === false || existing.has(name) ? [] : [name],
    );
    if (unknown.length === 0) return;
    log.warn("unknown_tools_gated", { tools: unknown, owner, advice: texts.unknownGatedTools });
  };
  warn(params.interruptOn, known, "the agent and its subagents");
  for (const spec of specs) {
    if ("runnable" in spec) continue;
    warn(spec.interruptOn, toolsOfSubagent(spec.name), `the subagent '${spec.name}'`);
  }
}

let isSaverTold = false;

/** Warns of approvals that are lost with the process: programs without a log, which may build many agents, once. */
export function warnOfMemorySaver(log: Logger | undefined): void {
  if (log === undefined && isSaverTold) return;
  isSaverTold ||= log === undefined;
  (log ?? createLogger("warn")).warn("in_memory_checkpointer", { reason: texts.approvalsInMemory });
}

/** @throws ConfigurationError `UNKNOWN_TOOL` when options of the file tools name a tool that does not exist. */
export function checkFileTools({ tools = [], toolDescriptions = {} }: FilesystemOptions = {}): void {
  const named: readonly string[] = [...tools, ...Object.keys(toolDescriptions)];
  const unknown = named.find((name) => !FILE_TOOL_NAMES.includes(name));
  const problem = fill(texts.unknownFileTool, unknown, FILE_TOOL_NAMES.join(", "));
  if (unknown !== undefined) throw new ConfigurationError("UNKNOWN_TOOL", problem);
}

/** @throws ConfigurationError `INVALID_LIMIT` for anything but amounts. */
export function checkLimits({ prices: _amounts, ...limits }: AgentLimits = {}): void {
  for (const [name, value] of Object.entries(limits)) {
    const least = name === "parallelTools" || name === "parallelSubagents" ? 1 : 0;
    if (value === undefined || (typeof value === "number" && value >= least)) continue;
    throw new ConfigurationError("INVALID_LIMIT", fill(texts.invalidLimit, name, String(value), least));
  }
}

/** @throws ConfigurationError for a folder of skills that is listed twice: one of them was to be another. */
export function checkSkillSources(sources: readonly string[] = []): void {
  const twice = firstRepeated(sources.map((source) => trimEndOf(source, "/")));
  if (twice !== undefined)
    throw new ConfigurationError("SKILL_SOURCE_COLLISION", fill(texts.sameSkillSource, twice || "/"));
}

export const firstRepeated = (names: readonly string[]): string | undefined =>
  names.find((name, index) => names.indexOf(name) !== index);

/** @throws ConfigurationError when the tool for the structured answer has the name of another one. */
export function checkAnswerTools(format: ResponseFormat | undefined, tools: ReadonlyMap<string, unknown>) {
  const names = format ? answerToolNames(format) : [];
  const taken = names.find((name) => tools.has(name));
  const name = taken ?? firstRepeated(names);
  const problem = taken === undefined ? texts.sameTitle : texts.titleOfTool;
  if (name !== undefined) throw new ConfigurationError("TOOL_NAME_COLLISION", fill(problem, name));
}
