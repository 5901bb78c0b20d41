import type { Logger } from "../../core/logger.ts";
import type { MaybePromise } from "../../backends/backend.ts";
import type { Decision, DecisionType, HitlRequest, HitlResponse } from "../events.ts";
import type { AgentState } from "../state.ts";
import type { AgentRuntime, Gate, Middleware } from "./middleware.ts";

/** Name of the layer that `interruptOn` stands for. */
export const GATE = "HumanInTheLoopMiddleware";

export const ALL_DECISIONS: readonly DecisionType[] = ["approve", "edit", "reject"];

/** A tool call as predicates and descriptions see it. */
export interface ToolCallView {
  id: string;
  name: string;
  args: Record<string, unknown>;
}

/** When and how a person is asked about the calls of one tool. */
export interface InterruptOnConfig {
  /** Default: all three. */
  allowedDecisions?: DecisionType[];
  /** What to tell the person. Default: the tool's own preview. */
  description?:
    | string
    | ((call: ToolCallView, state: AgentState, runtime: AgentRuntime) => MaybePromise<string>);
  /** JSON schema of the arguments, for edit forms. */
  argsSchema?: Record<string, unknown>;
  /** `false`: run without asking. A predicate that throws counts as asking. */
  when?: (call: ToolCallView, state: AgentState, runtime: AgentRuntime) => MaybePromise<boolean>;
}

/** Older spellings of the same. */
export interface InterruptOnAlias {
  type?: "tool";
  action_description?: string;
  requires_approval?: (args: Record<string, unknown>) => MaybePromise<boolean>;
}

/** Gates by tool name: `true` asks with all decisions, `false` never asks. */
export type InterruptOn = Record<string, boolean | InterruptOnConfig | InterruptOnAlias>;

/** Asks a person before gated calls run. Each gated call is a request of its own. */
export function humanInTheLoopMiddleware(interruptOn: InterruptOn, log: Logger): Middleware {
  const gates = new Map<string, InterruptOnConfig>();
  for (const [tool, value] of Object.entries(interruptOn)) {
    if (value !== false) gates.set(tool, value === true ? {} : normalizeGate(value));
  }
  return {
    name: GATE,
    gate: async ({ toolCall, state, runtime }) => {
      const config = gates.get(toolCall.name);
      if (!config) return undefined;
      const call = { id: toolCall.id ?? "", name: toolCall.name, args: toolCall.args };
      if (!(await asks(config, call, state, runtime, log))) return undefined;
      return toGate(config, call, state, runtime);
    },
  };
}

/** What is wrong with an answer to a request, in words for whoever gave it; `undefined` when nothing is. */
export function responseProblem(request: HitlRequest, response: unknown): string | undefined {
  const decisions = decisionsOf(response);
  if (!decisions) return "An answer must be an object with a list of decisions.";
  if (decisions.length !== request.actionRequests.length) {
    return `${request.actionRequests.length} decision(s) expected, got ${decisions.length}.`;
  }
  for (const [index, decision] of decisions.entries()) {
    const allowed = request.reviewConfigs[index]?.allowedDecisions ?? ALL_DECISIONS;
    if (!allowed.includes(decision.type) && !isExpiry(decision)) {
      return `Decision '${decision.type}' is not allowed here; allowed: ${allowed.join(", ")}.`;
    }
    if (decision.type === "edit" && typeof decision.editedAction?.args !== "object") {
      return "An edit needs editedAction with the name and the arguments to run instead.";
    }
  }
  return undefined;
}

/** A deadline denies whatever a person may do. */
const isExpiry = (decision: Decision): boolean => decision.type === "reject" && decision.expired === true;

function decisionsOf(response: unknown): Decision[] | undefined {
  if (typeof response !== "object" || response === null) return undefined;
  const { decisions } = response as Partial<HitlResponse>; // checked field by field below
  if (!Array.isArray(decisions)) return undefined;
  return decisions.every((decision) => typeof decision === "object" && decision !== null)
    ? decisions
    : undefined;
}

function normalizeGate(value: InterruptOnConfig | InterruptOnAlias): InterruptOnConfig {
  if (!("action_description" in value) && !("requires_approval" in value)) {
    return value as InterruptOnConfig; // the alias has no other fields
  }
  const { action_description: description, requires_approval: requires } = value;
  return {
    ...(description ? { description } : {}),
    ...(requires ? { when: (call: ToolCallView) => requires(call.args) } : {}),
  };
}

async function asks(
  config: InterruptOnConfig,
  call: ToolCallView,
  state: AgentState,
  runtime: AgentRuntime,
  log: Logger,
): Promise<boolean> {
  if (!config.when) return true;
  try {
    return await config.when(call, state, runtime);
  } catch (error) {
    log.warn("gate_predicate_failed", { tool: call.name, error });
    return true;
  }
}

async function toGate(
  config: InterruptOnConfig,
  call: ToolCallView,
  state: AgentState,
  runtime: AgentRuntime,
): Promise<Gate> {
  const description =
    typeof config.description === "function"
      ? await config.description(call, state, runtime)
      : config.description;
  return {
    allowedDecisions: config.allowedDecisions ?? [...ALL_DECISIONS],
    ...(description ? { description } : {}),
    ...(config.argsSchema ? { argsSchema: config.argsSchema } : {}),
  };
}
