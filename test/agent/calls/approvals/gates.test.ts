import { HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, interrupt, MemorySaver } from "@langchain/langgraph";
import type { InterruptOnConfig as LangChainGate } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../../../src/agent/build/create-deep-agent.ts";
import type { InterruptOn, InterruptOnConfig } from "../../../../src/agent/layers/human-in-the-loop.ts";
import { type Logger, silentLogger } from "../../../../src/core/logger.ts";
import { paused } from "../../../support/run-agent.ts";
import { scriptedModel } from "../../../support/scripted-model.ts";
import { agentWith, answer, approve, call, edit, go, planned, ran, shownIn, task, texts } from "./asking.ts";

describe("a predicate", () => {
  it.each<[string, () => unknown, boolean]>([
    ["true", () => true, true],
    ["false", () => false, false],
    ["a promise of false", async () => false, false],
    ["nothing", () => undefined, true],
    ["0", () => 0, true],
    [
      "an error",
      () => {
        throw new Error("no");
      },
      true,
    ],
    ["a rejected promise", () => Promise.reject(new Error("no")), true],
  ])("that gives %s", async (_what, when, asks) => {
    const agent = agentWith({ interruptOn: { act: { when: when as () => boolean } } });
    const last = (await go(agent, [call("a")])).at(-1);
    expect(last?.kind).toBe(asks ? "paused" : "finished");
    expect(ran).toEqual(asks ? [] : ["act 1"]);
  });

  it("that changes its mind does not let a call through that somebody was asked about", async () => {
    let asks = true;
    const interruptOn: InterruptOn = { act: { when: () => asks, allowedDecisions: ["approve", "reject"] } };
    const subagents = [{ name: "worker", description: "d", systemPrompt: "p" }];
    const agent = agentWith({ interruptOn, subagents, limits: { subagentDepth: 2 } });
    const deep = task("t", [task("u", [call("c")]), call("d")]);
    const open = paused(await go(agent, [call("a"), call("b"), deep]));
    expect(open.map((one) => shownIn(one)?.toolCallId).sort()).toEqual(["a", "b", "c", "d"]);
    asks = false;
    const by = (id: string) => open.find((one) => shownIn(one)?.toolCallId === id);
    let events = await answer(agent, by("c"), { type: "reject" });
    expect(
      paused(events)
        .map(({ id }) => id)
        .sort(),
    ).toEqual(["a", "b", "d"].map((id) => by(id)?.id).sort());
    for (const id of ["b", "d", "a"]) {
      // What the gate allows holds too.
      expect(paused(await answer(agent, by(id), edit("act", { n: 2 })))).toContainEqual(by(id));
      events = await answer(agent, by(id), { type: "reject" });
    }
    expect(events.at(-1)).toMatchObject({ kind: "finished" });
    expect(ran).toEqual([]);
  });

  it("that changes its mind after a crash does not let an answered call through", async () => {
    let asks = 0;
    const checkpointer = new MemorySaver();
    const params = { checkpointer, interruptOn: { act: { when: () => (asks += 1) === 1 } } };
    const [open] = paused(await go(agentWith(params), [call("a")]));
    const events = await answer(agentWith(params), open, { type: "reject", message: "no" });
    expect(events.at(-1)).toMatchObject({ kind: "finished" });
    expect(ran).toEqual([]);
    expect(await texts(agentWith(params))).toEqual(["no"]);
  });

  it("does not turn what a tool asks itself into an approval", async () => {
    const asking = tool(() => JSON.stringify(interrupt("which?")), {
      name: "asking",
      description: "asks",
      schema: z.object({}),
    });
    const graph = createDeepAgent({
      model: planned(),
      tools: [asking],
      checkpointer: new MemorySaver(),
      interruptOn: { asking: { when: () => false } },
    });
    const thread = { configurable: { thread_id: "t" } };
    const plan = JSON.stringify([{ id: "a", name: "asking", args: {} }]);
    await graph.invoke({ messages: [new HumanMessage(plan)] }, thread);
    const { messages } = await graph.invoke(new Command({ resume: { choice: 2 } }), thread);
    expect(messages.at(-2)?.text).toBe('{"choice":2}');
  });

  it("and a description as LangChain has them are taken as they are", async () => {
    const gate: LangChainGate = {
      allowedDecisions: ["approve", "reject"],
      when: ({ toolCall }) => toolCall.args["n"] > 1,
      description: ({ name, args }) => `${name} of ${String(args["n"])}`,
    };
    const agent = agentWith({ interruptOn: { act: gate } });
    const open = paused(await go(agent, [call("a", 1), call("b", 2)]));
    expect(open.map((one) => shownIn(one)?.description)).toEqual(["act of 2"]);
    expect(ran).toEqual(["act 1"]);
  });
});

