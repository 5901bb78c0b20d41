/** Reports tool calls to those who watch the run, and adds notes for the model to their results. */
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import { defined } from "../../core/defined.ts";
import type { AgentTool, Outcome } from "../contracts/call.ts";
import { showMessages, textOf } from "../messages/messages.ts";
import { REPEATED_NOTE, isRepeated } from "../messages/repeated-calls.ts";
import type { AgentDefinition } from "../langgraph/definition.ts";
import { Command, isCommand } from "../langgraph/internals.ts";
import { type Carried, SPENT } from "../budget/meter.ts";
import { agentPath, emit, meterOf, readState } from "../langgraph/step-of-task.ts";
import { agentSegment, tellReport } from "../langgraph/nested-children.ts";
import { callSummary, resultSummary, toolMessagesOf } from "./tool.ts";

/** Reports that a call begins; `recalled`: that it began before a crash and is not run again. */
export function reportStart(
  { id = "", name, args }: ToolCall,
  config: RunnableConfig,
  recalled: boolean,
): void {
  emit(config, {
    kind: "tool_started",
    agent: agentPath(config),
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
  config: RunnableConfig,
): Outcome {
  const [message] = toolMessagesOf(outcome);
  if (tool?.kind !== "delegate" || !message) return outcome;
  const { subagent_type: name, description } = call.args;
  const segment = agentSegment(call.id ?? "", String(name), String(description));
  tellReport(segment, { text: textOf(message), status: message.status }, config);
  return outcome;
}

/** Reports how a call ended, with the file or the todos that it changed, and returns the graph's update. */
export function reportEnd(
  { tools, channels, limits }: Pick<AgentDefinition, "tools" | "channels" | "limits">,
  { id: callId = "", name, args }: ToolCall,
  outcome: Outcome,
  { config, rejected }: { config: RunnableConfig; rejected?: true | undefined },
): Command {
  const agent = agentPath(config);
  const [message] = toolMessagesOf(outcome);
  const status = message?.status === "error" ? "error" : "success";
  const summary = message ? resultSummary(textOf(message)) : "";
  emit(config, {
    kind: "tool_finished",
    agent,
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
      emit(config, { kind: "file_changed", agent, callId, path, ...change });
    }
    const { todos } = update;
    if (Array.isArray(todos)) emit(config, { kind: "todos", agent, todos });
  }
  const { messages } = readState(config, channels);
  if (message && isRepeated(messages, message)) withNote(outcome, REPEATED_NOTE);
  const meter = meterOf(config, limits);
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
