import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { InMemoryStore, MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import {
  cutIndex,
  defaultLimits,
  exceedsTrigger,
  ESTIMATE,
} from "../../../src/agent/compaction/compacted-view.ts";
import { StoreBackend } from "../../../src/backends/stores/langgraph-store.ts";
import { collect, graphOf } from "../../support/run-agent.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

const isSummarizer = (messages: readonly BaseMessage[]): boolean =>
  messages[0]?.text.startsWith("You get the beginning of a conversation") ?? false;

describe("what the model sees of a long conversation", () => {
  it("begins at 85 % of a known window and keeps 10 %, else at 170,000 tokens with 6 messages", () => {
    for (const [window, trigger] of [
      [100_000, 85_000],
      [undefined, 170_000],
    ] as const) {
      const limits = defaultLimits(window);
      expect([exceedsTrigger(limits, trigger - 1, 500), exceedsTrigger(limits, trigger, 1)]).toEqual([
        false,
        true,
      ]);
    }
    const messages = Array.from({ length: 40 }, () => new HumanMessage("x".repeat(4000)));
    expect(messages.length - cutIndex(messages, defaultLimits(100_000))).toBe(10);
    expect(messages.length - cutIndex(messages, defaultLimits(undefined))).toBe(6);
  });

  it("keeps the todo list in view", async () => {
    const todos = [{ content: "measure twice", status: "in_progress" }];
    const model = scriptedModel(({ messages, call }) => {
      if (isSummarizer(messages)) return { text: "SUMMARY" };
      if (call === 0) return { toolCalls: [{ name: "write_todos", args: { todos } }] };
      return call < 4 ? { toolCalls: [{ name: "ls", args: {} }] } : { text: "end" };
    });
    const summarization = { trigger: { messages: 5 }, keep: { messages: 2 } };
    const agent = buildAgent({ checkpointer: new MemorySaver(), model, summarization });
    await collect(agent, { kind: "task", task: "go" });
    expect(model.requests.at(-1)?.messages[1]?.text).toMatch(
      /SUMMARY\n\nMessages of the person, word for word:\n\n<message>\ngo\n<\/message>\n\nTodo list at this point:\n- \[in_progress\] measure twice$/,
    );
  });

  it("is saved once, also when the process ends between saving and the summary", async () => {
    const store = new InMemoryStore();
    const checkpointer = new MemorySaver();
    const summarization = { trigger: { messages: 5 }, keep: { messages: 2 } };
    const dying = new AbortController();
    const agentOf = (summarized: () => { text: string }) =>
      createDeepAgent({
        model: scriptedModel(({ messages }) => {
          if (isSummarizer(messages)) return summarized();
          return messages.some(({ text }) => text.includes("SUMMARY"))
            ? { text: "end" }
            : { text: "working", toolCalls: [{ name: "ls", args: {} }] };
        }),
        checkpointer,
        summarization,
        backend: new StoreBackend({ store, namespace: ["kept"] }),
      });
    const thread = { configurable: { thread_id: "t1" } };
    const first = agentOf(() => {
      dying.abort();
      return { text: "never taken" };
    });
    const input = { messages: [new HumanMessage("the one task")] };
    await expect(first.invoke(input, { ...thread, signal: dying.signal })).rejects.toThrow();
    const saved = async () => {
      const [item, ...others] = await store.search(["kept"]);
      expect(others).toEqual([]);
      return String(item?.value["content"]);
    };
    const before = await saved();
    expect(before).toContain("the one task");
    let asked = 0;
    const second = agentOf(() => ({ text: `SUMMARY ${(asked += 1)}` }));
    await second.invoke(null, thread);
    expect(asked).toBe(1);
    expect(await saved()).toBe(before);
    expect(before.split("the one task")).toHaveLength(2);
  });

  it("shortens old arguments first, and does not summarize when that is enough", async () => {
    const content = "x".repeat(4000);
    const writing = () =>
      scriptedModel(({ call }) =>
        call < 6
          ? { toolCalls: [{ name: "write_file", args: { file_path: `/${call}.md`, content } }] }
          : { text: "end" },
      );
    const model = writing();
    const plain = buildAgent({ checkpointer: new MemorySaver(), model, summarization: false });
    await collect(plain, { kind: "task", task: "go" });
    const size = (request: (typeof model.requests)[number] | undefined) =>
      (request?.messages ?? []).reduce((sum, message) => sum + ESTIMATE.of(message), 0);
    const whole = size(model.requests.at(-1));
    const short = writing();
    const summarization = { trigger: { tokens: whole }, keep: { messages: 2 } };
    const agent = buildAgent({ checkpointer: new MemorySaver(), model: short, summarization });
    const events = await collect(agent, { kind: "task", task: "go" });
    expect(events.filter((event) => event.kind === "compacted")).toMatchObject([{ how: "shortened" }]);
    expect(short.requests.some(({ messages }) => isSummarizer(messages))).toBe(false);
    const argsIn = (messages: readonly BaseMessage[]) =>
      messages.flatMap((message) =>
        AIMessage.isInstance(message) ? (message.tool_calls ?? []).map(({ args }) => args["content"]) : [],
      );
    const seen = argsIn(short.requests.at(-1)?.messages ?? []);
    expect(seen[0]).toMatch(/^x{200}\n\[… shortened here; 4000 characters were passed\]$/);
    expect(seen.at(-1)).toBe(content);
    const { values } = await graphOf(agent).getState({ configurable: { thread_id: "t1" } });
    expect(argsIn(values["messages"] as BaseMessage[])).toEqual(Array.from({ length: 6 }, () => content));
  });
});
