import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { fittingMessages } from "../../../src/agent/compaction/compaction.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

const PATH = "/conversation_history/t.md";
const shown = (texts: readonly string[], room: number) => fittingMessages(texts, { path: PATH, room });

describe("messages of a person after a summary", () => {
  it("stay word for word, in their order, while there is room", () => {
    expect(shown(["first", "second", "third"], 1000)).toEqual(
      ["first", "second", "third"].map((text) => `<message>\n${text}\n</message>`),
    );
    expect(shown([], 1000)).toEqual([]);
  });

  it("are the first and the newest where there is not", () => {
    const texts = ["FIRST", ..."abcdefgh".split("").map((letter) => letter.repeat(300)), "NEWEST"];
    const [first, note, ...rest] = shown(texts, 800);
    expect(first).toContain("FIRST");
    expect(note).toBe(`[6 more messages between these are in ${PATH}]`);
    expect(rest).toEqual([texts[7], texts[8], texts[9]].map((text) => `<message>\n${text}\n</message>`));
  });

  it.each([[["x".repeat(5000)]], [["x".repeat(5000), "y".repeat(5000), "z"]]])(
    "are cut where one alone is too long, and the text says where the rest is",
    (texts) => {
      const all = shown(texts, 1000).join("\n");
      expect(all.length).toBeLessThan(1400);
      expect(all).toContain(`the whole message is in ${PATH}`);
      expect(all).toContain(texts.at(-1)?.slice(0, 200));
    },
  );

  it("are in each later request, also after several poor summaries, with what was said in between", async () => {
    const summaries: string[] = [];
    const model = scriptedModel(({ messages, call, tools }) => {
      if (tools.length === 0) {
        summaries.push(messages.map(({ text }) => text).join("\n"));
        return { text: "The assistant listed folders." };
      }
      const looks = { name: "read_file", args: { file_path: `/${call}` } };
      return messages.at(-1)?.text.startsWith("[") || call % 12 === 11
        ? { text: "end" }
        : { text: "step ".repeat(200), toolCalls: [looks] };
    });
    const agent = createDeepAgent({
      model,
      checkpointer: new MemorySaver(),
      // Its calls fail alike.
      hints: { failures: false },
      summarization: { trigger: { tokens: 6000 }, keep: { messages: 4 } },
    });
    const config = { configurable: { thread_id: "t" } };
    for (const content of ["Count the DUCKS. Never touch prod.db.", "And the GEESE.", "And now SWANS."]) {
      await agent.invoke({ messages: [{ role: "user", content }] }, config);
    }
    expect(summaries.length).toBeGreaterThan(1);
    const last = model.requests.findLast(({ tools }) => tools.length > 0)?.messages ?? [];
    const view = last.map(({ text }) => text).join("\n");
    for (const words of ["Count the DUCKS. Never touch prod.db.", "And the GEESE.", "And now SWANS."]) {
      expect(view.split(words)).toHaveLength(2);
    }
  });
});
