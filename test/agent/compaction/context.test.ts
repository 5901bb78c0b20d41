import {
  AIMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
  type BaseMessage,
} from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { repairHistory } from "../../../src/agent/messages/mend.ts";
import { cutIndex, ESTIMATE, compactedView } from "../../../src/agent/compaction/compacted-view.ts";
import { collect, graphOf } from "../../support/run-agent.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

const isSummarizer = (messages: readonly BaseMessage[]): boolean =>
  messages[0]?.text.startsWith("You get the beginning of a conversation") ?? false;

describe("summarization", () => {
  const setup = (failing = false) => {
    let work = 0;
    const model = scriptedModel(({ messages }) => {
      if (isSummarizer(messages)) {
        if (failing) throw new Error("no summary today");
        return { text: "SUMMARY" };
      }
      work += 1;
      if (work > 12) return { text: "end" };
      return {
        toolCalls: [
          {
            id: `c${work}`,
            name: "write_file",
            args: { file_path: `/${work}.md`, content: "x".repeat(1500) },
          },
        ],
      };
    });
    const agent = buildAgent({
      checkpointer: new MemorySaver(),
      model,
      summarization: { trigger: { tokens: 3000 }, keep: { messages: 4 } },
    });
    return { agent, model };
  };

  it("is told of and counted like any other model call", async () => {
    const { agent, model } = setup();
    const events = await collect(agent, { kind: "task", task: "the task" });
    const called = events.filter((event) => event.kind === "model_called");
    expect(called).toHaveLength(model.requests.length);
    const summaries = called.filter(({ purpose }) => purpose === "summary");
    expect(summaries).toHaveLength(model.requests.filter(({ messages }) => isSummarizer(messages)).length);
    expect(summaries[0]).toMatchObject({
      agent: [],
      model: "scripted",
      usage: { inputTokens: 10 },
      text: "",
    });
  });

  it("replaces the beginning by a summary, keeps it in a file, and leaves the thread complete", async () => {
    const { agent, model } = setup();
    const events = await collect(agent, { kind: "task", task: "the task" });
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "end" });
    const summarized = model.requests.filter(({ messages }) => isSummarizer(messages));
    expect(summarized.length).toBeGreaterThan(0);
    const last = model.requests.at(-1)?.messages ?? [];
    expect(last[1]?.text).toContain("SUMMARY");
    expect(last[1]?.text).toContain("/conversation_history/t1.md");
    const compacted = events.filter((event) => event.kind === "compacted");
    expect(compacted.map(({ how }) => how)).toEqual(summarized.map(() => "summarized"));
    expect(compacted[0]).toMatchObject({
      agent: [],
      messages: expect.any(Number),
      path: "/conversation_history/t1.md",
    });
    const { files } = await agent.snapshot("t1");
    expect(String(files["/conversation_history/t1.md"]?.content)).toContain("the task");
    const { values } = await graphOf(agent).getState({ configurable: { thread_id: "t1" } });
    expect(values["messages"]).toHaveLength(1 + 12 * 2 + 1);
  });

  it("that fails loses nothing", async () => {
    const { agent, model } = setup(true);
    const events = await collect(agent, { kind: "task", task: "the task" });
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "end" });
    const last = model.requests.at(-1)?.messages ?? [];
    expect(last.some(({ text }) => text === "the task")).toBe(true);
    expect(events.filter((event) => event.kind === "compacted")).toEqual([]);
    expect(events).toContainEqual({
      kind: "warning",
      agent: [],
      message: expect.stringContaining("its beginning could not be summarized"),
    });
  });

  it("counts media by what they are, and a call that a provider repeats as a block once", () => {
    const args = { content: "x".repeat(4000) };
    const call = { id: "a", name: "write_file", args };
    const plain = new AIMessage({ content: "", tool_calls: [call] });
    const repeated = new AIMessage({
      content: [{ type: "tool_use", id: "a", name: "write_file", input: args }],
      tool_calls: [call],
    });
    expect(ESTIMATE.of(repeated)).toBe(ESTIMATE.of(plain));
    const image = { type: "image", mimeType: "image/png", data: "A".repeat(1_000_000) };
    expect(ESTIMATE.of(new ToolMessage({ tool_call_id: "a", content: [image] }))).toBeLessThan(2000);
  });

  it("never separates a reply from its results", () => {
    const history = fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 12 }).map((turns) =>
      turns.flatMap((results, turn): BaseMessage[] => [
        new HumanMessage({ id: `h${turn}`, content: "question" }),
        new AIMessage({
          id: `a${turn}`,
          content: "",
          tool_calls: Array.from({ length: results }, (_, i) => ({
            id: `${turn}-${i}`,
            name: "ls",
            args: {},
          })),
        }),
        ...Array.from(
          { length: results },
          (_, i) => new ToolMessage({ tool_call_id: `${turn}-${i}`, content: "r" }),
        ),
      ]),
    );
    fc.assert(
      fc.property(history, fc.integer({ min: 1, max: 20 }), (messages, keep) => {
        const cut = cutIndex(messages, { trigger: [], keep: { messages: keep }, maxInputTokens: undefined });
        const view = compactedView(messages, { keptFrom: messages[cut]?.id ?? "", summary: "s" });
        expect(repairHistory(view)).toBe(view);
      }),
    );
  });
});

describe("skills", () => {
  const skill = (name: string, description: string) =>
    `---\nname: ${name}\ndescription: ${description}\n---\n# Body\nsecret instructions`;

  it("show name and description only; of two with one name the later source counts", async () => {
    const model = scriptedModel(() => ({ text: "end" }));
    const agent = buildAgent({ checkpointer: new MemorySaver(), model, skills: ["/base/", "/user/"] });
    const file = (content: string) => ({
      content,
      mimeType: "text/markdown",
      created_at: "",
      modified_at: "",
    });
    await graphOf(agent).invoke(
      {
        messages: [new HumanMessage("go")],
        files: {
          "/base/review/SKILL.md": file(skill("review", "Old way")),
          "/base/report/SKILL.md": file(skill("report", "Writes reports")),
          "/base/broken/SKILL.md": file("no front matter"),
          "/user/review/SKILL.md": file(skill("review", "New way")),
        },
      },
      { configurable: { thread_id: "t1" } },
    );
    const system =
      model.requests[0]?.messages.find((message) => SystemMessage.isInstance(message))?.text ?? "";
    expect(system).toContain("- report: Writes reports Read /base/report/SKILL.md");
    expect(system).toContain("- review: New way Read /user/review/SKILL.md");
    expect(system).not.toContain("Old way");
    expect(system).not.toContain("secret instructions");
  });

  it("are read once per thread, and again after null was written to their channel", async () => {
    const model = scriptedModel(() => ({ text: "end" }));
    const agent = buildAgent({ checkpointer: new MemorySaver(), model, skills: ["/base/"] });
    const at = { configurable: { thread_id: "t1" } };
    const file = (description: string) => ({
      "/base/report/SKILL.md": {
        content: skill("report", description),
        mimeType: "text/markdown",
        created_at: "",
        modified_at: "",
      },
    });
    const go = (update: object) =>
      graphOf(agent).invoke({ messages: [new HumanMessage("go")], ...update }, at);
    await go({ files: file("First") });
    await go({ files: file("Second") });
    await go({ skillsMetadata: null });
    const shown = model.requests.map(({ messages }) => /- report: (\w+)/.exec(messages[0]?.text ?? "")?.[1]);
    expect(shown).toEqual(["First", "First", "Second"]);
  });
});
