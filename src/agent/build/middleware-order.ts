/** Lists the layers of an agent in their order. */
import { StateBackend } from "../../backends/stores/state.ts";
import { ConfigurationError } from "../../core/errors.ts";
import { createLogger, silentLogger } from "../../core/logger.ts";
import { askUserTool } from "../../tools/ask-user.ts";
import { runProgramTool } from "../../tools/run-program.ts";
import { specTool } from "../calls/tool.ts";
import type { Middleware } from "../contracts/middleware.ts";
import { HISTORY_FOLDER } from "../messages/kept-texts.ts";
import { adaptMiddleware } from "../langgraph/foreign-middleware.ts";
import { isProviderTool, toAgentTool } from "../langgraph/foreign-tool.ts";
import { debugMiddleware } from "../layers/debug.ts";
import { filesystemMiddleware } from "../layers/filesystem.ts";
import { type InterruptOn, humanInTheLoopMiddleware } from "../layers/human-in-the-loop.ts";
import { instructionsMiddleware } from "../layers/instructions.ts";
import { memoryMiddleware } from "../layers/memory.ts";
import { patchToolCallsMiddleware } from "../layers/patch-tool-calls.ts";
import { goalMiddleware, subagentMiddleware, todoListMiddleware } from "../layers/planning.ts";
import { promptCachingMiddleware } from "../layers/prompt-caching.ts";
import { skillsMiddleware } from "../layers/skills.ts";
import { summarizationMiddleware } from "../layers/summarization.ts";
import { toolsOnDemandMiddleware } from "../layers/tools-on-demand.ts";
import { type WebOptions, webMiddleware } from "../layers/web.ts";
import { workspaceMiddleware } from "../layers/workspace.ts";
import { modelFallbackMiddleware } from "../models/fallback.ts";
import type { DeepAgentParams, SubAgent } from "./params.ts";
import { checkSkillSources, firstRepeated } from "./read-params.ts";
import { listRooms } from "../layers/skill-files.ts";
import texts from "./texts.json" with { type: "json" };
import { fill } from "../../core/text.ts";

/** The layers of a main agent, outermost first: planning, memory, skills, files, delegation, context. */
export function mainStack(params: DeepAgentParams, subagents: Described): Middleware[] {
  const { memory = [], backend = StateBackend, log = silentLogger, hints = {} } = params;
  const { workspace: folder, listing: isListed = true } = hints;
  const room = listRooms(params.limits, params.skills, subagents);
  const defaults = [
    ...ownTools(params),
    ...instructions(params),
    ...(memory.length > 0 ? [memoryMiddleware(backend, memory, log)] : []),
    ...(folder !== undefined && isListed ? [workspaceMiddleware(backend, folder, log)] : []),
    ...skills(params, params.skills, room.skills),
    ...filesAndDelegation(params, subagents, room.subagents),
    ...(params.goal ? [goalMiddleware(params.goal.criteria)] : []),
    ...context(params),
  ];
  return arrange(defaults, params.middleware, params);
}

/** The layers of a subagent; it has skills of its own, and `subagents` only where delegation goes deeper. */
export function subagentStack(spec: SubAgent, params: DeepAgentParams, subagents: Described): Middleware[] {
  const room = listRooms(params.limits, spec.skills, subagents);
  const defaults = [
    ...ownTools(params, spec.webTools),
    ...instructions(params),
    ...filesAndDelegation(params, subagents, room.subagents),
    ...context(params),
    ...skills(params, spec.skills, room.skills),
  ];
  return arrange(defaults, spec.middleware, params);
}

/** The layers of a fork: the agent's, and its own middleware after them. */
export function forkStack(
  { name, skills: own, middleware = [] }: SubAgent,
  params: DeepAgentParams,
  subagents: Described,
): Middleware[] {
  if (own) throw new ConfigurationError("FORK_WITH_SKILLS", fill(texts.forkWithSkills, name));
  return mainStack({ ...params, middleware: [...(params.middleware ?? []), ...middleware] }, subagents);
}

/** True if any call of an agent can need a person. */
export const gatesAnything = (interruptOn: InterruptOn | undefined): interruptOn is InterruptOn =>
  Object.values(interruptOn ?? {}).some((gate) => gate !== false);

/** The folder for messages that leave the conversation. */
export const historyFolder = ({ summarization }: DeepAgentParams): string =>
  (summarization || {}).historyPathPrefix ?? HISTORY_FOLDER;

