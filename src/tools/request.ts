/** Types of requests to people, and of their answers. */
import type { RuledRequest } from "../rules/call.ts";

/** Preview of a call for its approver. */
export interface CallPreview {
  kind: "diff" | "command" | "arguments";
  /** One line: what would happen, to which thing. */
  summary: string;
  /** Such as `tracker: Create an issue`, in place of the tool's name. */
  title?: string;
  /** Names the file or folder that the call really touches, links followed: in full, on one line. */
  destination?: string;
  /** Unified diff, the command, or pretty-printed arguments. */
  detail: string;
  /** `detail` leaves out a part of the call, which only the arguments have whole. Absent: this shows all of it. */
  isPart?: true;
  /** The whole diff of which `detail` is a part, for a screen of its own. */
  whole?: string;
  /** Size and beginning of the content that the call would delete. Shown to people alone: a model may not be allowed to read it. */
  lost?: string;
  /** A person approved the call before, and it did nothing, because its effect had changed by then. */
  again?: true;
}

export type DecisionType = "approve" | "edit" | "reject";

/** Later calls that a person can approve together with one. */
export interface SameCalls {
  /** Equal for all of them, and for no others. */
  key: string;
  /** Names these calls for a person: `any later edit_file of /a.md`. */
  text: string;
}

/** A tool call that waits for approval. */
export interface CallRequest {
  kind: "approval";
  tool: string;
  args: Record<string, unknown>;
  preview: CallPreview;
  allowedDecisions: DecisionType[];
  /** Absent: no other call counts as the same. */
  same?: SameCalls;
  /** The call for rules that allow calls; absent if none may allow it. */
  ruled?: RuledRequest;
}

export type Decision =
  /** `byRule`: nobody was asked, so that the call has no right that only a person can grant. */
  | { type: "approve"; byRule?: true }
  | { type: "edit"; editedAction: { name: string; args: Record<string, unknown> } }
  | {
      type: "reject";
      message?: string;
      /** The deadline has passed, or the decision cannot be carried out: it denies calls that may not be rejected too. */
      expired?: true;
    };

/**
 * Decision of a person. `approve_same`: this call, and those of the run that count as the same. `approve_always`: this
 * call, and all later ones that the rules allow, which are those of an offer.
 */
export type PersonDecision =
  | Decision
  | { type: "approve_same" }
  | { type: "approve_always"; rules: string[] };

export type Value = string | number | boolean | string[];

/** One field of a question, of the kinds that MCP forms can show. */
export type Field = {
  name: string;
  title?: string;
  description?: string;
  required?: true;
  /** A fitting value that the asker suggests. */
  suggested?: Value;
} & (
  | {
      type: "text";
      maxLength?: number;
      format?: "email" | "uri" | "date" | "date-time";
      /** The text that the field contains at first. */
      initial?: string;
    }
  | { type: "number"; integer?: true; min?: number; max?: number }
  | { type: "yes_no" }
  /** `labels` are the texts for people, in the order of `options`. `other`: any text is an answer too. */
  | { type: "choice"; options: string[]; labels?: string[]; many?: true; other?: true }
);

/** A question to a person that is not about the approval of a call. */
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
      /** Commits in the copy, which are not applied: only files are. */
      commits?: readonly string[];
      /** Why the person is asked again. */
      note?: string;
    };

/** A changed file as a review names it. The person sees its lines elsewhere. */
export interface ReviewedFile {
  /** From the root of the workspace, such as `src/send.js`. */
  path: string;
  /** Path before it was renamed. That file is deleted when something of the renamed one is applied. */
  from?: string;
  change: "added" | "edited" | "deleted" | "renamed";
  /** Changes whenever the proposed file, or the file it is compared with, changes. */
  version: string;
  added: number;
  removed: number;
  /** Number of places that can be applied by themselves; 0: it is applied whole. */
  places: number;
  /** The folder is in the way: the file is applied only if the person decides about the content of the folder. */
  conflict?: true;
  /** It is not among the files that "all" means, for example because git ignores it. */
  apart?: true;
  /** The review does not show all of it, so that a form of the whole change does not apply it. */
  unshown?: true;
}

/** Parts of a change that a person applies, and the decisions about the others. */
export interface ReviewChoice {
  /** Paths of files to apply: `all`, or the numbers of some of their places, from 0. */
  apply: Record<string, "all" | number[]>;
  /** Files of which the proposed lines replace those that are in the way. */
  over?: string[];
  /** Files that the agent is to fit to the present content of the folder. */
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

/** Content of a request to a person, by its kind. */
export type RequestContent = CallRequest | Question;

/** The content with the call that waits for the answer, if it is known. */
export type AskedContent = RequestContent & { callId?: string };

/** An answer of a person to a request of any kind. */
export type PersonAnswer = Answer | PersonDecision;

/** An answer that fits its request, or the problem with it. */
export type CheckedAnswer<Given = PersonAnswer> =
  | { ok: true; answer: Given }
  | { ok: false; message: string };
