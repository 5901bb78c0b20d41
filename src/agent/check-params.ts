import { ConfigurationError } from "../core/errors.ts";
import { createLogger, type Logger } from "../core/logger.ts";
import { trimEndOf } from "../core/text.ts";
import { FILE_TOOL_NAMES } from "../tools/index.ts";
import type { AgentLimits } from "./limits/limits.ts";
import type { FilesystemOptions } from "./middleware/filesystem.ts";
import type { DeepAgentParams, SubAgent } from "./params.ts";
import { answerToolNames, type ResponseFormat } from "./structured.ts";

/** Tools that an agent may have or not, by its options: a gate for one that is off is no mistake. */
const BUILT_IN: ReadonlySet<string> = new Set([...FILE_TOOL_NAMES, "write_todos", "task"]);

/**
 * Warns of gates that name no tool known so far: nobody is asked about a misspelt one. It may be one that
 * middleware brings later, and so is no error. The agent's gates are its subagents' too, and so may name their
 * tools.
 */
export function warnOfGates(
  params: DeepAgentParams,
  own: Iterable<string>,
  toolsOfSubagent: (name: string) => Iterable<string>,
): void {
  const log = params.log ?? createLogger("warn");
  const specs = params.subagents ?? [];
  const known = [...own, ...specs.flatMap((spec) => [...toolsOfSubagent(spec.name)])];
  const warn = (gates: SubAgent["interruptOn"], tools: readonly string[], owner: string): void => {
    const unknown = Object.entries(gates || {}).flatMap(([name, gate]) =>
      gate === false || tools.includes(name) || BUILT_IN.has(name) ? [] : [name],
    );
    if (unknown.length === 0) return;
    log.warn("unknown_tools_gated", { tools: unknown, owner, advice: ADVICE });
  };
  warn(params.interruptOn, known, "the agent and its subagents");
  for (const spec of specs) {
    if ("runnable" in spec) continue;
    warn(spec.interruptOn, [...toolsOfSubagent(spec.name)], `the subagent '${spec.name}'`);
  }
}

const ADVICE =
  "interruptOn names tools that there are not: nobody will be asked, unless middleware brings them. Correct the names or leave them out.";

let isSaverTold = false;

/** Warns of approvals that are lost with the process: programs without a log, which may build many agents, once. */
export function warnOfMemorySaver(log: Logger | undefined): void {
  if (log === undefined && isSaverTold) return;
  isSaverTold ||= log === undefined;
  const reason =
    "interruptOn needs a checkpointer and none was given; waiting approvals are lost with this process";
  (log ?? createLogger("warn")).warn("in_memory_checkpointer", { reason });
}

/** @throws ConfigurationError `UNKNOWN_TOOL` when options of the file tools name one that there is not. */
export function checkFileTools({ tools = [], toolDescriptions = {} }: FilesystemOptions = {}): void {
  const named: readonly string[] = [...tools, ...Object.keys(toolDescriptions)];
  const unknown = named.find((name) => !FILE_TOOL_NAMES.includes(name));
  if (unknown === undefined) return;
  throw new ConfigurationError(
    "UNKNOWN_TOOL",
    `filesystem names '${unknown}', which is no file tool. File tools are ${FILE_TOOL_NAMES.join(", ")}.`,
  );
}

/** @throws ConfigurationError `INVALID_LIMIT` for what can be no amount. */
export function checkLimits({ prices: _amounts, ...limits }: AgentLimits = {}): void {
  for (const [name, value] of Object.entries(limits)) {
    const least = name === "parallelTools" || name === "parallelSubagents" ? 1 : 0;
    if (value === undefined || (typeof value === "number" && value >= least)) continue;
    throw new ConfigurationError(
      "INVALID_LIMIT",
      `limits.${name} is ${String(value)}; it takes a number from ${least} on, or is left out.`,
    );
  }
}

/** @throws ConfigurationError for a folder of skills that is given twice: one of them was to be another. */
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
export function checkAnswerTools(
  format: ResponseFormat | undefined,
  tools: ReadonlyMap<string, unknown>,
): void {
  const names = format ? answerToolNames(format) : [];
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  const taken = names.find((name) => tools.has(name));
  if (taken === undefined && twice === undefined) return;
  throw new ConfigurationError(
    "TOOL_NAME_COLLISION",
    taken === undefined
      ? `Two schemas of responseFormat have the title '${twice}', by which the answer is given; titles must differ.`
      : `'${taken}' is a tool and also what the answer of responseFormat is given by; give the schema another title, or rename the tool.`,
  );
}
