/** Everything that governs one call: its agent, its step, the questions about it and its records. */
import type { ToolCall } from "@langchain/core/messages/tool";
import type { StructuredToolInterface } from "@langchain/core/tools";
import type { ThreadFiles } from "../../backends/backend.ts";
import type { Logger } from "../../core/logger.ts";
import type { Meter } from "../budget/meter.ts";
import type { AgentRuntime, AgentTool, CallScope, Middleware } from "../contracts/middleware.ts";
import type { AgentLimits } from "../contracts/limits.ts";
import type { InnerCall, ProgramScope } from "../contracts/program.ts";
import type { HitlRequest } from "../contracts/question.ts";
import type { EditRules } from "./check.ts";
import type { Effects } from "./effects.ts";

export interface CallStep {
  readonly agent: CallingAgent;
  readonly reply: readonly ToolCall[];
  readonly scope: CallScope;
  readonly runtime: AgentRuntime;
  readonly files: ThreadFiles;
  readonly meter: Meter;
  readonly questions: Questions;
  readonly effects: Effects;
  /** When the call may ask a person; ended where it asks nobody. */
  readonly turn: { begun: Promise<unknown>; end: () => void };
  /** Absent: the model made the call. */
  readonly inner?: InnerCall;
  /** The calls that a program makes, if this call runs one. */
  readonly program: ProgramScope & { effectsFor(inner: InnerCall): Effects };
  /** True if no call of a subagent is made twice after it is started again; also true for unknown names. */
  readonly accountsForCalls: (subagent: string) => boolean;
  /** Makes one of the agent's tools of a tool that middleware adds. */
  readonly adopt: (tool: StructuredToolInterface) => AgentTool;
}

export interface CallingAgent extends EditRules {
  readonly middleware: readonly Middleware[];
  readonly limits: AgentLimits;
  /** Calls that fail alike are pointed out to the model. */
  readonly tellsFailures: boolean;
  readonly log: Logger;
}

export interface Questions {
  /** Digests of the call as earlier questions about it showed it, from before the run paused or the process ended. */
  shown(): Promise<readonly string[]>;
  /** @throws a pause (`isPause`), as long as there is no answer. */
  ask(question: HitlRequest): Promise<unknown>;
}
