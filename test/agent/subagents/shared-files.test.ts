import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { buildAgent, type DeepAgentParams } from "../../../src/agent/agent.ts";
import { mergeTexts } from "../../../src/core/merge.ts";
import type { Middleware } from "../../../src/agent/contracts/middleware.ts";
import type { AgentEvent } from "../../../src/agent/contracts/events.ts";
import { filesReducer } from "../../../src/agent/langgraph/channels.ts";
import { collect, paused, toolMessages, resumeAgentInput } from "../../support/run-agent.ts";
import { scriptedModel, type ScriptedToolCall } from "../../support/scripted-model.ts";

const lines = Array.from({ length: 9 }, (_, i) => `line ${i}`);
const original = lines.join("\n");
const edit = (from: string, to: string): ScriptedToolCall => ({
  id: `edit-${from.replace(" ", "-")}`,
  name: "edit_file",
  args: { file_path: "/f.md", old_string: from, new_string: to },
});
const approve = { decisions: [{ type: "approve" as const }] };

/** Writes `/f.md`, then makes `calls`; a subagent makes the calls in its description, as JSON. */
const modelMaking = (calls: ScriptedToolCall[]) =>
  scriptedModel(({ messages, tools }) => {
    const results = messages.filter((message) => ToolMessage.isInstance(message));
    if (!tools.includes("task")) {
      const task = messages.find((message) => HumanMessage.isInstance(message))?.text ?? "[]";
      return results.length > 0 ? { text: "report" } : { toolCalls: JSON.parse(task) as ScriptedToolCall[] };
    }
    if (results.length === 0) {
      return {
        toolCalls: [{ id: "w", name: "write_file", args: { file_path: "/f.md", content: original } }],
      };
    }
    return results.length === 1 ? { toolCalls: calls } : { text: "end" };
  });
const delegate = (id: string, ...calls: ScriptedToolCall[]): ScriptedToolCall => ({
  id,
  name: "task",
  args: { description: JSON.stringify(calls), subagent_type: "general-purpose" },
});

/** Agents as processes one after another make them: they share the checkpoints only. */
function processes(calls: ScriptedToolCall[], params: DeepAgentParams = {}) {
  const checkpointer = new MemorySaver();
  const agent = () => buildAgent({ checkpointer, model: modelMaking(calls), ...params });
  const content = async (path = "/f.md") => (await agent().snapshot("t1")).files[path]?.content;
  return { agent, content };
}
const go = { kind: "task", task: "go" } as const;

describe("calls of one reply on one file", () => {
  it("lose no edit, whichever ends first", async () => {
    let letGo: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (letGo = resolve));
    const order: Middleware = {
      name: "Order",
      wrapToolCall: async (request, next) => {
        if (request.toolCall.id === "edit-line-1") await released;
        const outcome = await next(request);
        if (request.toolCall.id === "edit-line-7") letGo();
        return outcome;
      },
    };
    const { agent, content } = processes([edit("line 1", "one"), edit("line 7", "seven")], {
      middleware: [order],
    });
    await collect(agent(), go);
    expect(await content()).toBe(original.replace("line 1", "one").replace("line 7", "seven"));
  });

  it("see what finished calls of the reply wrote, also when they go on in another process", async () => {
    const create = { id: "n", name: "write_file", args: { file_path: "/n.md", content: "new" } };
    const change = {
      id: "g",
      name: "edit_file",
      args: { file_path: "/n.md", old_string: "new", new_string: "newer" },
    };
    const gate = tool(() => "ok", { name: "gate", description: "waits", schema: z.object({}) });
    const { agent, content } = processes([change, create, { id: "x", name: "gate", args: {} }], {
      tools: [gate],
      interruptOn: { edit_file: true },
    });
    const approveIn = async (events: AgentEvent[]) => {
      const [open] = paused(events);
      return collect(agent(), resumeAgentInput({ [open?.id ?? ""]: approve }));
    };
    // There was no file when the edit was shown; now that there is one, it is shown again.
    const again = await approveIn(await collect(agent(), go));
    expect(await content("/n.md")).toBe("new");
    await approveIn(again);
    expect(await content("/n.md")).toBe("newer");
  });
});

