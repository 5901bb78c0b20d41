import type { Approval, PersonDecision, RunView } from "../../src/runs/run.ts";
import type { PrincipalRuns } from "../../src/runs/service.ts";
import type { WireAnswer, WireMessage, WireReply, WireRequest } from "../support/wire-server-protocol.ts";

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
interface Seen {
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

export interface OracleTask {
  /** Also its folder in the workspace, and the mark in all that is asked of its agents. */
  name: string;
  files?: Record<string, string>;
  /** What is asked, one run after the other; `anew` in a thread of its own. */
  asked: readonly (string | { anew: string })[];
  oracle: Oracle;
  /** The same for its subagents. */
  worker?: Oracle;
  /** Writes a summary of what it is given. */
  summary?: (text: string) => string;
  /** Replaces what the oracle would answer. */
  fault?: (seen: Seen) => WireReply | undefined;
  /** What the person answers, and may tell the run before. Default: approves. */
  person?: (approval: Approval, tell: (text: string) => Promise<unknown>) => Promise<PersonDecision>;
  /** Throws unless the task is solved. */
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

/** What the ideal model of `task` answers to a request. */
export function answerOf(task: OracleTask, request: WireRequest): WireReply {
  const { messages, tools } = request;
  const all = messages.map(({ text }) => text).join("\n");
  if (tools.length === 0 && task.summary) return { text: task.summary(all) };
  const at = messages.findLastIndex(({ role, text }) => role === "user" && text.includes(markOf(task.name)));
  const after = messages.slice(at + 1);
  const seen: Seen = {
    system: messages
      .filter(({ role }) => role === "system")
      .map(({ text }) => text)
      .join("\n"),
    task: messages[at]?.text ?? "",
    before: messages
      .slice(0, at)
      .map(({ text }) => text)
      .join("\n"),
    told: after
      .filter(({ role }) => role === "user")
      .map(({ text }) => text)
      .join("\n"),
    request,
  };
  const fault = task.fault?.(seen);
  if (fault) return fault;
  const script = (tools.includes("task") ? task.oracle : (task.worker ?? task.oracle))(seen);
  let step = script.next();
  for (const turn of after.filter(({ toolCalls }) => toolCalls.length > 0)) {
    if (step.done) throw new Error("calls follow the answer");
    step = script.next(resultsOf(turn, step.value, after));
  }
  if (!step.done) return { toolCalls: step.value };
  return typeof step.value === "string" ? { text: step.value } : step.value;
}

/** The results of a reply, which must be the one that was given. */
function resultsOf(
  { toolCalls }: WireMessage,
  given: readonly Call[],
  after: readonly WireMessage[],
): Result[] {
  const made = toolCalls.map(({ name, args }) => ({ name, args }));
  if (JSON.stringify(made) !== JSON.stringify(given)) {
    throw new Error(`the history has ${JSON.stringify(made)} in the place of ${JSON.stringify(given)}`);
  }
  return toolCalls.map(({ id }) => {
    const results = after.flatMap(({ toolResults }) => toolResults).filter((result) => result.id === id);
    const [result] = results;
    if (!result || results.length > 1) throw new Error(`${results.length} results of one call`);
    return result;
  });
}

/** Follows a run to its end as a person would: whatever it asks is answered. */
export async function followRun(service: PrincipalRuns, runId: string, task: OracleTask): Promise<RunView> {
  const decided = new Set<string>();
  const look = async (): Promise<RunView> => {
    const view = await service.view("local", runId);
    if (!view) throw new Error("the run is gone");
    for (const approval of view.approvals.filter(
      ({ id, status }) => status === "pending" && !decided.has(id),
    )) {
      decided.add(approval.id);
      const tell = (text: string) => service.tell("local", runId, { text });
      const decision = (await task.person?.(approval, tell)) ?? { type: "approve" };
      await service.decide("local", runId, approval.id, decision, "test");
    }
    return view;
  };
  for await (const { kind } of service.watch("local", runId, { signal: new AbortController().signal })) {
    if (kind === "approval_requested") await look();
  }
  return look();
}
