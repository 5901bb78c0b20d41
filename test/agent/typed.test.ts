import { AIMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import {
  Annotation,
  MessagesAnnotation,
  ReducedValue,
  START,
  StateGraph,
  StateSchema,
} from "@langchain/langgraph";
import { createAgent, createMiddleware, modelCallLimitMiddleware } from "langchain";
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../src/index.ts";
import { scriptedModel } from "../support/scripted-model.ts";

const weather = z.object({ city: z.string(), degrees: z.number() });
const answer = { city: "Riga", degrees: -3 };
const input = { messages: [new HumanMessage("go")] };

describe("the type of an agent", () => {
  it("states messages, files, todos, the structured response and the caller's own channels", async () => {
    const model = scriptedModel(({ tools }) => ({ toolCalls: [{ name: tools.at(-1) ?? "", args: answer }] }));
    const typed = createDeepAgent({
      model,
      responseFormat: weather,
      stateSchema: z.object({ visits: z.number().default(0), _seen: z.number().default(0) }),
      contextSchema: z.object({ user: z.string() }),
    });
    const state = await typed.invoke({ ...input, visits: 2 }, { context: { user: "jane" } });
    expectTypeOf(state.structuredResponse).toEqualTypeOf<{ city: string; degrees: number } | undefined>();
    expectTypeOf(state.visits).toEqualTypeOf<number>();
    expectTypeOf(state.todos[0]?.status).toEqualTypeOf<"pending" | "in_progress" | "completed" | undefined>();
    // @ts-expect-error a channel that nobody stated, or one that is private
    expect([state["guests"], state["_seen"]]).toEqual([undefined, undefined]);
    expect(state.visits).toBe(2);
    expect(AIMessage.isInstance(state.messages.at(-1))).toBe(true);
  });

  it("states the channels of middleware, of LangChain's and of this project's", async () => {
    const model = scriptedModel(() => ({ text: "end" }));
    const counting = createMiddleware({
      name: "Counting",
      stateSchema: z.object({ count: z.number().default(0), _private: z.string().default("") }),
      beforeModel: (state) => ({ count: state.count + 1 }),
    });
    const tags = new StateSchema({
      tags: new ReducedValue(
        z.array(z.string()).default(() => []),
        { inputSchema: z.string(), reducer: (all: string[], tag: string) => [...all, tag] },
      ),
    });
    const agent = createDeepAgent({
      model,
      middleware: [counting, { name: "Tags", stateSchema: tags }, modelCallLimitMiddleware({ runLimit: 9 })],
    });
    const state = await agent.invoke({ ...input, count: 4, tags: "a" });
    expectTypeOf(state.count).toEqualTypeOf<number>();
    expectTypeOf(state.tags).toEqualTypeOf<string[]>();
    expect(state).toMatchObject({ count: 5, tags: ["a"] });
    // @ts-expect-error private, and one that nobody stated
    expect([state["_private"], state["guests"]]).toEqual([undefined, undefined]);
    // @ts-expect-error counted in numbers
    await expect(agent.invoke({ ...input, count: "four" })).resolves.toBeDefined();
    expectTypeOf(agent.graph).toEqualTypeOf<typeof agent>();
    expect(agent.graph).toBe(agent);
  });

  it("takes agents and graphs of LangChain and LangGraph as subagents", () => {
    const model = scriptedModel(() => ({ text: "end" }));
    const graph = new StateGraph(MessagesAnnotation).addNode("a", (state) => state).addEdge(START, "a");
    const agent = createDeepAgent({
      model,
      subagents: [
        { name: "agent", description: "d", runnable: createAgent({ model, tools: [] }) },
        { name: "graph", description: "d", runnable: graph.compile() },
        { name: "inner", description: "d", runnable: createDeepAgent({ model }) },
        { name: "bare", description: "d" },
        { name: "blocks", description: "d", systemPrompt: new SystemMessage("p") },
      ],
    });
    expectTypeOf(agent.subagentNames[0]).toEqualTypeOf<
      "agent" | "graph" | "inner" | "bare" | "blocks" | "general-purpose" | undefined
    >();
    expect(agent.subagentNames).toHaveLength(6);
  });

  it("says what the hooks of a middleware take that is written in its place", async () => {
    const seen: number[] = [];
    const agent = createDeepAgent({
      model: scriptedModel(() => ({ text: "end" })),
      middleware: [
        {
          name: "Inline",
          beforeModel: (state) => void seen.push(state.messages.length),
          wrapModelCall: (request, next) => next({ ...request, systemPrompt: `${request.tools.length}` }),
        },
      ],
    });
    await agent.invoke(input);
    expect(seen).toEqual([1]);
  });

  it("states channels of an annotation too", async () => {
    const stateSchema = Annotation.Root({
      seen: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
    });
    const agent = createDeepAgent({ model: scriptedModel(() => ({ text: "end" })), stateSchema });
    const state = await agent.invoke({ ...input, seen: ["a"] });
    expectTypeOf(state.seen).toEqualTypeOf<string[]>();
    expect(state.seen).toEqual(["a"]);
  });

  it("states the names of its subagents", () => {
    const model = scriptedModel(() => ({ text: "end" }));
    const worker = { description: "d", systemPrompt: "p" };
    const agent = createDeepAgent({
      model,
      subagents: [
        { name: "reader", ...worker },
        { name: "writer", ...worker },
      ],
    });
    expectTypeOf(agent.subagentNames[0]).toEqualTypeOf<"reader" | "writer" | "general-purpose" | undefined>();
    expect(agent.subagentNames).toEqual(["general-purpose", "reader", "writer"]);
    const alone = createDeepAgent({ model, generalPurpose: false });
    expectTypeOf(alone.subagentNames[0]).toEqualTypeOf<"general-purpose" | undefined>();
    expect(alone.subagentNames).toEqual([]);
  });
});
