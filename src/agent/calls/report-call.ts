/** Reports calls to those who watch the run, and adds notes for the model to their results. */
import { ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import { defined } from "../../core/unknown.ts";
import { headOf, oneLine } from "../../core/text.ts";
import type { AgentTool, CallResult, Step } from "../contracts/middleware.ts";
import { beforeReply, textIn } from "../messages/messages.ts";
import { failuresNote, repeatedNote } from "../messages/repeated-calls.ts";
import { agentSegment, tellReport } from "../step/child-events.ts";
import type { CallStep } from "./call-step.ts";
import { writtenPath } from "./effects.ts";

/** Reports that a call begins; `recalled`: that it began before a crash and is not run again. */
export function reportStart(
  { id = "", name, args }: ToolCall,
  { scope: { step }, inner }: CallStep,
  recalled: boolean,
): void {
  const facts = { callId: id, tool: name, summary: callSummary(name, args) };
  const { outer: within } = inner ?? {};
  step.tell({ kind: "tool_started", ...facts, ...defined({ within }), ...(recalled && { recalled }) });
}

/** Reports the end of a subagent that an earlier process had started: it does not work any more. */
export function reportRecalled(
  { id = "", args }: ToolCall,
  { content, status }: CallResult,
  tool: AgentTool | undefined,
  step: Step,
): void {
  if (tool?.kind !== "delegate") return;
  const segment = agentSegment(id, String(args["subagent_type"]), String(args["description"]));
  tellReport(segment, { text: textIn(content), status }, step);
}

export interface EndedCall {
  /** The call as it ran: a person may have changed it. */
  readonly call: ToolCall;
  readonly result: CallResult;
  /** A person decided against it. */
  readonly rejected?: true | undefined;
  /** A person changed it before it ran. */
  readonly edited?: true | undefined;
}

/** Reports the end of a call, with the file or the todos that it changed. Returns the result, with a note if it repeats. */
export function reportEnd(
  { call, result, rejected }: EndedCall,
  { agent, scope, inner }: CallStep,
): CallResult {
  const { id: callId = "", name, args } = call;
  const { content, status = "success" } = result;
  const { step, state } = scope;
  const summary = resultSummary(textIn(content));
  const source = rejected ? undefined : agent.callRules?.untrustedSource(name, args);
  step.tell({ kind: "tool_finished", callId, tool: name, status, summary, ...defined({ rejected, source }) });
  if (status === "success") {
    const tool = agent.tools.get(name);
    const path = writtenPath(tool, args);
    if (path) step.tell({ kind: "file_changed", callId, path, ...tool?.changeOf?.(args, result.artifact) });
    const { todos } = result.update ?? {};
    if (Array.isArray(todos)) step.tell({ kind: "todos", todos });
  }
  if (inner) return result;
  const message = new ToolMessage({ content, tool_call_id: callId, status });
  const repeated = repeatedNote(state.messages, message);
  const isTold = repeated !== undefined || !agent.tellsFailures || rejected;
  const note = isTold ? repeated : failuresNote(beforeReply(state.messages, callId), call, message);
  return note === undefined ? result : withNote(result, note);
}

/** Adds a note that the result is older than writes in the same reply, which still wait. */
export function noteOpenWrites(result: CallResult, open: readonly ToolCall[]): CallResult {
  if (open.length === 0) return result;
  const names = open.map(({ name }) => name).join(", ");
  return withNote(result, `[Result from before ${names} of the same reply, which waits for a person]`);
}

const withNote = ({ content, ...result }: CallResult, note: string): CallResult => ({
  ...result,
  content: typeof content === "string" ? `${note}\n${content}` : [{ type: "text", text: note }, ...content],
});

const SUMMARY_LIMIT = 160;

/** One line for people: the tool and its main argument, such as `grep "TODO" in /workspace/`. */
export function callSummary(name: string, args: Readonly<Record<string, unknown>>): string {
  if (name === "write_todos") return "write_todos";
  if (name === "grep" || name === "glob") {
    const where = typeof args["path"] === "string" ? ` in ${args["path"]}` : "";
    return oneLine(`${name} ${JSON.stringify(args["pattern"] ?? "")}${where}`, SUMMARY_LIMIT);
  }
  const mostTelling = ["file_path", "path", "pattern", "command", "description", "query", "url"];
  const telling = mostTelling.map((key) => args[key]).find((value) => typeof value === "string");
  return oneLine(typeof telling === "string" ? `${name} ${telling}` : name, SUMMARY_LIMIT);
}

/** The first meaningful line of a result, for people: no heading, fence or bracket alone. */
export function resultSummary(text: string): string {
  const lines = headOf(text.trimStart(), 4000).split("\n");
  const telling = lines.find(
    (line) => /[\p{L}\p{N}]/u.test(line) && !/^\s*(?:#|`{3}|~{3}|<[^<>]*>\s*$)/.test(line),
  );
  return oneLine(telling ?? lines[0] ?? "", SUMMARY_LIMIT);
}
