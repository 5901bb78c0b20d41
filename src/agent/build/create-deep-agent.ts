/** Builds agents: parameters become tools, layers, channels, subagents and a graph. */
import { randomUUID } from "node:crypto";
import { SystemMessage } from "@langchain/core/messages";
import type { BaseChannel, BaseCheckpointSaver } from "@langchain/langgraph";
import type { z } from "zod";
import { StateBackend } from "../../backends/stores/state.ts";
import { defined } from "../../core/unknown.ts";
import { ConfigurationError } from "../../core/errors.ts";
import { silentLogger } from "../../core/logger.ts";
import { isProviderTool, toAgentTool } from "../langgraph/foreign-tool.ts";
import { Permissions } from "../calls/permissions.ts";
import type { AgentMiddleware, AgentTool, Middleware } from "../contracts/middleware.ts";
import { RESULTS_FOLDER } from "../messages/kept-texts.ts";
import { type ResponseFormat, strategiesFor } from "../models/structured-answer.ts";
import { DeepAgentGraph } from "../langgraph/deep-agent-graph.ts";
import { buildGraph } from "../langgraph/loop.ts";
import { MemorySaver } from "../langgraph/internals.ts";
import {
  builtInChannels,
  channelsOf,
  layerChannels,
  foldingChannels,
  visibleChannels,
} from "../langgraph/channels.ts";
import { AGENT_NAME, AGENT_TYPE } from "../langgraph/step-of-task.ts";
import { editForms, refusingMiddleware } from "../layers/human-in-the-loop.ts";
import { endCheck } from "../messages/end-check.ts";
import { joinSystem } from "../messages/system-prompt.ts";
import { DEFAULT_PARALLEL } from "../budget/limits.ts";
import { ReplyCache } from "../models/reply-cache.ts";
import { LazyModel } from "../models/resolve.ts";
import { SubagentRunner } from "../langgraph/nested-children.ts";
import type { AgentDefinition, BuiltSubagent, Goal } from "../langgraph/definition.ts";
import { JUDGE } from "../langgraph/goal-nodes.ts";
import { findingsFormat } from "../models/verdicts.ts";
import {
  forkStack,
  gatesAnything,
  historyFolder,
  mainStack,
  subagentStack,
  webOptions,
} from "./middleware-order.ts";
import type {
  CompiledSubAgent,
  DeepAgentParams,
  GoalOptions,
  SubAgent,
  SystemPrompt,
  SystemPromptParts,
  TypedDeepAgent,
} from "./params.ts";
import { BASE_PROMPT, GENERAL_PURPOSE, PROMPTS } from "../messages/prompts.ts";
import {
  checkAnswerTools,
  checkFileTools,
  checkLimits,
  firstRepeated,
  readParams,
  warnOfGates,
  warnOfMemorySaver,
} from "./read-params.ts";
import texts from "./texts.json" with { type: "json" };
import { fill } from "../../core/text.ts";

/**
 * Builds a deep agent and returns its compiled LangGraph graph.
 *
 * Construction makes no network call, loads no provider and touches no file.
 *
 * @throws ConfigurationError for parameters that contradict each other.
 */
export function createDeepAgent<
  Format extends ResponseFormat | undefined = undefined,
  Schema = unknown,
  Context extends z.ZodObject = z.ZodObject,
  const Name extends string = never,
  Layers extends readonly AgentMiddleware[] = readonly AgentMiddleware[],
>(
  params: DeepAgentParams<Format, Schema, Context, Name, Layers> = {},
): TypedDeepAgent<Format, Schema, Context, Name, Layers> {
  // Its channels are made of these parameters at run time, which the graph's own type cannot state.
  return assembleDeepAgent(params) as unknown as TypedDeepAgent<Format, Schema, Context, Name, Layers>;
}

export function assembleDeepAgent(given: DeepAgentParams): DeepAgentGraph {
  const params = readParams(given);
  const runner = subagentRunner(subagentSpecs(params), params, params.limits?.subagentDepth ?? 1);
  const model = new LazyModel(params.model);
  const permissions = Permissions.of([params.permissions]);
  const own = withPermissions(params, permissions);
  const stack = mainStack(withMedia(own, model), runner?.subagents ?? []);
  const agent = assemble(own, stack, runner, {
    nested: false,
    model,
    prompt: systemMessage(params.systemPrompt, BASE_PROMPT),
    permissions,
    ...defined({ goal: params.goal && goalOf(params.goal, params) }),
  });
  warnOfGates(
    params,
    agent.facts.tools.keys(),
    (name) => runner?.find(name)?.graph?.facts.tools.keys() ?? [],
  );
  return agent;
}

