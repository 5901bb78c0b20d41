/** An agent after it was built: everything that the nodes of its graph share, and the subagents it can start. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { AIMessage, BaseMessage, SystemMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver, StateSnapshot } from "@langchain/langgraph";
import type { BackendSource } from "../../backends/backend.ts";
import type { ToolResult } from "../../tools/tool.ts";
import type { CallingAgent } from "../calls/call-step.ts";
import type { EditRules } from "../calls/check.ts";
import type { GoalRules } from "../contracts/goal.ts";
import type { AgentState } from "../contracts/state.ts";
import type { ProviderTool } from "../contracts/middleware.ts";
import type { strategiesFor } from "../models/structured-answer.ts";
import type { StepFiles } from "../step/files.ts";
import type { ReplyCache } from "../models/reply-cache.ts";

export interface AgentDefinition extends CallingAgent {
  readonly name: string;
  /** The name of its messages, if it has one. */
  readonly author: string | undefined;
  /** Resolved on the first call: construction loads no provider. */
  readonly model: () => Promise<BaseChatModel>;
  readonly systemMessage: SystemMessage;
  readonly providerTools: readonly ProviderTool[];
  readonly backend: BackendSource;
  /** Folders for texts that left the conversation. */
  readonly keptFolders: readonly string[];
  readonly subagents: Subagents | undefined;
  /** Criteria that each answer is judged by. */
  readonly goal: Goal | undefined;
  readonly structured: ReturnType<typeof strategiesFor> | undefined;
  readonly cache: ReplyCache | undefined;
  /** Checks once whether the work is done, before the run ends. Returns the message to the agent if it is not. */
  readonly endCheck: ((state: Pick<AgentState, "messages" | "todos">) => BaseMessage | undefined) | undefined;
  /** Graph steps per run, unless the program sets another limit of LangGraph's. */
  readonly recursionLimit: number;
  readonly channels: string[];
  readonly folding: ReadonlySet<string>;
}

export interface Goal extends GoalRules {
  readonly judge: AgentGraph;
  /** A person is asked about criteria that the judge cannot settle. */
  readonly asks: boolean;
}

export interface AgentFacts extends EditRules, Pick<AgentDefinition, "subagents" | "limits"> {
  /** Some calls wait for a person before they run. */
  isGated: boolean;
}

/** Anything that runs a task in the form of messages: our graphs and compiled runnables alike. */
export interface SubagentRunnable {
  invoke(input: Record<string, unknown>, config?: RunnableConfig): Promise<unknown>;
}

export interface AgentGraph extends SubagentRunnable {
  readonly facts: AgentFacts;
  readonly checkpointer?: BaseCheckpointSaver | boolean;
  /** The node at which a turn of the agent begins. */
  readonly loopStart: string;
  /** A copy that reads the threads which `checkpointer` keeps. */
  keptBy(checkpointer: BaseCheckpointSaver): {
    getState(config: RunnableConfig): Promise<Pick<StateSnapshot, "values" | "tasks">>;
    updateState(config: RunnableConfig, values: Partial<AgentState>, asNode: string): Promise<unknown>;
  };
  /** Works inside a task of another graph and passes the states that it reaches to `reached`. */
  workInside(
    config: RunnableConfig,
    input: Partial<AgentState>,
    reached: (state: unknown) => void,
  ): Promise<void>;
}

export interface SpawnScope {
  readonly callId: string;
  readonly config: RunnableConfig;
  readonly files: StepFiles;
  readonly folding: ReadonlySet<string>;
  readonly state: AgentState;
}

export interface BuiltSubagent {
  readonly name: string;
  readonly description: string;
  readonly runnable: SubagentRunnable;
  /** Its runnable, when it was built here: its state holds only the files it changed. A foreign one gets and returns all. */
  readonly graph?: AgentGraph;
  /** It continues from the conversation of the agent that delegates. */
  readonly isFork: boolean;
  /** After a crash it continues from its checkpoint. The whole task of a foreign subagent is one call. */
  readonly accountsForCalls: boolean;
}

export interface Subagents {
  /** In the order in which they are offered. */
  readonly subagents: readonly BuiltSubagent[];
  find(name: string): BuiltSubagent | undefined;
  /** Reports which subagents of a reply wait: LangGraph begins no more of its calls than may work at a time. */
  tellQueued(reply: AIMessage, agent: AgentDefinition, config: RunnableConfig): void;
  /** Never throws for a subagent that fails: its caller gets an error result and its siblings continue. */
  spawn(task: { subagentType: string; description: string }, scope: SpawnScope): Promise<ToolResult>;
}
