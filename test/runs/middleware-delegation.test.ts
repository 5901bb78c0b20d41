/** Subagents that middleware starts by `task`, in runs whose process is killed. */
import type { RunnableConfig } from "@langchain/core/runnables";
import { type StructuredToolInterface, tool } from "@langchain/core/tools";
import { createMiddleware } from "langchain";
import { expect, test } from "vitest";
import { z } from "zod";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { scriptedModel } from "../support/scripted-model.ts";
import { approve, databaseFile, follow, note, noteTool, openServer, reach, startRun } from "./support.ts";

/** Its tool `fan` starts a subagent for `a`, and then one for `b`. */
function fanOut() {
  let offered: readonly StructuredToolInterface[] = [];
  const fan = tool(
    async (_args, config: RunnableConfig) => {
      const task = offered.find(({ name }) => name === "task");
      const reports: string[] = [];
      for (const description of ["a", "b"]) {
        const args = { description, subagent_type: "general-purpose" };
        const report = (await task?.invoke(args, config)) as ToolMessage | undefined;
        reports.push(report?.text ?? "task is not offered");
      }
      return reports.join(", ");
    },
    { name: "fan", description: "d", schema: z.object({}) },
  );
  return createMiddleware({
    name: "Fan",
    tools: [fan],
    wrapModelCall: (request, next) => {
      const tools = request.tools as StructuredToolInterface[]; // those of the agent
      if (tools.some(({ name }) => name === "fan")) offered = tools;
      return next(request);
    },
  });
}

/** The agent calls `fan`; each subagent notes its task. The last words are those of the tool. */
const agent = (notes: string[]) => ({
  model: scriptedModel(({ messages }) => {
    const task = messages.find((message) => HumanMessage.isInstance(message))?.text ?? "";
    const last = messages.at(-1);
    if (ToolMessage.isInstance(last)) return { text: last.text };
    return { toolCalls: [task === "go" ? { name: "fan", args: {} } : note(task)] };
  }),
  tools: [noteTool(notes)],
  middleware: [fanOut()],
  interruptOn: { note: true },
});

test("each waits for a person through a kill, and its call is made once", async () => {
  const notes: string[] = [];
  const file = databaseFile();
  // The middleware knows the tools of a turn that it has seen, which the next process does not make again.
  const params = agent(notes);
  let server = openServer(file, params);
  const { id } = await startRun(server.service, "go");
  for (const text of ["a", "b"]) {
    await reach(server.service, id, "input_required");
    await server.service.close();
    server.kill();
    server = openServer(file, params);
    await approve(server.service, id, text);
    if (text === "a") await follow(server.service, id, ({ kind }) => kind === "subagent_finished");
  }
  expect((await reach(server.service, id, "completed")).run.answer).toBe("noted a, noted b");
  expect(notes).toEqual(["a", "b"]);
});