/** Subagents that may delegate `depth - 1` levels further; those of one level are built once. */
function subagentRunner(
  specs: ReadonlyArray<SubAgent | CompiledSubAgent>,
  params: DeepAgentParams,
  depth: number,
): SubagentRunner | undefined {
  if (specs.length === 0 || depth < 1) return undefined;
  const below = subagentRunner(specs, params, depth - 1);
  const built = specs.map((spec) => buildSubagent(spec, params, below, specs));
  return new SubagentRunner(built, params.limits?.parallelSubagents ?? DEFAULT_PARALLEL);
}

interface AgentRole {
  nested: boolean;
  model: LazyModel;
  prompt: SystemMessage;
  permissions: Permissions | undefined;
  goal?: Goal;
}

/** With rules for paths, the file tools work on the visible files only. */
const withPermissions = (params: DeepAgentParams, permissions: Permissions | undefined): DeepAgentParams =>
  permissions ? { ...params, backend: permissions.over(params.backend ?? StateBackend) } : params;

function assemble(
  params: DeepAgentParams,
  middleware: readonly Middleware[],
  subagents: SubagentRunner | undefined,
  role: AgentRole,
): DeepAgentGraph {
  const { hints, callRules, filesystem, limits = {} } = params;
  checkFileTools(filesystem);
  checkLimits(limits);
  const tools = collectTools(middleware, params);
  const channels: Record<string, BaseChannel> = Object.assign(
    {},
    ...middleware.map(layerChannels),
    ...(params.stateSchema ? [channelsOf(params.stateSchema, "the agent")] : []),
    builtInChannels(role.nested, role.goal !== undefined),
  );
  const definition: AgentDefinition = {
    name: params.name ?? "deepagent",
    author: params.name,
    model: () => role.model.get(),
    systemMessage: role.prompt,
    tools,
    providerTools: (params.tools ?? []).filter((tool) => isProviderTool(tool)),
    middleware,
    backend: params.backend ?? StateBackend,
    keptFolders: [RESULTS_FOLDER, historyFolder(params)],
    subagents,
    goal: role.goal,
    // A judge looks at answers by itself.
    endCheck:
      hints?.ending === true && !role.nested && !role.goal
        ? (state) => endCheck(state, { tools, below: hints.workspace }, randomUUID())
        : undefined,
    structured: params.responseFormat && strategiesFor(params.responseFormat),
    cache: params.cache && new ReplyCache(params.cache, params.log ?? silentLogger),
    permissions: role.permissions,
    editForms: editForms(params.interruptOn ?? {}),
    callRules,
    limits,
    tellsFailures: hints?.failures !== false,
    recursionLimit: params.recursionLimit ?? 1000,
    log: params.log ?? silentLogger,
    channels: Object.keys(channels),
    folding: foldingChannels(channels),
  };
  const checkpointer = role.nested ? undefined : checkpointerFor(params);
  const { contextSchema, name, streamTransformers = [] } = params;
  const graph = buildGraph(definition, {
    channels,
    ...defined({ checkpointer, store: params.store }),
    // The agent that delegates reads the private channels of a subagent; its streams do not show them (deep-agent-graph.ts).
    ...(!role.nested && { visible: visibleChannels(definition.channels), ...defined({ contextSchema }) }),
  });
  const outermost = {
    ...(name !== undefined && { metadata: { [AGENT_NAME]: name } }),
    configurable: { [AGENT_TYPE]: "root" },
    streamTransformers: [...streamTransformers],
  };
  const { recursionLimit } = definition;
  const configured = graph.withConfig({ recursionLimit, ...(!role.nested && outermost) });
  return DeepAgentGraph.from(configured, { ...definition, isGated: isGated(params) });
}

/** The file tools know from the model's profile which media it takes. */
const withMedia = ({ filesystem, ...params }: DeepAgentParams, model: LazyModel): DeepAgentParams => ({
  ...params,
  filesystem: { acceptsMedia: (mimeType) => model.acceptsMedia(mimeType), ...filesystem },
});