describe("subagents on one file", () => {
  it("are merged line by line, also when one waits for a person and goes on in another process", async () => {
    const calls = [delegate("a", edit("line 1", "one")), delegate("b", edit("line 7", "seven"))];
    const interruptOn = { edit_file: { when: ({ id }: { id: string }) => id === "edit-line-1" } };
    const { agent, content } = processes(calls, { interruptOn });
    const [open] = paused(await collect(agent(), go));
    await collect(agent(), resumeAgentInput({ [open?.id ?? ""]: approve }));
    expect(await content()).toBe(original.replace("line 1", "one").replace("line 7", "seven"));
  });

  it("that exclude each other keep both versions and say so in both reports", async () => {
    const calls = [delegate("a", edit("line 1", "from a")), delegate("b", edit("line 1", "from b"))];
    const interruptOn = {
      edit_file: {
        when: ({ args }: { args: object }) => "new_string" in args && args.new_string === "from a",
      },
    };
    const { agent, content } = processes(calls, { interruptOn });
    const [open] = paused(await collect(agent(), go));
    await collect(agent(), resumeAgentInput({ [open?.id ?? ""]: approve }));
    expect(await content()).toContain("from b");
    expect(await content("/f.md.conflict-a")).toContain("from a");
    const reports = (await toolMessages(agent())).slice(-2);
    expect(reports.map(({ tool_call_id }) => tool_call_id)).toEqual(["a", "b"]);
    for (const { text } of reports) {
      expect(text).toMatch(
        /^report\n\n\[Two agents changed \/f\.md .* the other version is \/f\.md\.conflict-a\.\]$/,
      );
    }
  });
});

describe("files of a subagent that does not end well", () => {
  const changes = [
    edit("line 1", "one"),
    { id: "n", name: "write_file", args: { file_path: "/n.md", content: "new" } },
  ];
  const told =
    /^Error: subagent 'general-purpose' failed: [^]*\n\nFiles it had changed are kept: \/f\.md, \/n\.md/;

  async function check({ agent, content }: ReturnType<typeof processes>): Promise<void> {
    expect(await content()).toBe(original.replace("line 1", "one").replace("line 7", "seven"));
    expect(await content("/n.md")).toBe("new");
    const [, failed, fine] = await toolMessages(agent());
    expect(failed?.text).toMatch(told);
    expect(failed?.status).toBe("error");
    expect(fine?.text).toBe("report");
  }

  it("are merged and named, because its model fails", async () => {
    const calls = [delegate("a", ...changes), delegate("b", edit("line 7", "seven"))];
    const fails: Middleware = {
      name: "Fails",
      wrapModelCall: async (request, next) => {
        if (request.messages.some(({ text }) => text.includes("/n.md'")))
          throw new Error("the model is gone");
        return next(request);
      },
    };
    const worker = { name: "general-purpose", description: "d", systemPrompt: "p", middleware: [fails] };
    const both = processes(calls, { subagents: [worker] });
    await collect(both.agent(), go);
    await check(both);
  });

  it("are merged and named, because it reaches a limit", async () => {
    const more = ["x", "y"].map((id): ScriptedToolCall => ({ id, name: "ls", args: {} }));
    const calls = [delegate("a", ...changes, ...more), delegate("b", edit("line 7", "seven"))];
    const both = processes(calls, { limits: { toolCalls: 3 } }); // the agent itself makes three
    await collect(both.agent(), go);
    await check(both);
  });

  it("are merged and named, because it fails in the process after the one that changed them", async () => {
    const calls = [
      delegate("a", ...changes, { id: "g", name: "gate", args: {} }),
      delegate("b", edit("line 7", "seven")),
    ];
    const gate = tool(() => "ok", { name: "gate", description: "waits", schema: z.object({}) });
    const fails: Middleware = {
      name: "Fails",
      wrapModelCall: async (request, next) => {
        if (request.messages.some(({ text }) => text === "ok")) throw new Error("the model is gone");
        return next(request);
      },
    };
    const worker = { name: "general-purpose", description: "d", systemPrompt: "p", middleware: [fails] };
    const both = processes(calls, { tools: [gate], interruptOn: { gate: true }, subagents: [worker] });
    const [open] = paused(await collect(both.agent(), go));
    await collect(both.agent(), resumeAgentInput({ [open?.id ?? ""]: approve }));
    await check(both);
  });
});

