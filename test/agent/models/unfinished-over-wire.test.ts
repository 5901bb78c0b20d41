import { describe, expect, test } from "vitest";

import type { DeepAgentParams } from "../../../src/agent/build/params.ts";
import { PROVIDERS, type Step, wireThread } from "../../support/wire-thread.ts";
import type { WireReply, WireRequest } from "../../support/wire-server.ts";

const cut = (text: string): WireReply => ({ text, truncated: true });
const lastText = ({ messages }: WireRequest): string => messages.at(-1)?.text ?? "";
const task = { name: "task", args: { description: "part", subagent_type: "general-purpose" } };

describe.each(PROVIDERS)("$protocol: a reply", (provider) => {
  const thread = (steps: readonly Step[], params: DeepAgentParams = {}) =>
    wireThread(provider, steps, params);

  test("cut at the limit of output tokens is continued, and its pieces are one answer", async () => {
    const { go, goOn, server } = await thread([cut("One, tw"), cut("o, thr"), { text: "ee." }]);
    const events = await go();
    expect(events.at(-1)).toEqual({ kind: "finished", answer: "One, two, three." });
    expect(server.requests).toHaveLength(3);
    const [, second, third] = server.requests;
    expect(second?.messages.at(-2)).toMatchObject({ role: "assistant", text: "One, tw" });
    expect(third?.messages.at(-2)).toMatchObject({ role: "assistant", text: "o, thr" });
    expect(lastText(third!)).toMatch(/^Your reply was cut at the limit of output tokens\. Continue/);
    await goOn();
    expect(server.requests.at(-1)?.messages.map(({ text }) => text)).toContain("One, two, three.");
  });

  test("that is continued with a call makes the call", async () => {
    const write = { name: "write_file", args: { file_path: "/a.md", content: "a" } };
    const { go, goOn, agent, server } = await thread([
      { text: "Now the fi", thinking: "Hm.", truncated: true },
      { text: "le.", thinking: "So.", toolCalls: [write] },
    ]);
    expect((await go()).at(-1)).toMatchObject({ kind: "finished", answer: "end" });
    expect(Object.keys((await agent().snapshot("t1")).files)).toEqual(["/a.md"]);
    expect(server.requests.at(-1)?.messages.at(-2)?.text).toBe("Now the file.");
    await goOn();
  });

  test("that stays cut is marked, for the person and for the program", async () => {
    const { go, goOn, server } = await thread(Array.from({ length: 9 }, () => cut("more ")));
    const events = await go();
    expect(events.at(-1)).toEqual({
      kind: "finished",
      answer: expect.stringMatching(/^(more ){4}\n\n\[The answer is cut here: .*limit of output tokens/),
      stopReason: "max_output_tokens",
    });
    expect(server.requests).toHaveLength(4);
    server.requests.length = 0;
    await goOn();
  });

  test("of a subagent that stays cut is reported with the mark", async () => {
    const cuts = Array.from({ length: 4 }, () => cut("more "));
    const { go, server } = await thread([{ toolCalls: [task] }, ...cuts]);
    expect((await go()).at(-1)).toEqual({ kind: "finished", answer: "end" });
    const [report] = server.requests.at(-1)?.messages.at(-1)?.toolResults ?? [];
    expect(report?.text).toMatch(/^(more ){4}\n\n\[The answer is cut here: /);
  });

  test.each(["", '{"file_path": "/a.md", "content": "half of i'])(
    "cut in the arguments of a call (%j) does not make the call",
    async (args) => {
      const { go, server } = await thread([
        {
          text: "x",
          toolCalls: [
            { name: "ls", args },
            { name: "ls", args },
          ],
          truncated: true,
        },
      ]);
      expect((await go()).at(-1)).toMatchObject({ kind: "finished", answer: "end" });
      const results = server.requests.at(-1)?.messages.flatMap(({ toolResults }) => toolResults) ?? [];
      expect(results.at(-1)?.text).toBe(
        "Error: ls was not run: the reply was cut at the limit of output tokens, before the arguments were complete. Call it again; give long content in several calls.",
      );
    },
  );

  test("without a word is asked for again, once", async () => {
    const { go, goOn, server } = await thread([{ text: " " }, { text: "here" }]);
    expect((await go()).at(-1)).toEqual({ kind: "finished", answer: "here" });
    expect(lastText(server.requests[1]!)).toMatch(/Your reply was empty\./);
    await goOn();
  });

  test("without a word, twice, ends the run as one without an answer", async () => {
    const ls = { text: "looking", toolCalls: [{ name: "ls", args: {} }] };
    const { go, goOn, server } = await thread([ls, {}, {}]);
    await expect(go()).rejects.toMatchObject({
      code: "no_answer",
      message: expect.stringContaining("gave no answer, even when asked again"),
    });
    expect(server.requests).toHaveLength(3);
    await goOn("failed");
  });

  test("that is cut before its first word is no answer either", async () => {
    const { go } = await thread([{ truncated: true }, { truncated: true }, { truncated: true }]);
    await expect(go()).rejects.toMatchObject({
      code: "no_answer",
      message: expect.stringMatching(/output tokens/),
    });
  });

  test("of a subagent without a word is a failed call, with what it said before", async () => {
    const ls = { text: "looking", toolCalls: [{ name: "ls", args: {} }] };
    const { go, server } = await thread([{ toolCalls: [task] }, ls, {}, {}]);
    expect((await go()).at(-1)).toEqual({ kind: "finished", answer: "end" });
    const [report] = server.requests.at(-1)?.messages.at(-1)?.toolResults ?? [];
    expect(report?.text).toMatch(/^Error: subagent 'general-purpose' failed: The model gave no answer/);
    expect(report?.text).toMatch(/What it said before:\nlooking$/);
  });
});
