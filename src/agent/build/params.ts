import type { BaseMessage, BaseMessageLike, SystemMessage } from "@langchain/core/messages";
import type { InferInteropZodOutput, InteropZodObject, InteropZodType } from "@langchain/core/utils/types";
import type {
  BaseChannel,
  BaseCheckpointSaver,
  BaseStore,
  CompiledStateGraph,
  StreamTransformer,
} from "@langchain/langgraph";
import type { BaseCache } from "@langchain/langgraph-checkpoint";
import type { ProviderStrategy, TypedToolStrategy } from "langchain";
import type { z } from "zod";
import type { BackendSource, FileData, FilesUpdate } from "../../backends/backend.ts";
import type { Logger } from "../../core/logger.ts";
import type { WebToolName } from "../../tools/options.ts";
import type { Todo } from "../../tools/tool.ts";
import type { FilesystemPermission } from "../calls/permissions.ts";
import type { CallRules } from "../../rules/call.ts";
import type { AgentMiddleware, ProviderTool, ToolInput } from "../contracts/middleware.ts";
import type { GoalState } from "../contracts/goal.ts";
import type { ResponseFormat } from "../models/structured-answer.ts";
import type { AgentLimits } from "../contracts/limits.ts";
import type { FilesystemOptions } from "../layers/filesystem.ts";
import type { InstructionOptions } from "../layers/instruction-files.ts";
import type { InterruptOn } from "../layers/human-in-the-loop.ts";
import type { DelegationOptions } from "../layers/planning.ts";
import type { SummarizationOptions } from "../layers/summarization.ts";
import type { ToolsOnDemand } from "../layers/tools-on-demand.ts";
import type { WebOptions } from "../layers/web.ts";
import type { ModelSource } from "../models/resolve.ts";

/** The parameters of `createDeepAgent`, and the types that its result takes from them. */

/** Parts of a system prompt around the built-in one. */
export interface SystemPromptParts {
  prefix?: string | SystemMessage | null;
  /** Replaces the built-in prompt; `null`: none. */
  base?: string | SystemMessage | null;
  suffix?: string | SystemMessage | null;
}

export type SystemPrompt = string | SystemMessage | SystemPromptParts;

/** A subagent described by data. Fields that are left out come from the agent it belongs to. */
export interface SubAgent {
  name: string;
  /** The delegating model decides by it when to use the subagent. */
  description: string;
  /** All of its system prompt but the additions of its layers; a `SystemMessage` keeps its blocks. Default: nothing. */
  systemPrompt?: string | SystemMessage;
  /** Default: the agent's own tools. `[]`: the built-in tools only. */
  tools?: ReadonlyArray<ToolInput | ProviderTool>;
  /** Default: the agent's model. */
  model?: ModelSource;
  middleware?: readonly AgentMiddleware[];
  /** Folders of skills of its own; the agent's are not inherited. */
  skills?: readonly string[];
  /** Default: the agent's gates. `{}` or `false`: none. */
  interruptOn?: InterruptOn | false;
  /** The form of its report, which reaches the delegating agent as JSON. */
  responseFormat?: ResponseFormat;
  /**
   * `isolated` (default): it sees only its task. `fork`: it continues from the agent's conversation, with the agent's
   * prompt, memory, skills and middleware besides its own, and cannot delegate. deepagents calls `isolated` `handoff`.
   */
  mode?: "isolated" | "handoff" | "fork";
  /** Added to the agent's own rules: a call must pass both. */
  permissions?: readonly FilesystemPermission[];
  /** Differences from the agent's file tools. */
  filesystem?: FilesystemOptions;
  /** Its tools for the web, of those of the agent. Default: all of them. */
  webTools?: readonly WebToolName[];
  /** Limits of one assignment; those left out are the agent's. The agent's totals count its use too. */
  limits?: Omit<AgentLimits, "parallelSubagents" | "subagentDepth" | "listedCharacters">;
  /** Graph steps of one assignment. Default: the agent's. */
  recursionLimit?: number;
  /** False: it cannot start subagents, even where `subagentDepth` allows it. Default true. */
  delegates?: boolean;
  /** Builds it when it is first started, which finds mistakes in its parameters only then. Default false. */
  buildOnUse?: boolean;
}

/** A runnable with any type of input. It gets the messages and the other shared parts of the state. */
export interface CompiledRunnable {
  invoke(input: never, config?: never): Promise<unknown>;
}

/** A subagent that exists already, used as it is; it inherits nothing. */
export interface CompiledSubAgent {
  name: string;
  description: string;
  /** A graph of LangGraph, an agent of LangChain, or anything else with `invoke` that takes `messages`. */
  runnable: CompiledRunnable;
  /** `fork`: it receives the agent's conversation before its task. Default `isolated`, or `handoff`. */
  mode?: "isolated" | "handoff" | "fork";
  /**
   * Its work may be done twice: after a crash, a task starts again or continues from the checkpoint of a graph.
   * Default: false; the report to the delegating model is then that the outcome is unknown. A deep agent continues by
   * itself and does not need this permission.
   */
  isRepeatable?: boolean;
}

