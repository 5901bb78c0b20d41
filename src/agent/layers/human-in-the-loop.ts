import { ALL_DECISIONS } from "../calls/permissions.ts";
import { MAX_DESCRIPTION } from "../calls/check.ts";
import type { MaybePromise } from "../../backends/backend.ts";
import { ConfigurationError } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import { cutMiddle } from "../../core/text.ts";
import { isRecord, memberOf, defined } from "../../core/unknown.ts";
import { type ArgumentsCheck, argumentsCheck } from "../calls/arguments.ts";
import type { AgentRuntime, Middleware } from "../contracts/middleware.ts";
import type { AgentState } from "../contracts/state.ts";
import type { DecisionType } from "../../tools/request.ts";
import { toolError } from "../../tools/tool.ts";
import table from "./gate-options.json" with { type: "json" };

const GATE_OPTIONS: OptionTable<InterruptOnConfig & InterruptOnAlias> = table;

export interface ToolCallView {
  type: "tool_call";
  id: string;
  name: string;
  args: Record<string, unknown>;
}

/** A tool call as predicates see it: by itself, and as the request that LangChain's predicates take. */
export interface GatedCallView extends ToolCallView {
  toolCall: ToolCallView;
  tool: undefined;
  state: GateState;
  runtime: AgentRuntime;
}

/** The agent's state, typed so that LangChain's predicates and descriptions take it. */
export type GateState = AgentState & { structuredResponse?: Record<string, unknown> };

/** When and how a person is asked about the calls of one tool. */
export interface InterruptOnConfig {
  /** Default: all three. */
  allowedDecisions?: DecisionType[];
  /** Text for the person, up to 20,000 characters. Default, also if it fails: the tool's own preview. */
  description?:
    | string
    | ((call: ToolCallView, state: GateState, runtime: AgentRuntime) => MaybePromise<string>);
  /** JSON schema of the arguments, for edit forms; an edit has to fit it as well as the tool's own. */
  argsSchema?: Record<string, unknown>;
  /**
   * `false`: run without asking. A predicate that throws, or returns anything else, counts as asking, and a
   * call that somebody was asked about waits for the answer whatever the predicate returns later.
   */
  when?: (call: GatedCallView, state: GateState, runtime: AgentRuntime) => MaybePromise<boolean>;
}

/** Older spellings of the same. */
export interface InterruptOnAlias {
  type?: "tool";
  action_description?: string;
  requires_approval?: (args: Record<string, unknown>) => MaybePromise<boolean>;
}

/**
 * Gates by tool name: `true` asks with all decisions, `false` never asks. `delete` has the gate of `write_file`
 * where it is not named.
 */
export type InterruptOn = Record<string, boolean | InterruptOnConfig | InterruptOnAlias>;

/** Asks a person before gated calls run, each by itself. @throws ConfigurationError `INVALID_GATE`. */
export function humanInTheLoopMiddleware(interruptOn: InterruptOn, log: Logger): Middleware {
  const gates = new Map<string, InterruptOnConfig>();
  for (const [tool, value] of Object.entries(interruptOn)) {
    if (value !== false) gates.set(tool, value === true ? {} : normalizeGate(tool, value));
  }
  // A gate for writing also covers deleting, because a list of gates may be older than the tool `delete`.
  const { argsSchema: _ofWriting, ...writing } = gates.get("write_file") ?? {};
  if (gates.has("write_file") && !Object.hasOwn(interruptOn, "delete")) gates.set("delete", writing);
  return {
    name: "HumanInTheLoopMiddleware",
    gate: async ({ toolCall, state, runtime }) => {
      const config = gates.get(toolCall.name);
      if (!config) return undefined;
      const { id = "", name, args } = toolCall;
      const { allowedDecisions = [...ALL_DECISIONS], argsSchema, when, description: given } = config;
      const known = state as GateState; // a structured response is an object by its schema
      const call: ToolCallView = { type: "tool_call", id, name, args };
      const view = { ...call, toolCall: call, tool: undefined, state: known, runtime };
      const attempt = async (what: string, run: () => unknown): Promise<unknown> => {
        try {
          return await run();
        } catch (error) {
          log.warn(`gate_${what}_failed`, { tool: name, error });
          return undefined;
        }
      };
      const isAsked = (await attempt("predicate", () => when?.(view, known, runtime))) !== false;
      const text = await attempt("description", () =>
        typeof given === "function" ? given(call, known, runtime) : given,
      );
      const description = typeof text === "string" && text ? cutMiddle(text, MAX_DESCRIPTION) : undefined;
      const isWaived = isAsked ? undefined : (true as const);
      return { allowedDecisions, ...defined({ description, argsSchema, isWaived }) };
    },
  };
}

/** Refuses the calls that `interruptOn` asks about, for an agent that cannot ask. */
export function refusingMiddleware(interruptOn: InterruptOn, log: Logger): Middleware {
  const { gate } = humanInTheLoopMiddleware(interruptOn, log);
  const refusal = "This call needs a person's approval, and nobody is asked here. Continue without it.";
  return {
    name: "RefusingMiddleware",
    wrapCall: async (request, next) => {
      const found = await gate?.(request);
      return found === undefined || found.isWaived ? next(request) : toolError(refusal);
    },
  };
}

/** Checks for edited arguments, by tool, for gates with an arguments schema. */
export function editForms(interruptOn: InterruptOn): ReadonlyMap<string, ArgumentsCheck> {
  const schemas = Object.entries(interruptOn).map(
    ([tool, gate]) => [tool, memberOf(gate, "argsSchema")] as const,
  );
  return new Map(schemas.flatMap(([tool, schema]) => (schema ? [[tool, argumentsCheck(schema)]] : [])));
}

function normalizeGate(tool: string, value: InterruptOnConfig | InterruptOnAlias): InterruptOnConfig {
  let problem = `has ${JSON.stringify(value)} for '${tool}'; true asks, false does not, and an object sets the details.`;
  if (isRecord(value)) {
    const config = fromAlias(readOptions(`interruptOn.${tool}`, value, GATE_OPTIONS));
    const { allowedDecisions: allowed = ALL_DECISIONS } = config;
    if (allowed.length > 0 && allowed.every((decision) => ALL_DECISIONS.includes(decision))) return config;
    problem = `lets a person answer about '${tool}' with ${JSON.stringify(allowed)}; name one or more of ${ALL_DECISIONS.join(", ")}, or leave allowedDecisions out.`;
  }
  throw new ConfigurationError("INVALID_GATE", `interruptOn ${problem}`);
}

function fromAlias(value: InterruptOnConfig | InterruptOnAlias): InterruptOnConfig {
  if (!("action_description" in value) && !("requires_approval" in value)) return value as InterruptOnConfig; // the alias has no other fields
  const { action_description: description, requires_approval: requires } = value;
  const when = requires && ((call: ToolCallView) => requires(call.args));
  return defined({ description: description || undefined, when });
}
