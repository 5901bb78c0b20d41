import { AIMessage } from "@langchain/core/messages";
import { RunnableLambda } from "@langchain/core/runnables";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import type { CompiledRunnable } from "../../src/agent/build/params.ts";
import { deferred } from "../support/harness-deferred.ts";
import { calling, connect, databaseFile, follow, losing, openServer, reach, startRun } from "./support.ts";

const never = () => new Promise<never>(() => {});

describe("a task of a subagent that was not built here", () => {
  const task = { name: "task", args: { description: "work", subagent_type: "foreign" } };
  const graphThat = (act: () => Promise<string>) =>
    new StateGraph(MessagesAnnotation)
      .addNode("act", async () => ({ messages: [new AIMessage(await act())] }))
      .addNode("report", ({ messages }) => ({ messages: [new AIMessage(`I ${messages.at(-1)?.text}`)] }))
      .addEdge(START, "act")
      .addEdge("act", "report")
      .addEdge("report", END)
      .compile();
  const functionThat = (act: () => Promise<string>) =>
    RunnableLambda.from(async () => ({ messages: [new AIMessage(`I ${await act()}`)] }));
  const subagent = (runnable: CompiledRunnable, isRepeatable = false) => ({
    model: calling(task),
    subagents: [{ name: "foreign", description: "d", runnable, isRepeatable }],
  });

  test.each([
    ["a graph", graphThat],
    ["a function", functionThat],
  ])("%s, at work when the server died, is not begun again: the model is told", async (_what, make) => {
    const file = databaseFile();
    const acts: string[] = [];
    const atWork = deferred();
    const first = make(() => {
      acts.push("first");
      atWork.resolve();
      return never();
    });
    const second = make(async () => {
      acts.push("second");
      return "did it";
    });
    const died = openServer(file, subagent(first));
    const run = await startRun(died.service, "go");
    await atWork.promise;
    await follow(died.service, run.id, (event) => event.kind === "subagent_started");
    died.kill();
    const next = openServer(file, subagent(second));
    const { run: ended, subagents } = await reach(next.service, run.id, "completed");
    expect(ended.answer).toMatch(/^Error: The server stopped while task was at work.*unknown/);
    expect(acts).toEqual(["first"]);
    expect(subagents).toMatchObject([{ name: "foreign", status: "failed" }]);
  });

  test("that had ended gives its stored report", async () => {
    const file = databaseFile();
    const acts: string[] = [];
    const act = async () => `did it ${acts.push("act")}`;
    const checkpointer = losing(connect(file));
    const died = openServer(file, { ...subagent(graphThat(act)), checkpointer });
    const run = await startRun(died.service, "go");
    await follow(died.service, run.id, (event) => event.kind === "tool_finished");
    died.kill();
    const next = openServer(file, subagent(graphThat(act)));
    expect((await reach(next.service, run.id, "completed")).run.answer).toBe("I did it 1");
    expect(acts).toHaveLength(1);
  });

  test("is begun again where that is allowed", async () => {
    const file = databaseFile();
    const atWork = deferred();
    const hanging = graphThat(() => {
      atWork.resolve();
      return never();
    });
    const died = openServer(file, subagent(hanging, true));
    const run = await startRun(died.service, "go");
    await atWork.promise;
    died.kill();
    const next = openServer(
      file,
      subagent(
        graphThat(async () => "did it"),
        true,
      ),
    );
    expect((await reach(next.service, run.id, "completed")).run.answer).toBe("I did it");
  });
});