/** Facts and reminders for an agent, which cost tokens only at their moment. */
export interface Hints {
  /** Folder of the tree that the agent works in, such as `/workspace`. Default: none. */
  workspace?: string;
  /**
   * True: names, languages, commands and the branch of `workspace` end the first message of a thread, in about 300
   * tokens at most. Default true.
   */
  listing?: boolean;
  /**
   * True: an agent that ends while todos are open, or with changes below `workspace` that nothing has checked since,
   * gets a message about it, once a run, and answers again. Subagents, and agents with a `goal`, do not. Default false.
   */
  ending?: boolean;
  /** False: calls that fail again and again with other arguments, but alike, are not pointed out. Default true. */
  failures?: boolean;
}

/**
 * A goal of each run. After an answer a judge, which sees the criteria, the answer, the todos and the files and can
 * only read, returns a verdict for each criterion. Criteria that are not met go back to the agent. A person decides
 * about `impossible` and `uncertain` criteria, and after three rounds without progress, if `askUser` is true; otherwise
 * the run ends with its last answer. The result has the verdicts in `goalState`.
 */
export interface GoalOptions {
  /** From 1 to 20 different texts of up to 1000 characters. */
  criteria: readonly string[];
  /** Judged answers of one run, from 1 to 20. Default 5. */
  rounds?: number;
  /** Model of the judge. Default: the agent's. */
  model?: ModelSource;
}

/** Parameters of `createDeepAgent`. The generic ones type its result. */
export interface DeepAgentParams<
  Format extends ResponseFormat | undefined = ResponseFormat | undefined,
  Schema = unknown,
  Context extends z.ZodObject = z.ZodObject,
  Name extends string = string,
  Layers extends readonly AgentMiddleware[] = readonly AgentMiddleware[],
> {
  /** `provider:model`, an instance, or how to get one. Default: the first of `DEFAULT_MODELS`. */
  model?: ModelSource;
  /** Called in this order when a model cannot answer; subagents fall back on them too. */
  fallbackModels?: readonly ModelSource[];
  /**
   * Folders with the instructions of the project, such as `{ folder: "/workspace" }`: AGENTS.md, otherwise
   * CLAUDE.md and others. The agent, its subagents and the judge of a goal follow them. Default: none are read.
   */
  instructions?: InstructionOptions;
  /** `AGENTS.md` files shown in the system prompt, as paths of the backend. */
  memory?: readonly string[];
  /** Folders of skills, as paths of the backend; of two skills with one name the later counts. */
  skills?: readonly string[];
  /** Marks for Anthropic's prompt cache; other models ignore it. Default true. */
  promptCaching?: boolean;
  /** Keeps long conversations within the model's window. Default on; `false`: never. */
  summarization?: false | SummarizationOptions;
  /** Added to the built-in tools, and the default of every subagent. */
  tools?: ReadonlyArray<ToolInput | ProviderTool>;
  /** Comes first in the system prompt; the built-in prompt follows. An object sets each part. */
  systemPrompt?: SystemPrompt;
  /** Placed after the default stack. The name of a default one replaces it in its place. */
  middleware?: readonly [...Layers];
  subagents?: ReadonlyArray<(SubAgent | CompiledSubAgent) & { name: Name }>;
  /** Backend for files. Default: the thread's own state. */
  backend?: BackendSource;
  /** Storage across threads, for `StoreBackend`. */
  store?: BaseStore;
  /** Keeps threads. Needed for approvals; without one an in-memory saver is used then. */
  checkpointer?: BaseCheckpointSaver | boolean;
  /**
   * LangGraph cache of the model's replies: a request that was made before, in whatever thread, is answered
   * from it. Tool calls never are.
   */
  cache?: BaseCache;
  /** Tools that need a person's approval. */
  interruptOn?: InterruptOn;
  /** Rules that refuse calls, or let people allow them for later. Subagents have them too. Default: none. */
  callRules?: CallRules | undefined;
  /** State channels of your own: a LangGraph state schema, zod object or annotation. */
  stateSchema?: Schema;
  /** A value that each run gets besides its input; tools, middleware and backend factories read it. */
  contextSchema?: Context;
  /** The form of the final answer, kept in `structuredResponse`. */
  responseFormat?: Format;
  /** Criteria that a judge checks after each answer. Default: the first answer ends the run. */
  goal?: GoalOptions;
  /** Graph name, also in traces and drawings. */
  name?: string;
  /** Planning with `write_todos`. Default true. */
  todos?: boolean;
  /**
   * Lets the agent and its subagents ask a person with `ask_user`. Default false. The graph stops with an interrupt
   * whose value has the question; resume it with the values of its fields, or with `{ type: "decline" }`.
   */
  askUser?: boolean;
  /**
   * Lets the agent and its subagents read pages of the web with `web_fetch`, and search it with `web_search` if a search
   * provider is configured. Default `off`. A text is the `mode` of `WebOptions`: with `ask`, a person approves each page.
   */
  web?: NonNullable<WebOptions["mode"]> | WebOptions;
  /**
   * Tools that the agent and its subagents get when they look for them with `find_tools`, if all of them together take
   * more than `tokens` in each request. The prompt has their names. Default: every tool is in every request.
   */
  toolsOnDemand?: ToolsOnDemand;
  /**
   * Lets the agent and its subagents run JavaScript programs that call their tools, with `run_program`. Each call of a
   * program is checked, asked about, limited and recorded like any other. Default false.
   */
  programs?: boolean;
  /** Facts and reminders that the agent gets at set moments. Default: of `failures` only. */
  hints?: Hints;
  filesystem?: FilesystemOptions;
  /** Rules for the paths that file tools may use. Commands cannot follow them and are not offered then. */
  permissions?: readonly FilesystemPermission[];
  /** Texts about delegating, in the place of the built-in ones. */
  delegation?: DelegationOptions;
  /** The subagent that is always there. Default true. */
  generalPurpose?: boolean | Partial<Pick<SubAgent, "description" | "systemPrompt" | "middleware">>;
  limits?: AgentLimits;
  /** Graph steps per run. Default 1000. */
  recursionLimit?: number;
  /** LangGraph's transformers of the streams that `streamEvents` version 3 returns. */
  streamTransformers?: ReadonlyArray<() => StreamTransformer>;
  /** One log line for each model call and each tool call, at level `debug`. Default false. */
  debug?: boolean;
  /** Default: warnings about these parameters as JSON lines on standard error; with `debug`, its lines too. */
  log?: Logger;
}

