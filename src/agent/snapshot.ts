import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { StateSnapshot } from "@langchain/langgraph";
import type { FileData } from "../backends/backend.ts";
import { directAnswer } from "./direct-answers.ts";
import type { AgentEvent, AgentSnapshot, HitlRequest, PendingInterrupt } from "./events.ts";
import { stopReasonOf } from "./limits/limits.ts";
import { MODEL_AWAITED } from "./models/client-model.ts";
import type { OpenInterrupt } from "./pending.ts";
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

/** What a thread that stopped waits for, first what was `asked` first; `undefined`: nothing that can be answered. */
export function whatWaits(
  open: readonly OpenInterrupt[],
  asked: readonly string[],
): { interrupts: PendingInterrupt[]; modelAwaited: boolean } | undefined {
  const interrupts = open.flatMap(({ id, value }): PendingInterrupt[] => {
    // The value is what the gate of this project, or of LangChain's middleware, asked with.
    const request = value as HitlRequest | undefined;
    return Array.isArray(request?.actionRequests) ? [{ id, request }] : [];
  });
  interrupts.sort((a, b) => asked.indexOf(a.id) - asked.indexOf(b.id));
  const modelAwaited = open.some(({ value }) => value === MODEL_AWAITED);
  return interrupts.length > 0 || modelAwaited ? { interrupts, modelAwaited } : undefined;
}

const valuesOf = ({ values }: ThreadState): Partial<AgentState> => values as Partial<AgentState>; // our channels

function finalText(messages: readonly BaseMessage[]): string {
  const last = messages.at(-1);
  return AIMessage.isInstance(last) && (last.tool_calls ?? []).length === 0 ? last.text : "";
}
