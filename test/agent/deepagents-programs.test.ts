import { HumanMessage } from "@langchain/core/messages";
import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { LangChainTracer } from "@langchain/core/tracers/tracer_langchain";
import { tool } from "@langchain/core/tools";
import { Annotation, END, InMemoryStore, START, StateGraph, StateSchema } from "@langchain/langgraph";
import { SystemMessage, todoListMiddleware } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../src/agent/build/create-deep-agent.ts";
import type { DeepAgentParams } from "../../src/agent/build/params.ts";
import { BASE_PROMPT } from "../../src/agent/messages/prompts.ts";
import type { FileData } from "../../src/backends/backend.ts";
import { CompositeBackend } from "../../src/backends/composite/composite.ts";
import { StateBackend } from "../../src/backends/stores/state.ts";
import { StoreBackend } from "../../src/backends/stores/langgraph-store.ts";
import { createLogger } from "../../src/core/logger.ts";
import { callingOnce, scriptedModel } from "../support/scripted-model.ts";

const go = { messages: [new HumanMessage("go")] };

type TracingClient = NonNullable<NonNullable<ConstructorParameters<typeof LangChainTracer>[0]>["client"]>;

/** What the model is told first. */
async function systemOf(params: DeepAgentParams): Promise<string> {
  const model = scriptedModel(() => ({ text: "end" }));
  await createDeepAgent({ ...params, model }).invoke(go);
  return model.requests[0]?.messages[0]?.text ?? "";
}