describe("a description", () => {
  const warned: string[] = [];
  const log: Logger = { ...silentLogger, warn: (event) => void warned.push(event) };

  it.each<[string, unknown, RegExp]>([
    ["a text", "Mind this.", /^Mind this\.$/],
    ["a function", ({ args }: { args: object }) => `Mind ${JSON.stringify(args)}`, /^Mind \{"n":1\}$/],
    ["megabytes", () => "x".repeat(5_000_000), /^x+\n\[… 4980000 of 5000000 characters not shown …\]\nx+$/],
    ["no text", () => 7, /^Tool execution requires approval\n\nTool: act/],
    ["an empty text", () => "", /^Tool execution requires approval/],
    ["a rejected promise", () => Promise.reject(new Error("no")), /^Tool execution requires approval/],
    [
      "an error",
      () => {
        throw new Error("no");
      },
      /^Tool execution requires approval/,
    ],
  ])("that is %s", async (_what, description, shown) => {
    const gate = { description } as InterruptOnConfig; // also what fits no type
    const agent = agentWith({ interruptOn: { act: gate }, log });
    const [open] = paused(await go(agent, [call("a"), call("b", 2, "other")]));
    expect(shownIn(open)?.description).toMatch(shown);
    expect(shownIn(open)?.description.length).toBeLessThan(21_000);
    expect((await answer(agent, open, approve)).at(-1)).toMatchObject({ kind: "finished" });
    expect(ran).toEqual(["other 2", "act 1"]);
  });

  it("of a preview that fails is that of the arguments, and what failed is logged", async () => {
    expect(warned).toContain("gate_description_failed");
    const broken = {
      name: "broken",
      description: "b",
      kind: "write" as const,
      schema: z.object({ n: z.number() }),
      handle: () => ({ content: "done" }),
      preview: () => Promise.reject(new Error("no")),
    };
    const agent = agentWith({ tools: [broken as never], interruptOn: { broken: true }, log }); // a tool of this project
    const [open] = paused(await go(agent, [call("a", 1, "broken")]));
    expect(shownIn(open)?.description).toContain('"n": 1');
    expect(warned).toContain("preview_failed");
    await answer(agent, open, approve);
    expect(await texts(agent)).toEqual(["done"]);
  });
});

describe("the decisions of a gate", () => {
  it.each([[[]], [["respond"]], [["approve", "aprove"]]])("must be there: %j", (allowedDecisions) => {
    const interruptOn = { act: { allowedDecisions: allowedDecisions as ["approve"] } };
    expect(() => agentWith({ interruptOn })).toThrow("name one or more of approve, edit, reject");
  });

  it("that are not allowed leave the question open, whatever the form of the answer", async () => {
    const agent = agentWith({ interruptOn: { act: { allowedDecisions: ["edit"] } } });
    const [open] = paused(await go(agent, [call("a")]));
    const bad = [
      approve,
      { type: "reject" },
      { type: "respond", message: "x" },
      {},
      edit("act", null),
      edit("act", [1]),
      edit(undefined, { n: 2 }),
    ];
    for (const decision of bad) expect(paused(await answer(agent, open, decision))).toEqual([open]);
    expect(ran).toEqual([]);
    await answer(agent, open, edit("act", { n: 2 }));
    expect(ran).toEqual(["act 2"]);
  });
});

describe("a change of a file that can only fail", () => {
  const edited = (name: string, old: string) => ({
    name: "edit_file",
    args: { file_path: name, old_string: old, new_string: "b" },
  });
  const write = { name: "write_file", args: { file_path: "/new.txt", content: "a" } };

  it.each([
    ["in a file that is missing", [edited("/none.txt", "a")], /^Error: File '\/none.txt' not found/],
    [
      "of text that is missing",
      [edited("/a.txt", "none")],
      /^Error: String not found .*Read the file again/s,
    ],
  ])("%s is answered without asking anybody", async (_what, toolCalls, said) => {
    const agent = createDeepAgent({
      model: scriptedModel(({ call: number }) => (number === 0 ? { toolCalls } : { text: "end" })),
      interruptOn: { edit_file: true, write_file: true },
      checkpointer: new MemorySaver(),
    });
    const config = { configurable: { thread_id: "t" } };
    const files = { "/a.txt": { content: "a", encoding: "utf-8" } };
    const { messages } = await agent.invoke({ messages: [new HumanMessage("go")], files } as never, config);
    expect((await agent.getState(config)).tasks).toEqual([]);
    expect(messages.at(-2)?.text).toMatch(said);
    expect(messages.at(-1)?.text).toBe("end");
  });

  it("is asked about if another call of the reply may make it possible", async () => {
    const toolCalls = [write, edited("/new.txt", "a")];
    const agent = createDeepAgent({
      model: scriptedModel(({ call: number }) => (number === 0 ? { toolCalls } : { text: "end" })),
      interruptOn: { edit_file: true, write_file: true },
      checkpointer: new MemorySaver(),
    });
    const config = { configurable: { thread_id: "t" } };
    const state: unknown = await agent.invoke({ messages: [new HumanMessage("go")] }, config);
    expect(state).toMatchObject({
      __interrupt__: [{ value: { actionRequests: [{ name: "write_file" }, { name: "edit_file" }] } }],
    });
  });
});
