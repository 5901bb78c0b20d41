import type { z } from "zod";
import type { Backend, FilesUpdate } from "../backends/backend.ts";
import type { Answer, CallPreview, Question } from "./request.ts";

/** The one fact a tool states about itself; annotations, default gates and docs follow from it. */
export type ToolKind = "read" | "write" | "execute" | "plan" | "delegate";

/** The subagent that needs no configuration: people see only its task. */
export const GENERAL_PURPOSE = "general-purpose";

export type TodoStatus = "pending" | "in_progress" | "completed";

export interface Todo {
  content: string;
  status: TodoStatus;
}

/** LangChain content block: `{ type: "text", text }`, `{ type: "image", … }` and the like. */
export type ContentBlock = { type: string } & Record<string, unknown>;

export interface ToolResult {
  /** The text that the model reads. A failure is one text that starts with `Error: `. */
  content: string | ContentBlock[];
  /** Default `success`. */
  status?: "success" | "error";
  /** The answer as data for programs. */
  artifact?: unknown;
  /** The text for a program that made the call, if it is not that of `content`. */
  plain?: string;
  /** A text too large for `content`: it goes into a file, and `end` stands below the part that is shown. */
  whole?: {
    readonly text: string;
    readonly end: string;
    /** Characters to show, and the text that ends them. Default: its first ten lines. */
    readonly shown?: { readonly characters: number; readonly close: string };
  };
  /** Change of the thread state, applied together with the tool message. */
  update?: { files?: FilesUpdate; todos?: Todo[] };
}

export interface FileDiff {
  /** Unified, of bounded length; or one line about a binary file. */
  diff: string;
  /** Lines that the whole change adds and removes; absent where they are not known. */
  added?: number;
  removed?: number;
}

/** A preview, with the effect and the file that an approval is bound to. */
export interface BoundPreview extends CallPreview {
  /**
   * All that the call would change, uncut, as JSON: when it, `summary` or `place` is another one after the answer,
   * the person is asked again. Absent: the preview follows from the arguments alone.
   */
  effect?: unknown;
  /** The path that the call touches, links followed. */
  place?: string | undefined;
  /** Version of the file that the preview was made from. The call is handed it, to change no other. */
  version?: string;
  /** The error of the call, if it can only fail as things stand. Without a `place`, no other call can change that. */
  failure?: ToolResult;
  /** The file is read-only, as the summary states. Approved, the call may change it all the same. */
  evenReadOnly?: true;
  /**
   * Later calls that are the same for a person who approves "the same" for the run: those of this tool with the same
   * key. `text` names them for the person. Default: changes of the same file, or calls with the same arguments.
   */
  same?: { readonly key: readonly string[]; readonly text: string };
}

/** Starts a subagent for this call, or for one within it, and returns its report; provided by the agent layer. */
export type SpawnSubagent = (
  request: { subagentType: string; description: string },
  callId?: string,
) => Promise<ToolResult>;

/** Runs JavaScript, the body of an async function, and returns its value and its output. */
export type RunProgram = (source: string) => Promise<ToolResult>;

/** Asks a person and returns the answer. The call stops until then, and begins again from its top. */
export type AskPerson = (question: Question) => Promise<Answer>;

/**
 * Asks a person of `run` while the call is at work, for as long as the run allows and until `ended` aborts; then the
 * question is withdrawn. `undefined`: nobody answered. @throws TooManyQuestions
 */
export type HoldQuestion = ((question: Question, ended?: AbortSignal) => Promise<Answer | undefined>) & {
  run?: string;
};

export interface BackgroundTask {
  /** Id of its run. */
  readonly id: string;
  /** Type of the subagent. */
  readonly name: string;
  readonly description: string;
  /** `input_required`: it waits for a person. The last three are final. */
  readonly status: "working" | "input_required" | "completed" | "failed" | "cancelled";
  /** One line: its newest step; empty before the first. */
  readonly step: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly endedAt?: number;
}

