import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { DynamicStructuredTool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { type AgentMiddleware, createAgent, createMiddleware, humanInTheLoopMiddleware } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { buildAgent, type DeepAgentParams } from "../../../src/agent/agent.ts";
import { assembleDeepAgent, createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { repairHistory } from "../../../src/agent/messages/mend.ts";
import { collect, paused, graphOf, withInternals } from "../../support/run-agent.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

const named = (name: string, answer: string, returnDirect = false): DynamicStructuredTool =>
  new DynamicStructuredTool({
    name,
    description: `answers ${answer}`,
    schema: z.object({}),
    func: async () => answer,
    returnDirect,
  });
const one = named("one", "1");
const calling = (...names: string[]) =>
  scriptedModel(({ call }) =>
    call === 0 ? { toolCalls: names.map((name) => ({ name, args: {} })) } : { text: "end" },
  );
const go = { messages: [new HumanMessage("go")] };
const said = (messages: BaseMessage[]): string[] => repairHistory(messages).map(({ text }) => text);

/** What both agents say to the same. */
async function same(names: string[], tools: DynamicStructuredTool[], middleware: AgentMiddleware[] = []) {
  const theirs = await createAgent({ model: calling(...names), tools, middleware }).invoke(go);
  const ours = await createDeepAgent({ model: calling(...names), tools, middleware }).invoke(go);
  expect(said(ours.messages)).toEqual(said(theirs.messages));
  return said(ours.messages);
}

const late = named("late", "here I am");
const offering = createMiddleware({
  name: "Offering",
  wrapModelCall: (request, next) => next({ ...request, tools: [...request.tools, late] }),
  wrapToolCall: (request, next) =>
    request.toolCall.name === "late" ? next({ ...request, tool: late }) : next(request),
});

describe("a tool of LangChain", () => {
  it("that returns directly ends the run with what it returned", async () => {
    expect(await same(["direct"], [named("direct", "the answer", true)])).toEqual(["go", "", "the answer"]);
  });

  it("that returns directly waits for the others of its reply", async () => {
    const tools = [named("direct", "the answer", true), one];
    expect(await same(["direct", "one"], tools)).toEqual(["go", "", "the answer", "1", "end"]);
  });

  it("that returns directly gives the answer of a run, and the report of a subagent", async () => {
    const direct = named("direct", "the answer", true);
    const agent = buildAgent({ model: calling("direct"), tools: [direct], checkpointer: new MemorySaver() });
    const events = await collect(agent, { kind: "task", task: "go" });
    expect(events.at(-1)).toEqual({ kind: "finished", answer: "the answer" });
    const worker = {
      name: "w",
      description: "d",
      systemPrompt: "p",
      tools: [direct],
      model: calling("direct"),
    };
    const delegating = scriptedModel(({ call }) =>
      call > 0
        ? { text: "end" }
        : { toolCalls: [{ name: "task", args: { description: "d", subagent_type: "w" } }] },
    );
    const { messages } = await createDeepAgent({ subagents: [worker], model: delegating }).invoke(go);
    expect(said(messages)).toEqual(["go", "", "the answer", "end"]);
  });

  it("may be brought by middleware, for a call that it offered itself", async () => {
    expect(await same(["late", "one"], [one], [offering])).toEqual(["go", "", "here I am", "1", "end"]);
  });

  it("may be put in another's place by middleware", async () => {
    const replacing = createMiddleware({
      name: "Replacing",
      wrapToolCall: (request, next) => next({ ...request, tool: named("one", "uno") }),
    });
    expect(await same(["one"], [one], [replacing])).toEqual(["go", "", "uno", "end"]);
  });

  it("that nobody brings is told to the model, and nobody is asked about it", async () => {
    const params: DeepAgentParams = {
      filesystem: { delete: false },
      interruptOn: { delete: true },
      middleware: [offering],
    };
    const { messages } = await createDeepAgent({ model: calling("delete"), ...params }).invoke(go, {
      configurable: { thread_id: "t" },
    });
    expect(said(messages)[2]).toMatch("Error: delete is not a valid tool, try one of [");
  });

  it("that middleware brings is asked about as its gate says, with the arguments it gets", async () => {
    const middleware = [
      createMiddleware({
        name: "Deleting",
        wrapToolCall: (request, next) => next({ ...request, tool: named("delete", "gone") }),
      }),
    ];
    const agent = buildAgent({
      model: calling("delete"),
      filesystem: { delete: false },
      interruptOn: { delete: true },
      middleware,
      checkpointer: new MemorySaver(),
    });
    const [asked] = paused(await collect(agent, { kind: "task", task: "go" }));
    expect(asked?.request.actionRequests[0]).toMatchObject({ name: "delete", args: {} });
    const answers = { [asked?.id ?? ""]: { decisions: [{ type: "approve" as const }] } };
    await collect(agent, { kind: "resume", answers });
    const { values } = await graphOf(agent).getState({ configurable: { thread_id: "t1" } });
    expect(said(values["messages"])[2]).toBe("gone");
  });

  it("is offered to the model as middleware changed it, call by call", async () => {
    const seen: unknown[] = [];
    const telling = createMiddleware({
      name: "Telling",
      wrapModelCall: (request, next) => {
        const told = named("one", `message ${request.messages.length}`);
        return next({ ...request, tools: [told] });
      },
    });
    const model = calling("one");
    const bindTools = model.bindTools.bind(model);
    model.bindTools = (tools, options) => {
      seen.push(...tools.map((offered) => ("description" in offered ? offered.description : "")));
      return bindTools(tools, options);
    };
    await createDeepAgent({ model, tools: [one], middleware: [telling] }).invoke(go);
    expect(seen).toEqual(["answers message 1", "answers message 3"]);
  });
});

describe("the state that middleware of LangChain keeps", () => {
  it("is given to callers, but for what begins with '_'", async () => {
    const keeping = createMiddleware({
      name: "Keeping",
      stateSchema: z.object({ _hidden: z.number().default(1), open: z.number().default(1) }),
      beforeModel: ({ _hidden, open }) => ({ _hidden: _hidden + 1, open: open + _hidden }),
    });
    const checkpointer = new MemorySaver();
    const thread = { configurable: { thread_id: "t" } };
    const agent = createDeepAgent({
      model: calling("one"),
      tools: [one],
      middleware: [keeping],
      checkpointer,
    });
    const state = await agent.invoke(go, thread);
    expect(Object.keys(state).filter((key) => key.startsWith("_"))).toEqual([]);
    expect(state).toHaveProperty("open", 4);
    expect((await agent.getState(thread)).values).toHaveProperty("_hidden", 3);
  });

  it("may be handed back whole: what did not change is not counted again", async () => {
    const echoing = createMiddleware({
      name: "Echoing",
      beforeModel: (state) => ({ ...state }),
      afterModel: (state) => ({ ...state }),
    });
    const checkpointer = new MemorySaver();
    const thread = { configurable: { thread_id: "t" } };
    const worker = { name: "w", description: "d", systemPrompt: "p", model: calling("ls") };
    const agent = assembleDeepAgent({
      model: scriptedModel(({ call }) =>
        call === 0
          ? { toolCalls: [{ name: "task", args: { description: "d", subagent_type: "w" } }] }
          : call < 4
            ? { toolCalls: [{ name: "ls", args: {} }] }
            : { text: "end" },
      ),
      subagents: [worker],
      limits: { tokens: 10_000 },
      middleware: [echoing],
      checkpointer,
    });
    await agent.invoke(go, thread);
    // Two replies of the subagent, of 15 tokens each.
    expect((await withInternals(agent).getState(thread)).values["_spent"]).toMatchObject({ tokens: 30 });
  });

  it("is read by schemas that know nothing of each other", async () => {
    const seen: unknown[] = [];
    const reading = (name: string, key: string) =>
      createMiddleware({
        name,
        contextSchema: z.strictObject({ [key]: z.string() }),
        beforeModel: (_state, { context }) => void seen.push({ ...context }),
      });
    const agent = createDeepAgent({
      model: calling(),
      middleware: [reading("A", "user"), reading("B", "role")],
    });
    await agent.invoke(go, { context: { user: "jane", role: "cook" } });
    expect(seen).toEqual([{ user: "jane" }, { role: "cook" }]);
  });
});

it("LangChain's approvals and interruptOn do not go together, and the error says what to leave out", () => {
  const asking = humanInTheLoopMiddleware({ interruptOn: { one: true } });
  const params = { model: calling(), tools: [one], interruptOn: { one: true } };
  expect(() => createDeepAgent({ ...params, middleware: [asking] })).toThrow("`interruptOn` is one of them");
  const worker = { name: "w", description: "d", systemPrompt: "p", middleware: [asking] };
  expect(() => createDeepAgent({ ...params, subagents: [worker] })).toThrow(
    "set it to `false` for a subagent",
  );
  createDeepAgent({ ...params, subagents: [{ ...worker, interruptOn: false }] });
});
