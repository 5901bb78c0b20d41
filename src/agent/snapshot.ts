import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { StateSnapshot } from "@langchain/langgraph";
import type { FileData } from "../backends/backend.ts";
import { directAnswer } from "./direct-answers.ts";
import type { AgentEvent, AgentSnapshot, HitlRequest, PendingInterrupt } from "./events.ts";
import { stopReasonOf } from "./limits/limits.ts";
import { questionId } from "./pending.ts";
import type { AgentState } from "./state.ts";

/** A thread as LangGraph gives it. */
export type ThreadState = StateSnapshot;

/** The parts of a thread that runs and clients care about. */
export function snapshotOf(state: ThreadState): AgentSnapshot {
  const { todos = [], files = {}, messages = [] } = valuesOf(state);
  const present = Object.entries(files).filter((entry): entry is [string, FileData] => entry[1] !== null);
  return {
    todos,
    files: Object.fromEntries(present),
    answer: finalText(messages),
  };
}

/** The last event of a run that ended in order. */
export function finishedEvent(state: ThreadState): AgentEvent {
  const { messages = [], structuredResponse } = valuesOf(state);
  const last = messages.at(-1);
  const stopReason = stopReasonOf(last);
  return {
    kind: "finished",
    answer: finalText(messages) || directAnswer(messages),
    ...(structuredResponse === undefined ? {} : { structured: structuredResponse }),
    ...(stopReason ? { stopReason } : {}),
  };
}

/** Value of the interrupt of a model call that waits for a client to lend its model. */
export const MODEL_AWAITED = "model_awaited";

/** Whether a chunk of stream mode `updates` tells that a model is waited for. */
export function awaitsModel(chunk: unknown): boolean {
  return rawInterrupts(chunk).some(({ value }) => value === MODEL_AWAITED);
}

/** The requests inside a chunk of stream mode `updates`. */
export function interruptsIn(chunk: unknown): PendingInterrupt[] {
  return rawInterrupts(chunk).flatMap(toPending);
}

interface RawInterrupt {
  id?: string;
  value?: unknown;
}

function rawInterrupts(chunk: unknown): RawInterrupt[] {
  if (typeof chunk !== "object" || chunk === null || !("__interrupt__" in chunk)) return [];
  return Array.isArray(chunk.__interrupt__) ? (chunk.__interrupt__ as RawInterrupt[]) : []; // what LangGraph streams
}

function toPending({ id, value }: RawInterrupt): PendingInterrupt[] {
  // The value is what the gate of this project, or of LangChain's middleware, asked with.
  const request = value as HitlRequest | undefined;
  return id && Array.isArray(request?.actionRequests) ? [{ id: questionId(id, request), request }] : [];
}

const valuesOf = ({ values }: ThreadState): Partial<AgentState> => values as Partial<AgentState>; // our channels

function finalText(messages: readonly BaseMessage[]): string {
  const last = messages.at(-1);
  return AIMessage.isInstance(last) && (last.tool_calls ?? []).length === 0 ? last.text : "";
}
