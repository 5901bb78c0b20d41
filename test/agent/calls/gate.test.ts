import { HumanMessage } from "@langchain/core/messages";
import { Command, interrupt, MemorySaver } from "@langchain/langgraph";
import { createAgent, humanInTheLoopMiddleware } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type PendingInterrupt } from "../../../src/agent/agent.ts";
import type { Decision } from "../../../src/tools/request.ts";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import type { Middleware } from "../../../src/agent/contracts/middleware.ts";
import { collect, paused, toolMessages, graphOf, resumeAgentInput } from "../../support/run-agent.ts";
import {
  agentWith,
  answer,
  approve,
  call,
  edit,
  effect,
  go,
  planned,
  ran,
  shownIn,
  task,
  texts,
} from "./approvals/asking.ts";

describe("an edit", () => {
  it("to another tool runs that one, unasked, under the call's id, and wrappers see it", async () => {
    const seen: unknown[] = [];
    const watch: Middleware = {
      name: "Watch",
      wrapToolCall: (request, next) => {
        seen.push([request.toolCall.name, request.tool?.name, request.toolCall.id]);
        return next(request);
      },
    };
    const agent = agentWith({ middleware: [watch], interruptOn: { act: true, other: true } });
    const [open] = paused(await go(agent, [call("a")]));
    const events = await answer(agent, open, edit("other", { n: 5 }));
    expect(events.at(-1)).toMatchObject({ kind: "finished" });
    expect(ran).toEqual(["other 5"]);
    expect(seen).toEqual([["other", "other", "a"]]);
    const [message] = await toolMessages(agent);
    expect(message?.tool_call_id).toBe("a");
    expect(message?.text).toBe("other did 5");
  });

  it("that cannot run is refused to the person, at any depth, and the question stays open", async () => {
    const subagents = [
      { name: "worker", description: "d", systemPrompt: "p", tools: [effect("act"), effect("own")] },
    ];
    const params = { subagents, tools: [effect("act"), effect("other")], limits: { subagentDepth: 2 } };
    const agent = agentWith(params);
    const [open] = paused(await go(agent, [task("t", [task("u", [call("a")])])]));
    const thread = { configurable: { thread_id: "t1" } };
    const resume = (decision: unknown) =>
      graphOf(agent).invoke(new Command({ resume: { [open?.id ?? ""]: { decisions: [decision] } } }), thread);
    await expect(resume(edit("act", { n: "x" }))).rejects.toThrow(/n: .*stays open; answer it again/s);
    await expect(resume(edit("other", { n: 2 }))).rejects.toThrow("other is not a tool of this agent");
    const where = open?.request.agent;
    expect(where?.map(({ callId }) => callId)).toEqual(["t", "u"]);
    expect(agent.checkCall("own", { n: 1 }, where)).toEqual({ ok: true, args: { n: 1 } });
    expect(agent.checkCall("other", { n: 1 }, where)).toMatchObject({ ok: false });
    expect(agent.checkCall("other", { n: 1 })).toMatchObject({ ok: true });
    expect(ran).toEqual([]);
    await answer(agent, open, edit("own", { n: 3 }));
    expect(ran).toEqual(["own 3"]);
  });

  it("has to be of the form that the gate says, also in a subagent", async () => {
    const argsSchema = {
      type: "object",
      additionalProperties: false,
      properties: { n: { type: "number", maximum: 9 } },
    };
    const agent = agentWith({
      subagents: [{ name: "worker", description: "d", systemPrompt: "p" }],
      interruptOn: { act: { argsSchema } },
    });
    const [open] = paused(await go(agent, [task("t", [call("a", 70)])]));
    expect(open?.request.reviewConfigs).toMatchObject([{ argsSchema }]);
    const where = open?.request.agent;
    expect(agent.checkCall("act", { n: 10 }, where)).toEqual({
      ok: false,
      message: "Invalid arguments for act: n: 10 is greater than 9.",
    });
    expect(agent.checkCall("act", { n: 9, m: 1 }, where)).toMatchObject({ ok: false });
    expect(agent.checkCall("other", { n: 10 }, where)).toMatchObject({ ok: true });
    const wrong = graphOf(agent).invoke(
      new Command({ resume: { [open?.id ?? ""]: { decisions: [edit("act", { n: 10 })] } } }),
      { configurable: { thread_id: "t1" } },
    );
    await expect(wrong).rejects.toThrow(/n: 10 is greater than 9\. .*stays open; answer it again/);
    await answer(agent, open, edit("act", { n: 9 }));
    expect(ran).toEqual(["act 9"]);
  });
});

