import type { SystemMessage } from "@langchain/core/messages";
import type { BaseCheckpointSaver, BaseStore } from "@langchain/langgraph";
import type { BaseCache } from "@langchain/langgraph-checkpoint";
import type { z } from "zod";
import type { BackendSource } from "../backends/backend.ts";
import type { Logger } from "../core/logger.ts";
import type { AgentLimits } from "./limits/limits.ts";
import type { ToolInput } from "./agent-tool.ts";
import type { ModelSource } from "./lazy-model.ts";
import type { FilesystemOptions } from "./middleware/filesystem.ts";
import type { InterruptOn } from "./middleware/human-in-the-loop.ts";
import type { DelegationOptions } from "./middleware/subagents.ts";
import type { SummarizationOptions } from "./middleware/summarization.ts";
import type { AgentMiddleware } from "./middleware/middleware.ts";
import type { FilesystemPermission } from "./permissions.ts";
import type { SystemPrompt } from "./system-message.ts";
import type { ResponseFormat } from "./structured.ts";

/** A subagent described by data; what is left out comes from the agent it belongs to. */
export interface SubAgent {
  name: string;
  /** Tells the delegating model when to use it. */
  description: string;
  /** All of its system prompt but what its layers add; a `SystemMessage` keeps its blocks. Default: nothing. */
  systemPrompt?: string | SystemMessage;
  /** Default: the agent's own tools. `[]`: the built-in tools only. */
  tools?: readonly ToolInput[];
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
   * `isolated` (default): it sees its task only. `fork`: it goes on from the agent's conversation, with the
   * agent's prompt, memory, skills and middleware besides its own, and cannot delegate. `handoff` is the word of
   * deepagents for `isolated`.
   */
  mode?: "isolated" | "handoff" | "fork";
  /** Added to the agent's own rules: a call must pass both. */
  permissions?: readonly FilesystemPermission[];
  /** What of the file tools is different from the agent's. */
  filesystem?: FilesystemOptions;
  /** What one assignment may use; each that is left out is the agent's. The agent's totals count it too. */
  limits?: Omit<AgentLimits, "parallelSubagents" | "subagentDepth">;
  /** Graph steps of one assignment. Default: the agent's. */
  recursionLimit?: number;
}

/** Whatever a runnable states that it takes: what it is given are the messages and what else its state shares. */
export interface CompiledRunnable {
  invoke(input: never, config?: never): Promise<unknown>;
}

/** A subagent that exists already, used as it is; it inherits nothing. */
export interface CompiledSubAgent {
  name: string;
  description: string;
  /** A graph of LangGraph, an agent of LangChain, or anything else with `invoke` that takes `messages`. */
  runnable: CompiledRunnable;
  /** `fork`: it is given the agent's conversation before its task. Default `isolated`, or `handoff`. */
  mode?: "isolated" | "handoff" | "fork";
  /**
   * What it does may be done twice: a task that a crash broke off is begun again, or goes on from the checkpoint
   * of a graph. Default: it is not, and the delegating model is told that its outcome is unknown. A deep agent
   * goes on by itself, and needs no such permission.
   */
  isRepeatable?: boolean;
}

/** Parameters of `createDeepAgent`; what it returns is typed by those that are generic here. */
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
  /** `AGENTS.md` files shown in the system prompt, as paths of the backend. */
  memory?: readonly string[];
  /** Folders of skills, as paths of the backend; of two skills with one name the later counts. */
  skills?: readonly string[];
  /** Marks for Anthropic's prompt cache; other models ignore it. Default true. */
  promptCaching?: boolean;
  /** Keeps long conversations within the model's window. Default on; `false`: never. */
  summarization?: false | SummarizationOptions;
  /** Added to the built-in tools, and the default of every subagent. */
  tools?: readonly ToolInput[];
  /** Comes first in the system prompt; the built-in prompt follows. An object says what stands where. */
  systemPrompt?: SystemPrompt;
  /** Placed after the default stack. The name of a default one replaces it in its place. */
  middleware?: readonly [...Layers];
  subagents?: ReadonlyArray<(SubAgent | CompiledSubAgent) & { name: Name }>;
  /** Where files live. Default: the thread's own state. */
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
  /** Which tools need a person's approval. */
  interruptOn?: InterruptOn;
  /** State channels of your own: a LangGraph state schema, zod object or annotation. */
  stateSchema?: Schema;
  /** What each run is given besides its input; tools, middleware and backend factories read it. */
  contextSchema?: Context;
  /** The form of the final answer, kept in `structuredResponse`. */
  responseFormat?: Format;
  /** Graph name, also in traces and drawings. */
  name?: string;
  /** Planning with `write_todos`. Default true. */
  todos?: boolean;
  filesystem?: FilesystemOptions;
  /** Rules for the paths that file tools may use. Commands cannot be held to them and are not offered then. */
  permissions?: readonly FilesystemPermission[];
  /** Texts about delegating, in the place of the built-in ones. */
  delegation?: DelegationOptions;
  /** The subagent that is always there. Default true. */
  generalPurpose?: boolean | { description?: string; systemPrompt?: string };
  limits?: AgentLimits;
  /** Graph steps per run. Default 1000. */
  recursionLimit?: number;
  /** One log line for each model call and each tool call, at level `debug`. Default false. */
  debug?: boolean;
  /** Default: warnings about these parameters as JSON lines on standard error; with `debug`, its lines too. */
  log?: Logger;
}
