import type { z } from "zod";
import type { Backend, FilesUpdate } from "../backends/backend.ts";

/** The one fact a tool states about itself; annotations, default gates and docs follow from it. */
export type ToolKind = "read" | "write" | "execute" | "plan" | "delegate";

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
  /** The same answer for programs. */
  artifact?: unknown;
  /** The text for a program that made the call, if it is not that of `content`. */
  plain?: string;
  /** A text too large for `content`: it goes into a file, and `end` stands below what is shown of it. */
  whole?: {
    readonly text: string;
    readonly end: string;
    /** Characters to show, and the text that ends them. Default: its first ten lines. */
    readonly shown?: { readonly characters: number; readonly close: string };
  };
  /** Change of the thread state, applied together with the tool message. */
  update?: { files?: FilesUpdate; todos?: Todo[] };
}

/** Content shown to a person who decides on a call. */
export interface CallPreview {
  kind: "diff" | "command" | "arguments";
  /** One line: what would happen, to which thing. */
  summary: string;
  /** Names the file or folder that the call really touches, links followed: in full, on one line. */
  destination?: string;
  /** Unified diff, the command, or pretty-printed arguments. */
  detail: string;
  /** `detail` leaves out a part of the call, which only the arguments have whole. Absent: this shows all of it. */
  isPart?: true;
  /** A person approved the call before, and it did nothing, because its effect had changed by then. */
  again?: true;
}

export interface FileDiff {
  /** Unified, of bounded length; or one line about a binary file. */
  diff: string;
  /** Lines that the whole change adds and removes; absent where they are not known. */
  added?: number;
  removed?: number;
}

/** A preview, and what an approval of it is bound to. */
export interface BoundPreview extends CallPreview {
  /**
   * All that the call would change, uncut, as JSON: when it, `summary` or `place` is another one after the answer,
   * the person is asked again. Absent: what is shown follows from the arguments alone.
   */
  effect?: unknown;
  /** The path that the call touches, links followed. */
  place?: string | undefined;
  /** Version of the file that the preview was made from. The call is handed it, to change no other. */
  version?: string;
  /** The error of the call, if it can only fail as things stand. Without a `place`, no other call can change that. */
  failure?: ToolResult;
  /** The summary says that the file is read-only. Approved, the call may change it all the same. */
  evenReadOnly?: true;
  /**
   * Later calls that are the same for a person who approves "the same" for the run: those of this tool with the same
   * key. `text` tells the person which these are. Default: changes of the same file, or calls with the same arguments.
   */
  same?: { readonly key: readonly string[]; readonly text: string };
}

/** Starts a subagent and returns its report; provided by the agent layer. */
export type SpawnSubagent = (request: { subagentType: string; description: string }) => Promise<ToolResult>;

/** Runs JavaScript, the body of an async function, and returns its value and what it printed. */
export type RunProgram = (source: string) => Promise<ToolResult>;

export type Value = string | number | boolean | string[];

/** One field of a question, of the kinds that MCP forms can show. */
export type Field = { name: string; title?: string; description?: string; required?: true } & (
  | { type: "text"; maxLength?: number; format?: "email" | "uri" | "date" | "date-time" }
  | { type: "number"; integer?: true; min?: number; max?: number }
  | { type: "yes_no" }
  /** `labels` are what people read, in the order of `options`. `other`: any text is an answer too. */
  | { type: "choice"; options: string[]; labels?: string[]; many?: true; other?: true }
);

/** A question to a person, which is not about the approval of a call. */
export type Question =
  /** The agent asks. After `afterMs` it continues without an answer; absent: it waits. */
  | { kind: "ask"; text: string; fields: Field[]; afterMs?: number }
  /** A tool or graph of LangChain asks, in whatever form. */
  | { kind: "interrupt"; value: unknown; schema?: Record<string, unknown> }
  /** Another MCP server asks, during a call. */
  | ({ kind: "elicitation"; server: string; message: string } & (
      | { mode: "form"; fields: Field[] }
      | { mode: "url"; url: string }
    ))
  /** A run that works on a copy asks what of its changes is applied. */
  | {
      kind: "review";
      files: ReviewedFile[];
      /** Number of files that the next review has. */
      more: number;
      /** The lines of all files; absent if they are many. */
      diff?: string;
      hasBranches: boolean;
      /** Why the person is asked again. */
      note?: string;
    };

/** A changed file as a review names it. The person sees its lines elsewhere. */
export interface ReviewedFile {
  /** From the root of the workspace. */
  path: string;
  /** Path before it was renamed. */
  from?: string;
  change: "added" | "edited" | "deleted" | "renamed";
  version: string;
  added: number;
  removed: number;
  /** Number of places that can be applied by themselves; 0: it is applied whole. */
  places: number;
  /** The folder is in the way, so that it is applied only if the person says what is to become of that. */
  conflict?: true;
  /** It is not among the files that "all" means, for example because git ignores it. */
  apart?: true;
  /** The review does not show all of it, so that a form of the whole change does not apply it. */
  unshown?: true;
}

/** Parts of a change that a person applies, and what becomes of the others. */
export interface ReviewChoice {
  /** Paths of files to apply: `all`, or the numbers of some of their places, from 0. */
  apply: Record<string, "all" | number[]>;
  /** Files of which the proposed lines replace those that are in the way. */
  over?: string[];
  /** Files that the agent is to fit to what the folder has by now. */
  fit?: string[];
  /** Why a file is not wanted, by its path. */
  refused?: Record<string, string>;
  /** Versions of files as the person saw them, by path. Default: those of the question. */
  shown?: Record<string, string>;
  /** Files longer than the review shows that the person read to their end. */
  read?: string[];
  /** For the agent, which then continues. */
  message?: string;
  /** Makes this branch of the applied files, in a folder of its own with `worktree`, and leaves the workspace as it is. */
  branch?: string;
  worktree?: true;
}

/** The answer to a question. `opened`: the address was opened, nothing more. */
export type Answer =
  | { type: "fields"; values: Record<string, Value> }
  | { type: "value"; value: unknown }
  | { type: "opened" }
  | { type: "review"; choice: ReviewChoice }
  | { type: "decline"; message?: string }
  | { type: "expired" };

/** Asks a person and gives the answer. The call stops until then, and begins again from its top. */
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
  /** A person approved the change of a file that they were told is read-only. */
  readonly evenReadOnly?: boolean | undefined;
  readonly spawn?: SpawnSubagent;
  /** A program made the call, and not the model. */
  readonly isProgram?: true;
  /** Runs a program whose functions are the agent's tools. */
  readonly runProgram?: RunProgram;
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

/** A tool as this project defines it; the agent layer turns it into what the model is offered. */
export interface ToolSpec<Schema extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly kind: ToolKind;
  readonly description: string;
  readonly schema: Schema;
  /** Other names under which an argument is accepted: alias → name. Not shown to the model. */
  readonly aliases?: Readonly<Record<string, string>>;
  /** Must not throw for expected conditions; what it throws all the same becomes an error result. */
  handle(args: z.output<Schema>, context: ToolContext): Promise<ToolResult>;
  /** Content for a person who is asked to approve this call. Default: the arguments. */
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
