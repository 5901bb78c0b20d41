import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { type DeepAgentParams, backgroundTasksMiddleware } from "../../../src/agent/agent.ts";
import { type ScriptedReply, type ScriptedRequest, scriptedModel } from "../../support/scripted-model.ts";
import { noteTool } from "../support.ts";

/** A call that starts a task in the background. */
export const start = (description: string, subagent_type = "general-purpose") => ({
  name: "start_async_task",
  args: { description, subagent_type },
});

/** Ids of the background tasks that a conversation started, in their order. */
export const startedIn = ({ messages }: Pick<ScriptedRequest, "messages">): string[] =>
  messages.flatMap((message) =>
    ToolMessage.isInstance(message)
      ? [...message.text.matchAll(/Started background task (\S+)\./g)].map(([, id = ""]) => id)
      : [],
  );

/** Reports of background tasks in a conversation, as the model reads them. */
export const reportsIn = ({ messages }: Pick<ScriptedRequest, "messages">): string[] =>
  messages.flatMap((message) =>
    HumanMessage.isInstance(message) && message.additional_kwargs["lc_source"] === "report"
      ? [message.text]
      : [],
  );

/** What tools answered in a conversation. */
export const resultsIn = ({ messages }: Pick<ScriptedRequest, "messages">): string[] =>
  messages.flatMap((message) => (ToolMessage.isInstance(message) ? [message.text] : []));

export const repliesIn = ({ messages }: Pick<ScriptedRequest, "messages">): number =>
  messages.filter((message) => AIMessage.isInstance(message)).length;

type Reply = (request: ScriptedRequest) => ScriptedReply | Promise<ScriptedReply>;

/** An agent whose main model and background model are told apart by their task. */
export function agentWith(
  main: Reply,
  child: Reply,
  {
    notes = [],
    before,
    ...more
  }: { notes?: string[]; before?: (text: string) => Promise<void> } & Omit<DeepAgentParams, "model"> = {},
): DeepAgentParams & { model: ReturnType<typeof scriptedModel> } {
  const model = scriptedModel((request) => {
    const [task] = request.messages.filter((message) => HumanMessage.isInstance(message));
    return task?.text.startsWith("child") === true ? child(request) : main(request);
  });
  return {
    model,
    tools: [noteTool(notes, before)],
    ...more,
    middleware: [...(more.middleware ?? []), backgroundTasksMiddleware()],
  };
}
