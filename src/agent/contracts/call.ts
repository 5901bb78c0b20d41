/** Tools, their calls and results, and the record of calls with outside effects. */
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig, RunnableToolLike } from "@langchain/core/runnables";
import type { DynamicStructuredTool, StructuredToolInterface } from "@langchain/core/tools";
import type { z } from "zod";
import type { MaybePromise } from "../../backends/backend.ts";
import type {
  BoundPreview,
  FileDiff,
  ToolContext,
  ToolKind,
  ToolResult,
  ToolSpec,
} from "../../tools/tool.ts";
import type { Step } from "./step.ts";
import type { AgentPath, AgentState, StateUpdate } from "./state.ts";

/** A plain function with the facts a model needs to call it. */
export interface ToolFunction {
  name: string;
  description: string;
  schema: z.ZodObject;
  /** Default `execute`: unknown effects. */
  kind?: ToolKind;
  invoke(args: Record<string, unknown>, config: RunnableConfig): unknown;
}

/** A tool that the model's provider runs, in the provider's own form, such as `{ type: "web_search" }`. */
export interface ProviderTool {
  readonly invoke?: never;
  readonly handle?: never;
  readonly [field: string]: unknown;
}

/** A runnable of LangChain as a tool, by its `asTool`. */
export type RunnableTool = Pick<RunnableToolLike, "lc_namespace" | "name" | "description" | "schema">;

/** Tools that run here. */
export type ToolInput = StructuredToolInterface | RunnableTool | ToolSpec | ToolFunction | AgentTool;

export type ValidatedArgs = { ok: true; args: Record<string, unknown> } | { ok: false; message: string };

/** Everything one call may use: the tool layer's context and the graph's configuration. */
export interface CallScope {
  readonly context: ToolContext;
  readonly config: RunnableConfig;
  readonly step: Step;
  /** The state the call's step began with. */
  readonly state: AgentState;
  /** Does the work of a call and tells LangChain's callbacks of its beginning and end. */
  readonly observe: (
    call: ToolCall,
    offered: DynamicStructuredTool,
    work: () => Promise<CallResult>,
  ) => Promise<CallResult>;
  /** True if the graph stops with this error to ask a person. Such an error has to be thrown on. */
  readonly isPause: (error: unknown) => boolean;
}

/** The result of a call. It never changes: layers make new ones. */
export interface CallResult extends Readonly<Omit<ToolResult, "whole" | "update">> {
  /**
   * A text too large for `content`: it goes into a file. `start` and `end` stand around what is shown of it. A layer
   * that redacts `content` has to redact this as well.
   */
  readonly whole?: NonNullable<ToolResult["whole"]> & { readonly start?: string };
  readonly update?: StateUpdate;
  /** Further tool messages of a LangChain command. */
  readonly further?: readonly CallResult[];
  /** The message or command of a LangChain tool, for all else that it says. */
  readonly native?: unknown;
}

/** A tool as the graph runs it, whatever it was made from. */
export interface AgentTool {
  readonly name: string;
  readonly kind: ToolKind;
  /** The tool as the model and LangChain's middleware see it. */
  readonly offered: StructuredToolInterface;
  validate(args: unknown): ValidatedArgs;
  /** Runs the call with the given arguments; throws only for bugs of the tool. */
  run(call: ToolCall, scope: CallScope): Promise<CallResult>;
  preview(args: Record<string, unknown>, context: ToolContext): Promise<BoundPreview>;
  pathOf(args: Record<string, unknown>): string | undefined;
  /** The change that a successful call made; `undefined` if arguments and answer do not show it. */
  changeOf?(args: Record<string, unknown>, artifact: unknown): FileDiff | undefined;
}

/** Identifies one tool call of a run by facts in its checkpoint: the same after a crash, never used twice. */
export interface CallIdentity {
  agent: AgentPath;
  /** Id of the assistant message that made the call. */
  messageId: string;
  callId: string;
  /** A call of the program that this call runs, by its number. */
  inner?: number;
}

/** The result of a call in the encoding of checkpoints. */
export interface StoredOutcome {
  type: string;
  data: Uint8Array;
}

/**
 * Remembers calls with outside effects beyond the end of the process, so that none is made twice. When
 * a method has returned, its fact is stored.
 */
export interface EffectLog {
  /**
   * The record of a call; `undefined` if it never began. Without `outcome`, its end is unknown, unless the call can be
   * continued by what it kept (`handle`).
   */
  find(call: CallIdentity): MaybePromise<{ outcome?: StoredOutcome; handle?: Uint8Array } | undefined>;
  /** The call is about to run. @throws when it must not, because it could not be stored or the work is lost. */
  begin(call: CallIdentity, tool: string): MaybePromise<void>;
  finish(call: CallIdentity, outcome: StoredOutcome): MaybePromise<void>;
  /** The call continues elsewhere, and can be continued by this. */
  keep(call: CallIdentity, handle: Uint8Array): MaybePromise<void>;
  /** The call stopped to ask a person, without an effect, and will start over. */
  withdraw(call: CallIdentity): MaybePromise<void>;
}