describe("a rejection", () => {
  it.each([
    ["without a message", undefined],
    ["with an empty message", ""],
    ["with a blank message", " \n "],
  ])("%s says what was rejected", async (_what, message) => {
    const agent = agentWith();
    const [open] = paused(await go(agent, [call("a")]));
    await answer(agent, open, { type: "reject", ...(message === undefined ? {} : { message }) });
    expect(await texts(agent)).toEqual(["User rejected the tool call for act with id a"]);
  });

  it("with a message that is no text is no answer", async () => {
    const agent = agentWith();
    const [open] = paused(await go(agent, [call("a")]));
    expect(paused(await answer(agent, open, { type: "reject", message: { a: 1 } }))).toEqual([open]);
  });
});

it("calls wait in the order they were made in, at any depth", async () => {
  const ids = Array.from({ length: 8 }, (_, i) => `call_${i}`);
  const agent = agentWith({ subagents: [{ name: "worker", description: "d", systemPrompt: "p" }] });
  const calls = [
    task(
      "t",
      ids.map((id) => call(`inner_${id}`)),
    ),
    ...ids.map((id) => call(id)),
  ];
  const waiting = paused(await go(agent, calls)).map(({ request }) => request.actionRequests[0]?.toolCallId);
  const own = waiting.filter((id) => id?.startsWith("call_"));
  expect(own).toEqual(ids);
  expect(waiting.filter((id) => !own.includes(id))).toEqual(ids.map((id) => `inner_${id}`));
});