describe("files of a subagent that was at work when its run ended and the thread went on", () => {
  const changes = [
    edit("line 1", "one"),
    { id: "n", name: "write_file", args: { file_path: "/n.md", content: "new" } },
  ];
  const gate = tool(() => "ok", { name: "gate", description: "waits", schema: z.object({}) });
  const waiting = { id: "g", name: "gate", args: {} };

  it.each([
    ["cancelled", "Tool call was cancelled: the run was cancelled"],
    ["failed", "Tool call did not complete: the run failed"],
    [undefined, "Tool call was cancelled: the conversation continued with a new message"],
  ] as const)("are merged with what its siblings changed, and named (%s)", async (after, told) => {
    const mine = { id: "m", name: "write_file", args: { file_path: "/m.md", content: "mine" } };
    const calls = [mine, delegate("a", ...changes, waiting), waiting, delegate("b", edit("line 7", "seven"))];
    const { agent, content } = processes(calls, { tools: [gate], interruptOn: { gate: true } });
    await collect(agent(), go);
    await collect(agent(), { kind: "task", task: "on", after }, { runId: "run_2" });
    expect(await content()).toBe(original.replace("line 1", "one").replace("line 7", "seven"));
    expect([await content("/n.md"), await content("/m.md")]).toEqual(["new", "mine"]);
    expect((await toolMessages(agent())).slice(1).map(({ text }) => text)).toEqual([
      "Successfully wrote to '/m.md'",
      `${told} before the subagent 'general-purpose' had finished.\n\nFiles it had changed are kept: /f.md, /n.md`,
      `${told} while gate waited for a person's approval. It was not run.`,
      "report",
    ]);
  });

  it("are kept beside what a sibling wrote, and both reports say so", async () => {
    const calls = [delegate("a", edit("line 1", "from a"), waiting), delegate("b", edit("line 1", "from b"))];
    const { agent, content } = processes(calls, { tools: [gate], interruptOn: { gate: true } });
    await collect(agent(), go);
    await collect(agent(), { kind: "task", task: "on", after: "cancelled" }, { runId: "run_2" });
    expect(await content()).toContain("from b");
    expect(await content("/f.md.conflict-a")).toContain("from a");
    for (const { text } of (await toolMessages(agent())).slice(-2))
      expect(text).toContain("the other version is /f.md.conflict-a.]");
  });
});

describe("merging texts", () => {
  const text = fc.array(fc.constantFrom("a", "b", "c", ""), { maxLength: 6 }).map((all) => all.join("\n"));

  it("takes the side that changed, and the same change once", () => {
    fc.assert(
      fc.property(text, text, (base, changed) => {
        expect(mergeTexts(base, changed, base)).toBe(changed);
        expect(mergeTexts(base, base, changed)).toBe(changed);
        expect(mergeTexts(base, changed, changed)).toBe(changed);
      }),
    );
  });

  it("does not depend on the order", () => {
    fc.assert(
      fc.property(text, text, text, (base, first, second) => {
        expect(mergeTexts(base, second, first)).toBe(mergeTexts(base, first, second));
      }),
    );
  });

  it("has both changes of lines that do not touch", () => {
    const at = fc.tuple(fc.nat({ max: 8 }), fc.nat({ max: 8 })).filter(([i, j]) => Math.abs(i - j) > 1);
    const replacement = fc.array(fc.constantFrom("x", "y", ""), { maxLength: 3 });
    const changed = (position: number, by: string[]) => lines.toSpliced(position, 1, ...by).join("\n");
    fc.assert(
      fc.property(at, replacement, replacement, ([i, j], one, two) => {
        const both = lines.flatMap((line, index) => (index === i ? one : index === j ? two : [line]));
        expect(mergeTexts(original, changed(i, one), changed(j, two))).toBe(both.join("\n"));
      }),
    );
  });

  it("refuses changes of the same lines", () => {
    expect(mergeTexts("a\nb\nc", "a\nB\nc", "a\nX\nc")).toBeUndefined();
    expect(mergeTexts("a\nb", "b", "\nb")).toBeUndefined(); // one removed the line, one emptied it
    expect(mergeTexts("a\nb\nc\nd\ne", "A\nb\nc\nd\ne", "a\nb\nc\nd\nE")).toBe("A\nb\nc\nd\nE");
  });
});

it("the files channel folds batch by batch as all at once, numbered contents in any order", () => {
  const data = fc.record({
    content: fc.string({ maxLength: 2 }),
    mimeType: fc.constant("text/plain"),
    created_at: fc.constant(""),
    modified_at: fc.constant(""),
    revision: fc.nat({ max: 5 }),
  });
  const write = fc.dictionary(fc.constantFrom("/a", "/b"), fc.option(data, { nil: null }), { maxKeys: 2 });
  fc.assert(
    fc.property(fc.array(write, { maxLength: 6 }), fc.nat({ max: 6 }), fc.boolean(), (writes, cut, keep) => {
      const fold = filesReducer(keep);
      expect(fold(fold({}, writes.slice(0, cut)), writes.slice(cut))).toEqual(fold({}, writes));
    }),
  );
});