/** True until it has ended. */
export const isOpenTask = ({ status }: Pick<BackgroundTask, "status">): boolean =>
  status === "working" || status === "input_required";

/** Subagents that work in the background. `undefined` as a result: there is none with this id. */
export interface BackgroundTasks {
  /** Returns why no subagent of this type can be started, if none can. */
  problem(subagentType: string): string | undefined;
  /** A call that is made again finds the task that it started. */
  start(request: {
    subagentType: string;
    description: string;
  }): Promise<{ ok: true; id: string } | { ok: false; problem: string }>;
  /** The task, once it has ended or the agent was sent a message. The call stops until then. */
  wait(id: string): Promise<BackgroundTask | undefined>;
  list(): Promise<BackgroundTask[]>;
  /** The task, which reads the message at its next step if it has not ended. */
  tell(id: string, text: string): Promise<BackgroundTask | undefined>;
  /** The task as it was before. */
  cancel(id: string): Promise<BackgroundTask | undefined>;
}

/** Resources that one call may use. */
export interface ToolContext {
  readonly callId: string;
  readonly signal: AbortSignal;
  /** Resolved for this call. */
  readonly backend: Backend;
  /** Version of the file that a person was shown the change of: another one is not changed (`conflict`). */
  readonly expectedVersion?: string | undefined;
  /** True if a person approved exactly this call. Default false. */
  readonly approved?: boolean;
  /** A person approved the change of a file, knowing that it is read-only. */
  readonly evenReadOnly?: boolean | undefined;
  readonly spawn?: SpawnSubagent;
  /** A program made the call, and not the model. */
  readonly isProgram?: true;
  /** Runs a program whose functions are the agent's tools. */
  readonly runProgram?: RunProgram;
  /** Returns the error of a program that does not compile, and runs nothing. */
  readonly compileProgram?: (source: string) => Promise<ToolResult | undefined>;
  /** Absent where no subagent can work in the background. */
  readonly background?: BackgroundTasks;
  /** Absent where nobody can be asked. */
  readonly ask?: AskPerson;
  /** For a call that cannot begin again. Absent where nobody can be asked. */
  readonly hold?: HoldQuestion;
  /** Kept by this call when it was at work before: it continues by that, and does nothing again. */
  readonly handle?: unknown;
  /** Keeps JSON by which the call is continued after the process ended. Absent where nothing is kept. */
  readonly keep?: (handle: unknown) => Promise<void>;
  /** Version of the file at a path that this conversation read or wrote last; absent where nobody knows. */
  versionSeen?(path: string): string | undefined;
}

/** A tool as this project defines it; the agent layer makes the tool for the model from it. */
export interface ToolSpec<Schema extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly kind: ToolKind;
  readonly description: string;
  readonly schema: Schema;
  /** Other names under which an argument is accepted: alias → name. Not shown to the model. */
  readonly aliases?: Readonly<Record<string, string>>;
  /** Must not throw for expected conditions; any exception becomes an error result. */
  handle(args: z.output<Schema>, context: ToolContext): Promise<ToolResult>;
  /** Preview for the approver of this call. Default: the arguments. */
  preview?(args: z.output<Schema>, context: ToolContext): Promise<BoundPreview | undefined>;
  /** The virtual path a call touches, normalised; gates and permissions look at it. */
  pathOf?(args: z.output<Schema>): string | undefined;
  /** The change made by a successful call; does not use the backend. */
  changeOf?(args: z.output<Schema>, artifact: unknown): FileDiff;
}

/** Identity that infers the argument type from the schema. */
export const defineTool = <Schema extends z.ZodObject>(spec: ToolSpec<Schema>): ToolSpec<Schema> => spec;

/** The one way a tool fails: adds the prefix `Error: ` if it is missing. */
export function toolError(text: string, artifact?: unknown): ToolResult {
  const content = text.startsWith("Error: ") ? text : `Error: ${text}`;
  return { content, status: "error", ...(artifact === undefined ? {} : { artifact }) };
}
