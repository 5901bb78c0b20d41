/** News of runs for people and programs elsewhere: the types. */
import type { RunEvent } from "./events.ts";
import type { Access } from "./shares.ts";

export const NEWS_TYPES = [
  "run.finished",
  "run.failed",
  "question.asked",
  "approval.requested",
  "budget.reached",
] as const;
export type NewsType = (typeof NEWS_TYPES)[number];

/** Types that a channel gets if it names none: a run that ends at a limit has finished, too. */
export const USUAL_NEWS: readonly NewsType[] = NEWS_TYPES.filter((type) => type !== "budget.reached");

/** Types that clients may ask for: also steps of a run, which come often and are sent to no channel. */
export const EVENT_TYPES = [...NEWS_TYPES, "run.progress"] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** An event of a run, limited to public facts: no file contents, arguments or answers. */
export interface News {
  /** Constant over all attempts, so that receivers can drop duplicates. */
  id: string;
  type: EventType;
  /** Time of the event, in milliseconds since the epoch. */
  time: number;
  runId: string;
  threadId: string;
  /** Name of the run, or the task if it has none, uncut. */
  name: string;
  /** Name of the schedule that started the run. */
  schedule?: string;
  event: RunEvent;
  /** Number of questions, if one message stands for several: the event is the first of them. */
  questions?: number;
}

/** A client of a principal that wants each event of one type at an address, until a time. */
export interface Subscription extends Pick<
  Access,
  "principal" | "runId" | "expiresAt" | "createdAt" | "credential"
> {
  /** Made of the principal, the address, the type and the run: subscribing again changes the same one. */
  id: string;
  type: NewsType;
  url: string;
  /** Signs the messages: `whsec_…`. */
  secret: string;
}

/** Subscriptions are targets, too. No name of a channel begins so. */
const SUBSCRIBED = "@";
export const targetOf = (id: string): string => SUBSCRIBED + id;
export const subscriptionIn = (target: string): string | undefined =>
  target.startsWith(SUBSCRIBED) ? target.slice(SUBSCRIBED.length) : undefined;

export interface OccurrenceQuery {
  type: EventType;
  /** Default: all runs of the principal. */
  runId?: string | undefined;
  /** Time of the first event that counts, in milliseconds since the epoch. */
  since: number;
  limit: number;
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
      /** True if nobody answered: no other message would have reached the receiver either. */
      isUnreachable?: boolean;
      /** Shortest pause before the next attempt that the receiver asked for, in ms. */
      afterMs?: number;
    };

/** Sends one message. Never rejects, except when `signal` aborts. */
export type Send = (news: News, signal: AbortSignal) => Promise<SendResult>;

/** Outcome of an attempt: accepted, to be retried, abandoned, or interrupted, which does not count. */
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
  /** Time of the next attempt; absent if the message was abandoned. */
  dueAt?: number;
}

/** Messages on their way, for the operator of the server. */
export interface NewsOperator {
  /** Lists abandoned messages first, then the others by age; at most `limit`. */
  list(limit: number): Promise<WaitingNews[]>;
  /** Retries messages at once, with all their attempts, and returns their count. Without numbers: all dead ones. */
  retry(numbers: readonly number[] | undefined): Promise<number>;
  /** Deletes messages and returns their count. Without numbers: all dead ones. */
  drop(numbers: readonly number[] | undefined): Promise<number>;
}