const instructions = ({ instructions: own, backend = StateBackend, log = silentLogger }: DeepAgentParams) =>
  own ? [instructionsMiddleware(backend, own, log)] : [];

/** The layers that add tools by themselves. `webTools`: those for the web, if not all. */
function ownTools(params: DeepAgentParams, webTools?: SubAgent["webTools"]): Middleware[] {
  const { tools = [], toolsOnDemand, filesystem } = params;
  const web = webOptions(params.web);
  const given = () => tools.flatMap((tool) => (isProviderTool(tool) ? [] : toAgentTool(tool)));
  return [
    ...(params.todos === false ? [] : [todoListMiddleware()]),
    ...(params.askUser === true ? [{ name: "AskUserMiddleware", tools: [specTool(askUserTool)] }] : []),
    ...(web ? [webMiddleware(web, { only: webTools, keepsTexts: filesystem?.evictTokens !== null })] : []),
    ...(toolsOnDemand ? toolsOnDemandMiddleware(toolsOnDemand, given()) : []),
    ...(params.programs === true ? [{ name: "ProgramsMiddleware", tools: [specTool(runProgramTool)] }] : []),
  ];
}

/** Access to the web in its long form; undefined if there is none. */
export const webOptions = (given: DeepAgentParams["web"]): WebOptions | undefined =>
  typeof given === "object" && given.mode !== "off" ? given : undefined;

function skills(
  { backend = StateBackend, log = silentLogger, hints }: DeepAgentParams,
  sources: SubAgent["skills"] = [],
  room: number | undefined,
): Middleware[] {
  checkSkillSources(sources);
  return sources.length > 0 ? [skillsMiddleware(backend, sources, log, room, hints?.workspace)] : [];
}

type Described = ReadonlyArray<{ name: string; description: string }>;

function filesAndDelegation(params: DeepAgentParams, subagents: Described, room: number | undefined) {
  const { backend = StateBackend, log = silentLogger } = params;
  return [
    filesystemMiddleware(backend, params.filesystem, { historyFolder: historyFolder(params), log }),
    ...(subagents.length > 0 ? [subagentMiddleware(subagents, params.delegation, room)] : []),
  ];
}

/** The layers that shape the conversation on its way to the model. */
function context(params: DeepAgentParams): Middleware[] {
  const { backend = StateBackend, log = silentLogger, summarization = {}, fallbackModels = [] } = params;
  return [
    ...(fallbackModels.length > 0 ? [modelFallbackMiddleware(fallbackModels, log)] : []),
    ...(summarization === false ? [] : [summarizationMiddleware({ ...summarization, backend, log })]),
    ...(params.promptCaching === false ? [] : [promptCachingMiddleware()]),
    patchToolCallsMiddleware(),
  ];
}

/** Default layers, the caller's after them or in the place of one with the same name, the gate last. */
function arrange(
  defaults: readonly Middleware[],
  own: DeepAgentParams["middleware"],
  params: DeepAgentParams,
): Middleware[] {
  const { log = silentLogger } = params;
  const given = (own ?? []).map((middleware) => adaptMiddleware(middleware, log));
  // LangChain and deepagents write some names with a small first letter.
  const keyOf = ({ name }: Middleware): string => name.toLowerCase();
  const replaced = defaults.map((layer) => given.find((one) => keyOf(one) === keyOf(layer)) ?? layer);
  const added = given.filter((layer) => !replaced.includes(layer));
  const gates = gatesAnything(params.interruptOn) ? [humanInTheLoopMiddleware(params.interruptOn, log)] : [];
  const watching = params.debug ? [debugMiddleware(params.log ?? createLogger("debug"))] : [];
  // It has to see the tools that other layers add.
  const isLast = ({ name }: Middleware): number => Number(name === "ToolsOnDemandMiddleware");
  const inner = [...replaced, ...added].toSorted((one, other) => isLast(one) - isLast(other));
  const layers = [...watching, ...inner, ...gates];
  const twice = firstRepeated(layers.map(({ name }) => name));
  if (twice === undefined) return layers;
  const hint = gates.some(({ name }) => name === twice)
    ? " `interruptOn` is one of them: leave it out, or set it to `false` for a subagent, or leave yours out."
    : "";
  throw new ConfigurationError("MIDDLEWARE_NAME_COLLISION", fill(texts.sameMiddleware, twice, hint));
}