type ResponseOf<Format> =
  Format extends TypedToolStrategy<infer Answer>
    ? Answer
    : Format extends ProviderStrategy<infer Answer>
      ? Answer
      : Format extends InteropZodType<infer Answer>
        ? Answer
        : Format extends readonly (infer One)[]
          ? ResponseOf<One>
          : Record<string, unknown>;

/** The values of a state schema: LangGraph's, a zod object, or an annotation; `never` and `any` are none. */
type StateOf<Schema> = 0 extends 1 & Schema
  ? unknown
  : [Schema] extends [never]
    ? unknown
    : Schema extends { State: infer Value }
      ? Value
      : Schema extends InteropZodType
        ? InferInteropZodOutput<Schema>
        : unknown;

/** The channels that a state schema adds. Those whose names begin with `_` stay with the agent. */
type ChannelsOf<Schema> = OwnChannels<
  StateOf<Schema>,
  Schema extends { Update: infer Value } ? Value : StateOf<Schema>
>;

type ChannelsIn<Layers> = Layers extends readonly [infer First, ...infer Rest]
  ? ChannelsOf<First extends { stateSchema?: infer Schema } ? Exclude<Schema, undefined> : unknown> &
      ChannelsIn<Rest>
  : unknown;

// A type and not an interface: only types fit LangGraph's record of channels without letting in any name.
type Channels<Answer> = {
  messages: BaseChannel<BaseMessage[], BaseMessageLike[] | BaseMessageLike>;
  files: BaseChannel<Record<string, FileData>, FilesUpdate>;
  todos: BaseChannel<Todo[], Todo[]>;
  structuredResponse: BaseChannel<Answer | undefined, Answer | undefined>;
  goalState: BaseChannel<GoalState | undefined, GoalState | undefined>;
};

type OwnChannels<State, Update> = {
  // A field without a default is not there before it is written.
  [Name in keyof State as Name extends keyof Channels<unknown> | `_${string}` ? never : Name]-?: BaseChannel<
    State[Name],
    Name extends keyof Update ? Update[Name] : State[Name]
  >;
};

type Definition<Format, Schema, Layers> = Channels<ResponseOf<Format>> &
  ChannelsOf<Schema> &
  ChannelsIn<Layers>;

/** The compiled graph of an agent, with input and output typed by its parameters. */
export type TypedDeepAgent<
  Format,
  Schema,
  Context extends InteropZodObject,
  Name extends string = string,
  Layers extends readonly unknown[] = readonly [],
> = CompiledStateGraph<
  Record<string, unknown>,
  Record<string, unknown>,
  string,
  Definition<Format, Schema, Layers>,
  Definition<Format, Schema, Layers>,
  Context
> & {
  /** The subagents it can delegate to, in the order they are offered: the values of `subagent_type` in a call. */
  readonly subagentNames: ReadonlyArray<Name | "general-purpose">;
  /** The graph itself, for code that asks agents of LangChain or deepagents for theirs. */
  readonly graph: TypedDeepAgent<Format, Schema, Context, Name, Layers>;
};