describe("a call", () => {
  it("that runs unasked is asked about when a wrapper makes it one that needs approval", async () => {
    const raise: Middleware = {
      name: "Raise",
      wrapToolCall: (request, next) =>
        next({
          ...request,
          toolCall: { ...request.toolCall, args: { n: Number(request.toolCall.args["n"]) * 10 } },
        }),
    };
    const agent = agentWith({
      middleware: [raise],
      interruptOn: { act: { when: ({ args }) => Number(args["n"]) > 5 } },
    });
    const [open] = paused(await go(agent, [call("a", 1)]));
    expect(shownIn(open)?.args).toEqual({ n: 10 });
    expect(ran).toEqual([]);
    await answer(agent, open, approve);
    expect(ran).toEqual(["act 10"]);
  });

  it.each([[0], [1]])("that a wrapper changes anew needs its own approval, at depth %i", async (depth) => {
    let number = 100;
    const random: Middleware = {
      name: "Random",
      wrapToolCall: (request, next) =>
        request.toolCall.name === "act"
          ? next({ ...request, toolCall: { ...request.toolCall, args: { n: (number += 1) } } })
          : next(request),
    };
    const subagents = [{ name: "worker", description: "d", systemPrompt: "p", middleware: [random] }];
    const agent = agentWith({ middleware: [random], subagents });
    const calls = [call("a"), call("b")];
    let [first, second] = paused(await go(agent, depth === 0 ? calls : [task("t", calls)]));
    const open = paused(await answer(agent, first, approve));
    const changed = open.find(({ id }) => id !== second?.id);
    expect(shownIn(changed)?.args["n"]).toBe(101);
    // Another answer starts the waiting call over, and so does its own.
    [second, first] = [changed, second];
    await answer(agent, first, { type: "reject" });
    const events = await answer(agent, second, approve);
    expect(events.at(-1)).toMatchObject({ kind: "finished" });
    expect(ran).toEqual([]);
    if (depth === 0) expect((await texts(agent))[0]).toMatch(/^Error: act is no longer the call/);
  });

  it("may be stopped by middleware of the user beside and after an approval", async () => {
    const asking: Middleware = {
      name: "Asking",
      wrapToolCall: (request, next) => {
        const said: unknown = interrupt(`middleware asks about ${request.toolCall.id}`);
        return next({ ...request, toolCall: { ...request.toolCall, args: { n: said } } });
      },
    };
    ran.length = 0;
    const graph = createDeepAgent({
      model: planned(),
      tools: [effect("act"), effect("other")],
      interruptOn: { act: { when: ({ args }) => args["n"] === 1 } },
      checkpointer: new MemorySaver(),
      middleware: [asking],
    });
    const thread = { configurable: { thread_id: "t" } };
    const waiting = z.object({ __interrupt__: z.array(z.object({ id: z.string(), value: z.unknown() })) });
    const openIn = (state: unknown) => waiting.parse(state).__interrupt__;
    const plan = JSON.stringify([call("a"), call("b", 2, "other")]);
    const first = openIn(await graph.invoke({ messages: [new HumanMessage(plan)] }, thread));
    const [gated, own] = [
      first.find(({ value }) => typeof value === "object"),
      first.find(({ value }) => typeof value === "string"),
    ];
    expect(own?.value).toBe("middleware asks about b");
    const then = openIn(
      await graph.invoke(new Command({ resume: { [gated?.id ?? ""]: { decisions: [approve] } } }), thread),
    );
    expect(then.map(({ value }) => value).sort()).toEqual([
      "middleware asks about a",
      "middleware asks about b",
    ]);
    // From LangGraph 1.7 on, the second question of a task has an id of its own.
    const second = then.find(({ value }) => value === "middleware asks about a");
    await graph.invoke(new Command({ resume: { [own?.id ?? ""]: 7 } }), thread);
    expect(ran).toEqual(["other 7"]);
    const { messages } = await graph.invoke(new Command({ resume: { [second?.id ?? ""]: 8 } }), thread);
    expect(ran).toEqual(["other 7", "act 8"]);
    expect(messages.at(-1)?.text).toBe("end");
  });

  it("of a fork is asked about, and approving the delegation approves nothing of it", async () => {
    const subagents = [{ name: "twin", description: "d", systemPrompt: "p", mode: "fork" as const }];
    const agent = agentWith({ subagents, interruptOn: { act: true, task: true } });
    const deep = [call("a"), call("b", 2)];
    const delegations = paused(await go(agent, [task("t", deep, "twin"), task("u", [call("c", 3)], "twin")]));
    expect(delegations.map((one) => shownIn(one)?.name)).toEqual(["task", "task"]);
    let open: PendingInterrupt[] = [];
    for (const one of delegations) open = paused(await answer(agent, one, approve));
    const by = (id: string) => open.find((one) => shownIn(one)?.toolCallId === id);
    expect(
      open
        .map(({ request }) => [shownIn({ id: "", request })?.toolCallId, request.agent?.[0]?.callId])
        .sort(),
    ).toEqual([
      ["a", "t"],
      ["b", "t"],
      ["c", "u"],
    ]);
    await answer(agent, by("c"), edit("act", { n: 30 }));
    await answer(agent, by("b"), { type: "reject" });
    const events = await answer(agent, by("a"), approve);
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "end" });
    expect(ran).toEqual(["act 30", "act 1"]);
  });

  it("of a foreign agent is asked about as that agent asks", async () => {
    const middleware = [humanInTheLoopMiddleware({ interruptOn: { act: true, other: true } })];
    ran.length = 0;
    const foreign = createAgent({ model: planned(), tools: [effect("act"), effect("other")], middleware });
    const agent = agentWith({
      subagents: [{ name: "foreign", description: "d", runnable: foreign as never }], // LangChain's own graph
      tools: [],
      interruptOn: {},
    });
    const [open] = paused(await go(agent, [task("t", [call("a"), call("b", 2, "other")], "foreign")]));
    expect(open?.request.actionRequests.map(({ name }) => name)).toEqual(["act", "other"]);
    expect(paused(await answer(agent, open, approve))).toHaveLength(1);
    const decisions = [edit("act", { n: 4 }), approve] as Decision[];
    const events = await collect(agent, resumeAgentInput({ [open?.id ?? ""]: { decisions } }));
    expect(events.at(-1)).toMatchObject({ kind: "finished" });
    expect(ran.sort()).toEqual(["act 4", "other 2"]);
  });
});
