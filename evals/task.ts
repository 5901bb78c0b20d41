import { oneLine } from "../src/core/text.ts";
import type { Approval, RunView } from "../src/runs/run.ts";
import type { PersonDecision } from "../src/tools/request.ts";
import type { WireAnswer, WireReply, WireRequest } from "../test/support/wire-server-protocol.ts";

/** One call of a tool. */
export interface Call {
  name: string;
  args: Record<string, unknown>;
}

/** What one call came to, as the model was told. */
export interface Result {
  text: string;
  error: boolean;
}

/** All that the model is sent. */
export interface Seen {
  system: string;
  /** What the agent was asked last. */
  task: string;
  /** Everything said before it in this thread. */
  before: string;
  /** What the agent was told after it. */
  told: string;
  request: WireRequest;
}

/**
 * How an ideal model solves a task: it yields the calls of each reply, is given their results, and returns its
 * answer. It is begun anew for each request, with the results that stand in the request: what the harness does
 * not deliver, or delivers changed, it does not have.
 */
type Oracle = (seen: Seen) => Generator<Call[], string | WireAnswer, Result[]>;

/** What there is when all runs of a task have ended. */
export interface End {
  /** The last answer. */
  answer: string;
  views: readonly RunView[];
  /** Content of a file of the task's folder; `undefined` when there is none. */
  file(name: string): string | undefined;
  /** A file as the agent of the last run sees it. */
  read(path: string): Promise<string | undefined>;
}

export interface EvalTask {
  /** Also its folder in the workspace, and the mark in all that is asked of its agents. */
  name: string;
  files?: Record<string, string>;
  /** What is asked, one run after the other; `anew` in a thread of its own. */
  asked: readonly (string | { anew: string })[];
  /** Its ideal model. */
  oracle: Oracle;
  /** The same for its subagents. */
  worker?: Oracle;
  /** Writes a summary of what it is given. */
  summary?: (text: string) => string;
  /** Replaces what the oracle would answer. */
  fault?: (seen: Seen) => WireReply | undefined;
  /** What the person answers, and may tell the run before. Default: approves. */
  person?: (approval: Approval, tell: (text: string) => Promise<unknown>) => Promise<PersonDecision>;
  /** Throws what it expected unless the task is solved, by whatever model. */
  check(end: End): unknown;
}

export const call = (name: string, args: Record<string, unknown> = {}): Call => ({ name, args });
export const read = (file_path: string, more: object = {}): Call => call("read_file", { file_path, ...more });
export const write = (file_path: string, content: string): Call => call("write_file", { file_path, content });
export const edit = (file_path: string, old_string: string, new_string: string, more: object = {}): Call =>
  call("edit_file", { file_path, old_string, new_string, ...more });
export const delegate = (description: string, subagent_type = "general-purpose"): Call =>
  call("task", { description, subagent_type });

/** Text of a page of `read_file` without the line numbers. */
export const plain = ({ text }: Result): string => text.replaceAll(/^(?:\d+(?:\.\d+)?)?\t/gm, "");

/** Whether a call failed; not every provider's protocol has a mark for it. */
export const failed = ({ text, error }: Result): boolean => error || text.startsWith("Error");

/** The first group of `pattern` in `text`. @throws when it is not there. */
export function find(text: string, pattern: RegExp): string {
  const found = pattern.exec(text)?.[1];
  if (found === undefined) throw new Error(`${String(pattern)} is not in: ${text.slice(0, 400)}`);
  return found;
}

/** The mark of a task in what its agents are asked. */
export const markOf = (name: string): string => `[${name}]`;

/** Everything that is asked of a task's agent with `text`. */
export const askOf = (name: string, text: string): string =>
  `${markOf(name)} ${text}\nThe folder of this task is /workspace/${name}.`;

/** @throws `expected`, and what was found, unless `holds`. */
export function expectThat(holds: boolean, expected: string, found: unknown): void {
  if (holds) return;
  throw new Error(`expected ${expected}, found ${oneLine(JSON.stringify(found) ?? "nothing", 200)}`);
}

/** @throws unless `text` has all these parts. */
export function expectParts(text: string, ...parts: readonly (string | RegExp)[]): void {
  const missing = parts.filter((part) =>
    typeof part === "string" ? !text.includes(part) : !part.test(text),
  );
  expectThat(missing.length === 0, `an answer with ${missing.map(String).join(" and ")}`, text);
}

/** @throws unless the file `name` has this content, but for blanks at its end. */
export function expectFile(end: End, name: string, content: string): void {
  const found = end.file(name);
  expectThat(found?.trimEnd() === content.trimEnd(), `${name} with ${JSON.stringify(content)}`, found);
}

/** @throws unless `name` does not exist in the task's folder. */
export const expectNoFile = (end: End, name: string): void =>
  expectThat(end.file(name) === undefined, `no file ${name}`, end.file(name));