function checkpointerFor(params: DeepAgentParams): BaseCheckpointSaver | boolean | undefined {
  const { checkpointer } = params;
  if (!isGated(params) && params.askUser !== true) return checkpointer;
  if (checkpointer === false) throw new ConfigurationError("CHECKPOINTER_REQUIRED", texts.checkpointerNeeded);
  if (checkpointer !== undefined) return checkpointer;
  warnOfMemorySaver(params.log);
  return new MemorySaver();
}

function isGated({ interruptOn, permissions, subagents = [], web: access }: DeepAgentParams): boolean {
  const web = webOptions(access);
  const asksForPaths = [{ permissions }, ...subagents].some(
    (owner) => "permissions" in owner && owner.permissions?.some(({ mode }) => mode === "interrupt"),
  );
  return gatesAnything(interruptOn) || asksForPaths || (web !== undefined && (web.mode ?? "ask") === "ask");
}

function collectTools(middleware: readonly Middleware[], params: DeepAgentParams): Map<string, AgentTool> {
  const tools = new Map<string, AgentTool>();
  const given = (params.tools ?? []).flatMap((tool) => (isProviderTool(tool) ? [] : toAgentTool(tool)));
  for (const tool of [...middleware.flatMap((layer) => layer.tools ?? []), ...given]) {
    const { name } = tool;
    const hint = name === "write_todos" ? " with `todos: false`" : "";
    if (tools.has(name))
      throw new ConfigurationError("TOOL_NAME_COLLISION", fill(texts.sameTool, name, hint));
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name))
      throw new ConfigurationError("INVALID_TOOL_NAME", fill(texts.invalidToolName, name));
    tools.set(name, tool);
  }
  checkAnswerTools(params.responseFormat, tools);
  for (const { followTools } of middleware)
    followTools?.((tool) => {
      if (tools.has(tool.name)) return false;
      tools.set(tool.name, tool);
      return true;
    });
  return tools;
}

function subagentSpecs(params: DeepAgentParams): Array<SubAgent | CompiledSubAgent> {
  const specs = [...(params.subagents ?? [])];
  const names = specs.map(({ name }) => name);
  const twice = firstRepeated(names);
  if (twice !== undefined)
    throw new ConfigurationError("SUBAGENT_NAME_COLLISION", fill(texts.sameSubagent, twice));
  const { generalPurpose = true } = params;
  if (generalPurpose === false || names.includes(GENERAL_PURPOSE)) return specs;
  const own = generalPurpose === true ? {} : generalPurpose;
  // Its parameters are the agent's, which are checked with the agent.
  return [{ name: GENERAL_PURPOSE, ...PROMPTS.generalPurpose, ...defined(own), buildOnUse: true }, ...specs];
}

function buildSubagent(
  spec: SubAgent | CompiledSubAgent,
  params: DeepAgentParams,
  runner: SubagentRunner | undefined,
  siblings: ReadonlyArray<{ name: string; description: string }>,
): BuiltSubagent {
  const { name, description } = spec;
  const isFork = spec.mode === "fork";
  if ("runnable" in spec) {
    const { runnable, isRepeatable = false } = spec;
    const keepsPlace = runnable instanceof DeepAgentGraph && runnable.checkpointer !== false;
    return { name, description, runnable, isFork, accountsForCalls: keepsPlace || isRepeatable };
  }
  const below = spec.delegates === false ? undefined : runner;
  const build = () => buildGraphOf(spec, params, below, siblings);
  let built = spec.buildOnUse === true ? undefined : build();
  const graphOf = (): DeepAgentGraph => (built ??= build());
  return {
    name,
    description,
    isFork,
    accountsForCalls: true,
    get runnable() {
      return graphOf();
    },
    get graph() {
      return graphOf();
    },
  };
}

