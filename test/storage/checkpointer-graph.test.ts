import { join } from "node:path";
import { HumanMessage } from "@langchain/core/messages";
import {
  DeltaValue,
  END,
  interrupt,
  MessagesDeltaValue,
  Send,
  START,
  StateGraph,
  StateSchema,
  Command,
} from "@langchain/langgraph";
import { type BaseCheckpointSaver, MemorySaver } from "@langchain/langgraph-checkpoint";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createCheckpointer } from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { opened, temporaryFolder } from "./support.ts";

describe("a graph with delta channels", () => {
  const State = new StateSchema({
    messages: MessagesDeltaValue,
    notes: new DeltaValue(z.array(z.string()).default([]), {
      inputSchema: z.array(z.string()),
      reducer: (current: string[], writes: string[][]) => [...current, ...writes.flat()],
      snapshotFrequency: 3,
    }),
    count: z.number().default(0),
  });

  /** Counts to five in steps, tells two branches at once each time, then asks a person. */
  const graph = (checkpointer: BaseCheckpointSaver) =>
    new StateGraph(State)
      .addNode("step", ({ count }) => ({
        count: count + 1,
        messages: [new HumanMessage(`step ${count + 1}`)],
      }))
      .addNode("note", ({ label }: { label: string }) => ({ notes: [label] }))
      .addNode("ask", () => ({ notes: [`answer: ${String(interrupt("go on?"))}`] }))
      .addEdge(START, "step")
      .addConditionalEdges("step", ({ count }) =>
        count % 6 === 0
          ? "ask"
          : [new Send("note", { label: `${count}a` }), new Send("note", { label: `${count}b` })],
      )
      .addEdge("note", "step")
      .addEdge("ask", END)
      .compile({ checkpointer });

  /** Branches of one step are replayed in the order of their task ids, which differ from run to run. */
  const told = ({ messages, notes }: { messages: HumanMessage[]; notes: string[] }) => ({
    messages: messages.map(({ text }) => text),
    notes: notes.toSorted(),
  });

  it("is found again by another connection, at every step, and goes on there", async () => {
    const file = join(temporaryFolder(), "agent.db");
    const config = { configurable: { thread_id: "thread" } };
    const memory = graph(new MemorySaver());
    await memory.invoke({}, config);
    const first = opened(file);
    await graph(createCheckpointer(first)).invoke({}, config);
    first.close();

    const reopened = graph(createCheckpointer(opened(file)));
    const state = await reopened.getState(config);
    expect(told(state.values)).toEqual(told((await memory.getState(config)).values));
    expect(state.values.messages.at(-1).text).toBe("step 6");
    expect(state.tasks[0]?.interrupts[0]?.value).toBe("go on?");

    for (const compiled of [memory, reopened]) {
      const [asking] = (await compiled.getState(config)).tasks;
      await compiled.invoke(new Command({ resume: { [asking?.interrupts[0]?.id ?? ""]: "yes" } }), config);
    }
    expect(told((await reopened.getState(config)).values).notes).toContain("answer: yes");

    const history = async (compiled: typeof memory) => {
      const steps = [];
      for await (const snapshot of compiled.getStateHistory(config)) steps.push(told(snapshot.values));
      return steps;
    };
    const steps = await history(reopened);
    expect(steps).toEqual(await history(memory));
    expect(steps.length).toBeGreaterThan(10);
  });

  it("writes only what a step adds", async () => {
    const database = opened();
    await graph(createCheckpointer(database)).invoke({}, { configurable: { thread_id: "thread" } });
    const repeated = database
      .prepare("SELECT count(*) FROM checkpoints WHERE CAST(checkpoint AS TEXT) LIKE '%step 1%'")
      .pluck()
      .get();
    expect(repeated).toBe(0);
  });
});
