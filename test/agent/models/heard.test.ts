import { describe, expect, test } from "vitest";
import { findings, met } from "../../support/judge.ts";
import type { WireReply, WireRequest } from "../../support/wire-server.ts";
import { PROVIDERS, type Step, wireThread } from "../../support/wire-thread.ts";

const task = { name: "task", args: { description: "part", subagent_type: "general-purpose" } };

/** The texts that were told: an empty one begins another. */
function textsOf(said: readonly string[]): string[] {
  const texts: string[] = [];
  for (const text of said) {
    if (text === "") texts.push("");
    else {
      // Each is longer than the one before it.
      expect(text.startsWith(texts.at(-1) ?? "")).toBe(true);
      texts[texts.length - 1] = text;
    }
  }
  return texts.filter((text) => text !== "");
}

describe.each(PROVIDERS)("$protocol: a text", (provider) => {
  async function heard(steps: readonly Step[], params: Parameters<typeof wireThread>[2] = {}) {
    const said: string[] = [];
    const { go, server } = await wireThread(provider, steps, params);
    const events = await go({ say: (text) => void said.push(text) });
    expect(server.refusals).toEqual([]);
    await server.close();
    return { said, last: events.at(-1) };
  }

  test("is told piece by piece while it is written, without thoughts and calls", async () => {
    const { said, last } = await heard([
      {
        text: "I look around.",
        thinking: "Hm.",
        toolCalls: [{ name: "ls", args: { path: "/" } }],
        pieceLength: 3,
      },
      { text: "There is nothing.", pieceLength: 4 },
    ]);
    expect(textsOf(said)).toEqual(["I look around.", "There is nothing."]);
    expect(said).toContain("I look");
    expect(said).toContain("There is");
    expect(last).toMatchObject({ kind: "finished", answer: "There is nothing." });
  });

  test("of a subagent or a judge is not told", async () => {
    const judge = ({ tools }: WireRequest): WireReply => {
      const [call = { name: "", args: {} }] = findings(met).toolCalls ?? [];
      return tools.includes(call.name) ? { toolCalls: [call] } : { text: JSON.stringify(call.args) };
    };
    const steps: Step[] = [
      { text: "I ask.", toolCalls: [task] },
      { text: "the report" },
      { text: "All." },
      judge,
    ];
    const { said, last } = await heard(steps, { goal: { criteria: ["It is there"] } });
    expect(textsOf(said)).toEqual(["I ask.", "All."]);
    expect(last).toMatchObject({ kind: "finished", answer: "All." });
  });

  test("that breaks off begins again, and one that was cut goes on", async () => {
    const { said, last } = await heard([
      { fault: "cut", answer: { text: "A text that breaks off." } },
      { text: "One, tw", truncated: true },
      { text: "o, three." },
    ]);
    expect(textsOf(said).at(-1)).toBe("One, two, three.");
    expect(said.filter((text) => text === "").length).toBeGreaterThan(1);
    expect(last).toMatchObject({ kind: "finished", answer: "One, two, three." });
  });
});
