/** Reports tool calls to those who watch the run, and adds notes for the model to their results. */
import type { BaseMessage } from "@langchain/core/messages";
import type { Step } from "../contracts/step.ts";
import type { ToolCall } from "@langchain/core/messages/tool";
import { defined } from "../../core/defined.ts";
import type { AgentTool, Outcome } from "../contracts/call.ts";
import { showMessages, textOf } from "../messages/messages.ts";
import { REPEATED_NOTE, isRepeated } from "../messages/repeated-calls.ts";
import type { AgentDefinition } from "../langgraph/definition.ts";
import { Command, isCommand } from "../langgraph/internals.ts";
import { type Carried, type Meter, SPENT } from "../budget/meter.ts";
import { agentSegment, tellReport } from "../step/child-events.ts";
import { toolMessagesOf } from "./tool.ts";
import { callSummary, resultSummary } from "./summaries.ts";

/** Reports that a call begins; `recalled`: that it began before a crash and is not run again. */
export function reportStart({ id = "", name, args }: ToolCall, step: Step, recalled: boolean): void {
  step.tell({
    kind: "tool_started",
    callId: id,
    tool: name,
    summary: callSummary(name, args),
    ...(recalled ? { recalled: true } : {}),
  });
}

/** Reports the end of a subagent that an earlier process had started: it does not work any more. Returns `outcome`. */
export function reportRecalled(
  outcome: Outcome,
  call: ToolCall,
  tool: AgentTool | undefined,
  step: Step,
): Outcome {
  const [message] = toolMessagesOf(outcome);
  if (tool?.kind !== "delegate" || !message) return outcome;
  const { subagent_type: name, description } = call.args;
  const segment = agentSegment(call.id ?? "", String(name), String(description));
  tellReport(segment, { text: textOf(message), status: message.status }, step);
  return outcome;
}

/** The step that a call ends in. `rejected`: a person decided against it. */
interface Ending {
  step: Step;
  meter: Meter;
  messages: readonly BaseMessage[];
  rejected?: true | undefined;
}

/** Reports how a call ended, with the file or the todos that it changed, and returns the graph's update. */
export function reportEnd(
  { tools }: Pick<AgentDefinition, "tools">,
  { id: callId = "", name, args }: ToolCall,
  outcome: Outcome,
  { step, meter, messages, rejected }: Ending,
): Command {
  const [message] = toolMessagesOf(outcome);
  const status = message?.status === "error" ? "error" : "success";
  const summary = message ? resultSummary(textOf(message)) : "";
  step.tell({
    kind: "tool_finished",
    callId,
    tool: name,
    status,
    summary,
    ...defined({ rejected }),
  });
  const command = isCommand(outcome) ? outcome : new Command({ update: { messages: [outcome] } });
  // Only LangChain's tools of other authors return a list of writes.
  const update: Record<string, unknown> = Array.isArray(command.update) ? {} : { ...command.update };
  if (status === "success") {
    const tool = tools.get(name);
    const path = tool?.kind === "write" ? tool.pathOf(args) : undefined;
    if (path) {
      const change = tool?.changeOf?.(args, message?.artifact);
      step.tell({ kind: "file_changed", callId, path, ...change });
    }
    const { todos } = update;
    if (Array.isArray(todos)) step.tell({ kind: "todos", todos });
  }
  if (message && isRepeated(messages, message)) withNote(outcome, REPEATED_NOTE);
  // The state keeps the time at work where a limit needs it, beside what a subagent's report says it used.
  if (meter.remainingMs !== undefined && !Array.isArray(command.update)) {
    const carried = meter.carried(messages);
    const spent = update[SPENT] as Partial<Carried> | undefined; // our channel
    command.update = { ...update, [SPENT]: { ...carried, ...spent } };
  }
  return showMessages(command);
}

/** Tells the model that a person changed the call. */
export const noteEdit = (outcome: Outcome, { name, args }: ToolCall): Outcome =>
  withNote(outcome, `[A person changed this call before it ran. It ran as ${name} ${JSON.stringify(args)}]`);

/** Tells the model that the result is older than its writes in the same reply, which still wait. */
export function noteOpenWrites(outcome: Outcome, open: readonly ToolCall[]): Outcome {
  if (open.length === 0) return outcome;
  const names = open.map(({ name }) => name).join(", ");
  return withNote(outcome, `[Result from before ${names} of the same reply, which waits for a person]`);
}

function withNote(outcome: Outcome, note: string): Outcome {
  const [message] = toolMessagesOf(outcome);
  if (!message) return outcome;
  if (typeof message.content === "string") message.content = `${note}\n${message.content}`;
  else message.content = [{ type: "text", text: note }, ...message.content];
  return outcome;
}
