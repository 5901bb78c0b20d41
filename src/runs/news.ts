/** News of runs for people and programs elsewhere: the types, and the port of their outbox. */
import type { RunEvent } from "./events.ts";

export const NEWS_TYPES = [
  "run.finished",
  "run.failed",
  "question.asked",
  "approval.requested",
  "budget.reached",
] as const;
export type NewsType = (typeof NEWS_TYPES)[number];

/** Types that a channel gets if it names none: a run that ends at a limit has finished, too. */
export const USUAL_NEWS: readonly NewsType[] = [
  "run.finished",
  "run.failed",
  "question.asked",
  "approval.requested",
];

/** One event of a run, with what a receiver may know of it: no content of files, no arguments, no answer. */
export interface News {
  /** The same at every attempt, so that receivers can drop doubles. */
  id: string;
  type: NewsType;
  /** Time of the event, in milliseconds since the epoch. */
  time: number;
  runId: string;
  threadId: string;
  /** Name of the run, or the task if it has none, uncut. */
  name: string;
  /** Name of the schedule that started the run. */
  schedule?: string;
  event: RunEvent;
}

/** The news of an event. */
export function newsOf({ kind, data }: Pick<RunEvent, "kind" | "data">): readonly NewsType[] {
  switch (kind) {
    case "run_completed":
      return "stopReason" in data && data.stopReason !== undefined
        ? ["run.finished", "budget.reached"]
        : ["run.finished"];
    case "run_failed":
      return ["run.failed"];
    case "question_asked":
      return ["question.asked"];
    case "approval_requested":
      return ["approval.requested"];
    default:
      return [];
  }
}

/** A receiver of news, and the types that it wants. */
export interface NewsRule {
  target: string;
  types: readonly NewsType[];
}

/** A message on its way, claimed for one attempt. */
export interface Outgoing {
  number: number;
  target: string;
  /** Attempts so far, this one included. */
  attempts: number;
  news: News;
}

/** `problem`: one line for the operator, without secrets. */
export type SendResult =
  | { ok: true }
  | {
      ok: false;
      problem: string;
      /** True if no further attempt can succeed. */
      isFinal?: boolean;
      /** Shortest pause before the next attempt that the receiver asked for, in ms. */
      afterMs?: number;
    };

/** Sends one message. Never rejects, except when `signal` aborts. */
export type Send = (news: News, signal: AbortSignal) => Promise<SendResult>;

/** Outcome of an attempt: it was accepted, is tried again, was given up, or was broken off and does not count. */
export type Settled =
  | { kind: "delivered" }
  | { kind: "again"; dueAt: number; problem: string }
  | { kind: "dead"; now: number; problem: string }
  | { kind: "broken_off"; now: number };

/** A message that was not accepted yet, for the operator. */
export interface WaitingNews {
  number: number;
  target: string;
  type: NewsType;
  runId: string;
  name: string;
  createdAt: number;
  attempts: number;
  /** That of the last attempt. */
  problem?: string;
  /** The next attempt; absent: it was given up. */
  dueAt?: number;
}

/** Messages on their way, for the operator of the server. */
export interface NewsOperator {
  /** Those that were given up first, then the others by age; at most `limit`. */
  list(limit: number): Promise<WaitingNews[]>;
  /** Tries messages again at once, with all their attempts; gives how many there were. No numbers: all dead ones. */
  retry(numbers: readonly number[] | undefined): Promise<number>;
  /** Deletes messages; gives how many there were. No numbers: all dead ones. */
  drop(numbers: readonly number[] | undefined): Promise<number>;
}

/** The outbox. Every method is one transaction. */
export interface NewsRepository extends Omit<NewsOperator, "retry"> {
  /** The same as that of the operator. */
  retry(numbers: readonly number[] | undefined, now: number): Promise<number>;
  /** Number of messages that were given up. */
  countDead(): Promise<number>;
  /**
   * From now on, events that this process writes are stored with a message for each rule that wants them, in the same
   * transaction. `posted` is called when there may be new messages.
   */
  open(rules: readonly NewsRule[], posted: () => void): { close(): void };
  /** The next attempt for each target that has messages of this environment. */
  due(environment: string): Promise<{ target: string; dueAt: number }[]>;
  /** Claims the message that is due first, until `until`. `undefined`: none is due. */
  claim(
    target: Pick<WaitingNews, "target"> & { environment: string },
    now: number,
    until: number,
  ): Promise<Outgoing | undefined>;
  /** Does nothing if another server has claimed the message since. */
  settle(outgoing: Pick<Outgoing, "number" | "attempts" | "target">, settled: Settled): Promise<void>;
}