describe("a program written for deepagents", () => {
  it("puts LangChain's planning in the place of the built-in one", async () => {
    const todos = [{ content: "one", status: "in_progress" as const }];
    const model = callingOnce({ name: "write_todos", args: { todos } });
    const agent = createDeepAgent({
      model,
      middleware: [todoListMiddleware({ systemPrompt: "Plan ahead." })],
    });
    expect((await agent.invoke(go)).todos).toEqual(todos);
    expect(model.requests[0]?.messages[0]?.text).toContain("Plan ahead.");
    expect(model.requests[0]?.messages[0]?.text).not.toContain("## Planning");
  });

  it("says what stands where in the system prompt", async () => {
    expect(await systemOf({ systemPrompt: { prefix: "First.", suffix: "Last." } })).toContain(
      `First.\n\n${BASE_PROMPT}\n\nLast.`,
    );
    const own = await systemOf({ systemPrompt: { base: new SystemMessage("Mine."), suffix: "Last." } });
    expect(own).toMatch(/^Mine\.\n\nLast\.\n\n## Planning/);
    const none = await systemOf({ systemPrompt: { prefix: null, base: null } });
    expect(none).toMatch(/^## Planning/);
    const misspelt = { sufix: "x" } as object;
    expect(() => createDeepAgent({ systemPrompt: misspelt })).toThrow(
      "`systemPrompt` has no part 'sufix'; its parts are prefix, base, suffix.",
    );
  });

  it("tells words of the model from results of tools by the names of nodes", async () => {
    const model = callingOnce({ name: "ls", args: {} });
    const agent = createDeepAgent({ model });
    const updates: string[] = [];
    for await (const update of await agent.stream(go, { streamMode: "updates" }))
      updates.push(...Object.keys(update));
    expect(updates).toEqual(["model_request", "tools", "model_request"]);
    const nodes = new Set<unknown>();
    for await (const [, metadata] of await createDeepAgent({
      model: scriptedModel(() => ({ text: "end" })),
    }).stream(go, { streamMode: "messages" })) {
      nodes.add(metadata["langgraph_node"]);
    }
    expect([...nodes]).toEqual(["model_request"]);
  });

  it("finds in LangSmith which agent is the root and which are subagents", async () => {
    const told: unknown[] = [];
    const seen = BaseCallbackHandler.fromMethods({
      handleChainStart: (_chain, _inputs, _run, _parent, _tags, metadata) =>
        void told.push(metadata?.["ls_agent_type"]),
    });
    const posted: Array<{ name: string; type: unknown }> = [];
    const client: TracingClient = {
      createRun: async ({ name, extra }) => {
        posted.push({
          name,
          type: (extra as { metadata?: Record<string, unknown> }).metadata?.["ls_agent_type"],
        });
      },
      updateRun: async () => undefined,
    };
    const model = scriptedModel(({ messages }) => {
      if (messages.some(({ text, type }) => type === "human" && text === "look")) return { text: "seen" };
      if (messages.some(({ type }) => type === "tool")) return { text: "end" };
      return {
        toolCalls: [{ name: "task", args: { subagent_type: "general-purpose", description: "look" } }],
      };
    });
    const tracer = new LangChainTracer({ client });
    await createDeepAgent({ model, name: "main" }).invoke(go, { callbacks: [tracer, seen] });
    await expect.poll(() => posted.find(({ name }) => name === "general-purpose")?.type).toBe("subagent");
    expect(posted.find(({ name }) => name === "main")?.type).toBe("root");
    expect(told.filter((type) => type !== undefined)).toEqual([]);
  });
});

const note = (backend: StateBackend | StoreBackend | CompositeBackend, path = "/note.md") =>
  tool(
    async () => {
      const seen = await backend.ls("/");
      const { error } = await backend.write(path, "noted");
      return error ?? `noted beside ${seen.files?.map((file) => file.path).join(" ")}`;
    },
    { name: "note", description: "d", schema: z.object({}) },
  );

const calls = (...names: string[]) =>
  scriptedModel(({ call }) => {
    const name = names[call];
    if (name === undefined) return { text: "end" };
    const args = name === "write_file" ? { file_path: "/first.md", content: "first" } : {};
    return { toolCalls: [{ name, args }] };
  });

it("a subagent in the mode `handoff` sees its task only", async () => {
  const model = scriptedModel(({ messages }) => {
    const texts = messages.filter(({ type }) => type === "human").map(({ text }) => text);
    if (texts.includes("look")) return { text: texts.join() };
    if (messages.some(({ type }) => type === "tool")) return { text: "end" };
    return { toolCalls: [{ name: "task", args: { subagent_type: "worker", description: "look" } }] };
  });
  const worker = { name: "worker", description: "d", mode: "handoff" } as const;
  const { messages } = await createDeepAgent({ model, subagents: [worker] }).invoke(go);
  expect(messages.find(({ type }) => type === "tool")?.text).toBe("look");
});

describe("a backend inside a tool or node", () => {
  it("has the files of the thread that calls it, and changes them", async () => {
    const agent = createDeepAgent({
      model: calls("write_file", "note", "ls"),
      tools: [note(new StateBackend())],
    });
    const { messages, files } = await agent.invoke(go);
    const answers = messages.filter(({ type }) => type === "tool").map(({ text }) => text);
    expect(answers.slice(1)).toEqual(["noted beside /first.md", expect.stringContaining("/note.md")]);
    expect(Object.keys(files).sort()).toEqual(["/first.md", "/note.md"]);
  });

  it("keeps its place in a tree of mounts", async () => {
    const store = new InMemoryStore();
    const tree = new CompositeBackend(new StateBackend(), {
      "/memories/": new StoreBackend(),
      "/drafts/": new StateBackend(),
    });
    const keep = tool(async () => String((await tree.write("/memories/kept.md", "kept")).error), {
      name: "keep",
      description: "d",
      schema: z.object({}),
    });
    const agent = createDeepAgent({
      model: calls("note", "keep"),
      store,
      tools: [note(tree, "/drafts/note.md"), keep],
    });
    const { files } = await agent.invoke(go);
    expect(Object.keys(files)).toEqual(["/drafts/note.md"]);
    expect(await store.get(["filesystem"], "/kept.md")).not.toBeNull();
  });

  it("works on any graph that has files in its state, and with that graph's store", async () => {
    const State = Annotation.Root({
      files: Annotation<Record<string, FileData>>({
        reducer: (a, b) => ({ ...a, ...b }),
        default: () => ({}),
      }),
      seen: Annotation<string[]>(),
    });
    const store = new InMemoryStore();
    const files = new StateBackend();
    const graph = new StateGraph(State)
      .addNode("write", async () => {
        for (const change of [files.write("/a.md", "one"), files.edit("/a.md", "one", "two")])
          expect(change).not.toHaveProperty("filesUpdate");
        await new StoreBackend().write("/kept.md", "kept");
        return {};
      })
      .addNode("read", () => ({ seen: [String(files.read("/a.md").content)] }))
      .addEdge(START, "write")
      .addEdge("write", "read")
      .addEdge("read", END)
      .compile({ store });
    const result = await graph.invoke({});
    expect(result.seen).toEqual(["two"]);
    expect(result.files["/a.md"]).toMatchObject({ content: "two" });
    expect(await store.get(["filesystem"], "/kept.md")).not.toBeNull();
    expect(files.read("/a.md").code).toBe("unsupported");
  });
});

describe("a namespace that is made for each run", () => {
  const perUser = (
    namespace: (given: { state?: unknown; config?: unknown; assistantId?: string }) => unknown[],
  ) => {
    const store = new InMemoryStore();
    const lines: string[] = [];
    const agent = createDeepAgent({
      model: calls("write_file"),
      log: createLogger("warn", (line) => void lines.push(line)),
      store,
      stateSchema: new StateSchema({ user: z.string().optional() }),
      backend: new StoreBackend({ namespace: (given) => namespace(given) as string[] }),
    });
    return { store, agent, lines };
  };

  it("is told of the state, the configuration and the assistant", async () => {
    const { store, agent } = perUser(({ state, config, assistantId }) => [
      (state as { user: string }).user,
      (config as { configurable: { team: string } }).configurable.team,
      String(assistantId),
    ]);
    await agent.invoke(
      { ...go, user: "ann" },
      { configurable: { team: "red" }, metadata: { assistant_id: "helper" } },
    );
    expect(await store.get(["ann", "red", "helper"], "/first.md")).not.toBeNull();
  });

  it("is refused when a part has no value, because users would share files", async () => {
    const { store, agent, lines } = perUser(({ state }) => ["users", (state as { user?: string }).user]);
    const { messages } = await agent.invoke(go);
    expect(messages.find(({ type }) => type === "tool")?.text).toMatch(/^Error: /);
    expect(lines.join("")).toContain("Part 2 of the store namespace is undefined");
    expect(await store.search([])).toEqual([]);
    expect(() => new StoreBackend({ namespace: ["a", undefined as never] })).toThrow("Part 2");
  });
});
