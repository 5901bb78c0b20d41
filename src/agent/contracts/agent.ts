/** An agent as runs see it: its input, its needs from a run, its traces. */
import type { FileData, MaybePromise } from "../../backends/backend.ts";
import type { Todo } from "../../tools/tool.ts";
import type { Answer } from "../../tools/request.ts";
import type { EffectLog, ValidatedArgs, TracePlace } from "./middleware.ts";
import type { AgentEnd, EventSink } from "./events.ts";
import type { PendingQuestion, QuestionReply } from "./question.ts";
import type { ChildRuns } from "./children.ts";
import type { SharedBudget } from "./limits.ts";
import type { AgentPath, Inbox, InboxMessage } from "./state.ts";

/** The parts of a thread that runs and clients see. */
export interface AgentSnapshot {
  todos: Todo[];
  /** Files of the thread state by path. */
  files: Record<string, FileData>;
  /** Text of the last assistant message without tool calls; empty when there is none. */
  answer: string;
}

/** The end of the run that left calls behind; if missing, the thread simply got a new message. */
export type EarlierEnd = "cancelled" | "failed";

export type AgentInput =
  /**
   * A new task. The same run's task is never added twice: the run continues instead. `after` is the end of the previous
   * run in the thread if it did not complete; the calls that it left behind report it. The messages to earlier runs of
   * the thread that these had not read come before the task.
   */
  | { kind: "task"; task: string; after?: EarlierEnd | undefined; told?: readonly InboxMessage[] }
  /**
   * Answers by interrupt id. Requests without an answer, or with one that does not fit, stay open. An edit that
   * `checkCall` would refuse denies its call.
   */
  | { kind: "resume"; answers: Readonly<Record<string, QuestionReply>> }
  /** Continue from the last checkpoint. */
  | { kind: "continue" };

/** Everything an agent needs from the run that it works for. */
export interface WorkOptions {
  runId: string;
  /** The model reads it with the task, and with the task of each subagent: the date, time zone and platform. */
  startNote?: string;
  signal: AbortSignal;
  events?: EventSink;
  /** Keeps calls with outside effects from being made twice when a run continues after a crash. */
  effects?: EffectLog;
  /** Place of the agent in the tree of its run: a background subagent is not at the top. Default: the main agent. */
  agent?: AgentPath;
  /** Subagents that work in the background; absent where none can be started. */
  children?: ChildRuns;
  /** Absent if no other run counts against the same limits. */
  budget?: SharedBudget;
  /** Messages that arrive while the agent works. It does not finish before it has read all of them. */
  inbox?: Inbox;
  /** Asks a person of `run` while a call is at work. Resolves with undefined if nobody answered or can be asked. */
  hold?: {
    (
      asked: Omit<PendingQuestion, "id">,
      signal: AbortSignal,
      ended?: AbortSignal,
    ): Promise<Answer | undefined>;
    run?: string;
  };
  /** Counts a question of another server. Rejects with `TooManyQuestions` if there were too many in the run. */
  countQuestion?: (id: string) => Promise<void>;
  /** Takes the model's text so far, empty when a call begins or is tried again. It must be quick and not throw. */
  say?: (text: string) => void;
  /** True if answers are waiting that the agent was not resumed with. A limit then leaves the other requests open. */
  hasAnswers?: () => MaybePromise<boolean>;
  /** Parent of its spans, if a tracer is registered. */
  trace?: TracePlace;
}

export interface Agent {
  /**
   * Works on a thread until it has finished or waits, and reports events to `events`.
   *
   * @throws RunFailure with a stable code when the run cannot continue; an abort error when `signal` aborted; anything
   *   else is a bug.
   */
  work(threadId: string, input: AgentInput, options: WorkOptions): Promise<AgentEnd>;
  /** Checks a call of this agent, or of one of its subagents, before a person's edit of it is stored. */
  checkCall(tool: string, args: unknown, agent?: AgentPath): ValidatedArgs;
  /** The current contents of a thread: todos, files, the last answer. */
  snapshot(threadId: string): Promise<AgentSnapshot>;
  /** A subagent as an agent of its own, for work in the background; undefined if there is none of this name. */
  subagent(name: string): Agent | undefined;
  /** The graph of the agent and its subagents as text of Mermaid. */
  drawing(): Promise<string>;
}