function buildGraphOf(
  spec: SubAgent,
  params: DeepAgentParams,
  below: SubagentRunner | undefined,
  siblings: ReadonlyArray<{ name: string; description: string }>,
): DeepAgentGraph {
  const isFork = spec.mode === "fork";
  // Parameters that its description leaves out come from the agent.
  const { responseFormat: _ofTheMain, ...inherited } = params;
  const own: DeepAgentParams = {
    ...inherited,
    ...defined({ responseFormat: spec.responseFormat, recursionLimit: spec.recursionLimit }),
    name: spec.name,
    model: spec.model ?? params.model,
    tools: spec.tools ?? params.tools,
    interruptOn: spec.interruptOn === false ? {} : (spec.interruptOn ?? params.interruptOn),
    ...(spec.limits ? { limits: { ...params.limits, ...spec.limits } } : {}),
    ...(spec.filesystem ? { filesystem: { ...params.filesystem, ...spec.filesystem } } : {}),
  };
  const model = new LazyModel(own.model);
  const permissions = Permissions.of([params.permissions, spec.permissions]);
  const visible = withMedia(withPermissions(own, permissions), model);
  const stack = isFork
    ? forkStack(spec, visible, siblings)
    : subagentStack(spec, visible, below?.subagents ?? []);
  const prompt = isFork
    ? joinSystem(systemMessage(params.systemPrompt, BASE_PROMPT), spec.systemPrompt ?? "")
    : systemMessage(spec.systemPrompt, PROMPTS.shared);
  // A fork is offered the same tools, so that its requests begin with the bytes of the agent's.
  const runner = isFork
    ? new SubagentRunner([], 1, "a forked subagent cannot delegate; complete the task directly.")
    : below;
  return assemble(visible, stack, runner, { nested: true, model, prompt, permissions });
}

/** The goal with its judge: a subagent with the agent's files and nothing else. */
function goalOf({ criteria, rounds = 5, model }: GoalOptions, params: DeepAgentParams): Goal {
  const { maxIterations = Infinity, tokens = Infinity } = params.limits ?? {};
  const spec: SubAgent = {
    name: JUDGE,
    description: "Judges the goal.",
    systemPrompt: PROMPTS.judge,
    tools: [],
    interruptOn: false,
    middleware: [refusingMiddleware(params.interruptOn ?? {}, params.log ?? silentLogger)],
    ...defined({ model }),
    responseFormat: findingsFormat(criteria),
    // Bounds of one judged round, which the agent's limits contain too.
    limits: { maxIterations: Math.min(maxIterations, 20), tokens: Math.min(tokens, 250_000) },
  };
  const { fallbackModels, backend, store, cache, filesystem, summarization, promptCaching, log, debug } =
    params;
  // Nobody is asked for the sake of a judge: files that need a person's approval do not exist for it.
  const permissions = params.permissions?.map((rule) =>
    rule.mode === "interrupt" ? { ...rule, mode: "deny" as const } : rule,
  );
  const { tools: _all, systemPrompt: _own, toolDescriptions: _too, ...sizes } = filesystem ?? {};
  const reading: DeepAgentParams = {
    // Each parameter is named here: one that adds other tools must not reach the judge.
    ...defined({ fallbackModels, backend, store, cache, summarization, promptCaching, log, debug }),
    ...defined({ permissions, limits: params.limits, recursionLimit: params.recursionLimit }),
    ...defined({ model: params.model, instructions: params.instructions }),
    filesystem: { ...sizes, tools: ["ls", "read_file", "glob", "grep"] },
    todos: false,
  };
  return {
    criteria,
    rounds,
    judge: buildGraphOf(spec, reading, undefined, []),
    asks: params.askUser === true,
  };
}

/** The caller's system prompt with `builtIn` behind it. @throws ConfigurationError `INVALID_SYSTEM_PROMPT`. */
function systemMessage(prompt: SystemPrompt | undefined, builtIn: string): SystemMessage {
  const parts: SystemPromptParts =
    typeof prompt === "object" && !SystemMessage.isInstance(prompt) ? prompt : { prefix: prompt ?? "" };
  const unknown = Object.keys(parts).find((name) => !PARTS.includes(name));
  const problem = fill(texts.unknownPromptPart, unknown, PARTS.join(", "));
  if (unknown !== undefined) throw new ConfigurationError("INVALID_SYSTEM_PROMPT", problem);
  const { prefix, base = builtIn, suffix } = parts;
  return [base, suffix].reduce<SystemMessage>(
    (message, part) => ((part ?? "") === "" ? message : joinSystem(message, messageOf(part))),
    messageOf(prefix ?? ""),
  );
}

const PARTS: readonly string[] = ["prefix", "base", "suffix"];

/** `prompt` may be anything that callers without types pass. */
function messageOf(prompt: unknown): SystemMessage {
  if (typeof prompt === "string") return new SystemMessage(prompt);
  if (SystemMessage.isInstance(prompt)) return prompt;
  throw new ConfigurationError("INVALID_SYSTEM_PROMPT", "`systemPrompt` is a text or a SystemMessage.");
}
