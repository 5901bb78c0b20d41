/** Programs that call tools: the calls that they make, and their records until the program has ended. */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { AskPerson, BackgroundTasks } from "../../tools/tool.ts";
import type { HitlRequest } from "./question.ts";
import type { StateUpdate } from "./state.ts";

/** A call that a program makes, by the call of the program and its number in it, from 1. */
export interface InnerCall {
  readonly outer: string;
  readonly number: number;
}

/** The first start of a program. The same facts begin it at each later start. */
export interface ProgramStart {
  /** Time of its clock, in ms since 1970. */
  readonly now: number;
  /** The engine that ran it. Another one may take another way through the same answers. */
  readonly engine: string;
}

/** The record of a call that a program made. Without `ended`, it began. */
export interface InnerRecord {
  readonly name: string;
  /** Digest of its name and arguments. */
  readonly call: string;
  readonly ended?: {
    /** From 1, in the order in which the calls of the program ended. */
    readonly order: number;
    /** Time of the end, in ms since 1970. */
    readonly at: number;
    /** JSON with `value` or `error`. */
    readonly answer: string;
    readonly update?: StateUpdate;
  };
}

/** Keeps the calls of one program until its own result is stored. When a method has returned, its fact is stored. */
export interface ProgramRecords {
  /** The program starts. Returns the facts of its first start, and the calls that it made before. */
  begin(first: ProgramStart): Promise<{ start: ProgramStart; calls: ReadonlyMap<number, InnerRecord> }>;
  put(number: number, record: InnerRecord): Promise<void>;
}

/** Questions that the calls of a program asked: they are asked together when the program can do nothing else. */
export interface ProgramQuestions {
  /** Digests of a call as earlier questions about it showed it. */
  shown(number: number): readonly string[];
  /** The answer to the next question of a call, which is this one; undefined if there is none yet. */
  next(number: number, asked: WaitingCall["asked"]): unknown;
  /** Asks all that calls wait for. @throws a pause, as long as there are no answers. */
  ask(waiting: readonly WaitingCall[]): Promise<void>;
}

/** A call of a program that waits for a person: for an approval, or for the answer that its tool asks for. */
export interface WaitingCall {
  readonly number: number;
  readonly asked: { readonly approval: HitlRequest } | { readonly question: Parameters<AskPerson>[0] };
}

/** Everything that the calls of one program share. */
export interface ProgramScope {
  readonly records: ProgramRecords;
  /** Reads the questions so far, and answers to them. @throws a pause while one of them is open. */
  questions(): Promise<ProgramQuestions>;
  /** Subagents in the background, as a call of the program sees them. */
  backgroundFor(inner: InnerCall): BackgroundTasks | undefined;
  /** The configuration of its calls: a tool of LangChain cannot stop the graph with it. */
  readonly config: RunnableConfig;
}
