// @module-tag long
import { AIMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import type { DeepAgentParams } from "../../../src/agent/agent.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { paused, graphOf, resumeAgentInput } from "../../support/run-agent.ts";
import type { WireReply, WireRequest, WireServer } from "../../support/wire-server.ts";
import { PROVIDERS, type Step, wireThread, type WireThread } from "../../support/wire-thread.ts";

const servers: WireServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

const call = (id: string, name: string, args: Record<string, unknown> | string = {}) => ({ id, name, args });
const write = (id: string, content = "x") => call(id, "write_file", { file_path: `/${id}.md`, content });
const approve = { decisions: [{ type: "approve" as const }] };

describe.each(PROVIDERS)("histories over $protocol", (protocol) => {
  const { provider } = protocol;
  async function thread(steps: readonly Step[], params: DeepAgentParams = {}): Promise<WireThread> {
    const made = await wireThread(protocol, steps, params);
    servers.push(made.server);
    return made;
  }

  test("after a mix of decisions, answered one by one", async () => {
    const calls = [
      write("a"),
      write("b"),
      write("c"),
      call("d", "ls"),
      call("e", "launch"),
      call("f", "write_file", { content: "x" }),
    ];
    const { run, go, goOn } = await thread([{ toolCalls: calls }], { interruptOn: { write_file: true } });
    let events = await go();
    const args = { file_path: "/b2.md", content: "x" };
    const edited = { type: "edit" as const, editedAction: { name: "write_file", args } };
    for (const decision of [{ type: "reject" as const }, edited, { type: "approve" as const }]) {
      const [open] = paused(events);
      events = await run(resumeAgentInput({ [open?.id ?? ""]: { decisions: [decision] } }));
    }
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "end" });
    await goOn();
  });

  test("after a new task while calls wait for a person", async () => {
    const { go, goOn } = await thread(
      [{ text: "I write.", toolCalls: [write("a"), call("b", "ls"), write("c")] }],
      {
        interruptOn: { write_file: true },
      },
    );
    paused(await go());
    await goOn();
  });

  test("after a limit was reached while calls waited for a person, here and in a subagent", async () => {
    const task = (id: string) => call(id, "task", { description: id, subagent_type: "general-purpose" });
    const calls = { toolCalls: [write("a"), task("waits"), task("eager"), call("b", "ls")] };
    const step = (request: WireRequest): WireReply => {
      const begins = (name: string) => request.messages.some(({ text }) => text === name);
      if (begins("waits")) return { toolCalls: [write("c"), call("d", "ls")] };
      return begins("eager") ? { toolCalls: [call(`e${request.number}`, "ls")] } : calls;
    };
    const { go, goOn, server } = await thread(
      Array.from({ length: 30 }, (_, n) => (n < 25 ? step : { text: "end" })),
      { interruptOn: { write_file: true }, limits: { tokens: 150 } },
    );
    const last = (await go()).at(-1);
    expect(last).toMatchObject({ kind: "finished", stopReason: "max_tokens" });
    expect(server.refusals).toEqual([]);
    await goOn();
  });

  test.each(["model", "tool"])("after a stop in the middle of a %s call", async (where) => {
    const controller = new AbortController();
    const stop = () => controller.abort(new Error("stop"));
    const stuck = tool(
      () => {
        stop();
        return new Promise<string>(() => undefined);
      },
      { name: "stuck", description: "s", schema: z.object({}) },
    );
    const calls = [call("a", "ls"), call("b", where === "tool" ? "stuck" : "ls"), call("c", "ls")];
    const stopping = (): WireReply => {
      stop();
      return { fault: "hang" };
    };
    const { go, goOn, run } = await thread([{ toolCalls: calls }, ...(where === "model" ? [stopping] : [])], {
      tools: [stuck],
    });
    await expect(go({ signal: controller.signal })).rejects.toThrow("stop");
    await goOn();
    expect((await run({ kind: "continue" })).at(-1)).toMatchObject({ kind: "finished" });
  });

  test("after subagents and forks, one of which waits, in new processes", async () => {
    const task = (id: string, subagent_type: string) => call(id, "task", { description: id, subagent_type });
    const isMain = ({ messages }: WireRequest) => messages.every(({ text }) => !/^(one|two)$/.test(text));
    const calls = { toolCalls: [task("one", "general-purpose"), task("two", "twin")] };
    const step = (request: WireRequest): WireReply => {
      if (isMain(request))
        return request.messages.some(({ toolResults }) => toolResults.length > 1) ? { text: "end" } : calls;
      const last = request.messages.at(-1);
      return last?.toolResults.length
        ? { text: "report" }
        : { toolCalls: [write(`w${request.number}`), call(`l${request.number}`, "ls")] };
    };
    const twin = { name: "twin", description: "d", systemPrompt: "Be brief.", mode: "fork" as const };
    const { go, run, goOn, server } = await thread(
      Array.from({ length: 12 }, () => step),
      {
        interruptOn: { write_file: true },
        subagents: [twin],
      },
    );
    let events = await go();
    while (events.at(-1)?.kind === "paused") {
      events = await run(resumeAgentInput({ [paused(events)[0]?.id ?? ""]: approve }));
    }
    expect(server.refusals).toEqual([]);
    await goOn();
  });

  test.each([
    ["at a trigger", [] as Step[]],
    [
      "of an overflow",
      [
        {
          status: 400,
          message: "prompt is too long: 200001 tokens > 200000 maximum",
          code: "context_length_exceeded",
        },
      ],
    ],
  ])("after a compaction because %s", async (_why, refusal) => {
    const long = "y".repeat(3000);
    const steps: Step[] = Array.from({ length: 6 }, (_, n) => ({
      text: `step ${n} ${long}`,
      toolCalls: [write(`f${n}`, long), call(`l${n}`, "ls")],
    }));
    const { go, goOn, server } = await thread([...steps, ...refusal], {
      summarization: {
        trigger: refusal.length > 0 ? { tokens: 1e9 } : { tokens: 4000 },
        keep: { messages: 3 },
      },
    });
    expect((await go()).at(-1)).toMatchObject({ kind: "finished" });
    expect(
      server.requests.some(({ messages }) => messages[0]?.text.startsWith("You get the beginning")),
    ).toBe(true);
    await goOn();
  });

  test("after an evicted result, a result that is empty or blank, and one that is broken", async () => {
    const say = tool(({ text }: { text: string }) => text.repeat(text === "z" ? 100_000 : 1), {
      name: "say",
      description: "s",
      schema: z.object({ text: z.string() }),
    });
    const calls = ["", " \n", "z", "\ud800"].map((text, n) => call(`c${n}`, "say", { text }));
    const { go, goOn } = await thread([{ toolCalls: calls }], { tools: [say] });
    expect((await go()).at(-1)).toMatchObject({ kind: "finished" });
    await goOn();
  });

  test("after an image was read", async () => {
    const png =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const read = call("r", "read_file", { file_path: "/i.png" });
    const { go, goOn } = await thread([
      { toolCalls: [call("w", "write_file", { file_path: "/i.png", content: png })] },
      { toolCalls: [read, call("l", "ls")] },
    ]);
    expect((await go()).at(-1)).toMatchObject({ kind: "finished" });
    await goOn();
  });

  test("with what a person says meanwhile", async () => {
    const told: Array<{ id: string; text: string }> = [];
    const saying = (text: string, reply: WireReply) => (): WireReply => {
      told.push({ id: text, text });
      return reply;
    };
    const { go, goOn } = await thread([
      saying("first", { toolCalls: [call("a", "ls"), call("b", "ls")] }),
      saying("second", { text: "end?" }),
    ]);
    await go({ inbox: { messages: () => told } });
    await goOn();
  });

  test.each<[string, DeepAgentParams["limits"]]>([
    ["model calls", { maxIterations: 2 }],
    ["tool calls", { toolCalls: 2 }],
    ["tokens", { tokens: 150 }],
  ])("after the limit of %s", async (_what, limits) => {
    const calls = (n: number) => ({ toolCalls: [call(`a${n}`, "ls"), call(`b${n}`, "ls")] });
    const { go, goOn } = await thread([calls(0), calls(1)], { limits: limits ?? {} });
    expect((await go()).at(-1)).toHaveProperty("stopReason");
    await goOn();
  });

  test("after a structured answer, refused and repeated beside another call", async () => {
    const answer = (id: string, degrees: unknown) => call(id, "structured_response", { degrees });
    const native = provider === "openai";
    const { go, goOn } = await thread(
      native
        ? [{ toolCalls: [call("a", "ls")] }, { text: '{"degrees":1}' }, { text: '{"degrees":2}' }]
        : [
            { toolCalls: [call("a", "ls"), answer("b", 1)] },
            { toolCalls: [answer("c", "cold")] },
            { toolCalls: [answer("d", 2)] },
            { toolCalls: [answer("e", 3)] },
          ],
      { responseFormat: z.object({ degrees: z.number() }) },
    );
    expect((await go()).at(-1)).toMatchObject({ kind: "finished" });
    await goOn();
  });

  test.each<[string, WireReply]>([
    ["no text", { text: "" }],
    ["blank text", { text: " \n" }],
    ["blank text beside calls", { text: "\n\n", toolCalls: [call("a", "ls")] }],
    ["one id for two calls", { toolCalls: [call("a", "ls"), call("a", "glob", { pattern: "*" })] }],
    ["ids that other providers make", { toolCalls: [call(`functions.ls:${"0".repeat(60)}`, "ls")] }],
    ["a tool name that cannot be one", { toolCalls: [call("a", "functions.ls now"), call("b", "ls")] }],
    ["arguments that cannot be parsed", { toolCalls: [call("a", "ls", '{"path": "/'), call("b", "ls")] }],
    ["nothing but such arguments", { toolCalls: [call("a", "ls", '{"path": "/')] }],
    ["a thought", { thinking: "Hm.", toolCalls: [call("a", "ls")] }],
    [
      "a thought and ids that must be changed",
      { thinking: "Hm.", text: "x", toolCalls: [call("a b", "ls")] },
    ],
    ["arguments that are no object", { toolCalls: [call("a", "ls", "[1]"), call("b", "ls", '"x"')] }],
  ])("after a reply with %s", async (_what, reply) => {
    const { go, goOn, agent } = await thread([reply]);
    const events = await go();
    const isCall = "toolCalls" in reply;
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: isCall ? "end" : expect.anything() });
    await goOn();
    const { values } = await graphOf(agent()).getState({ configurable: { thread_id: "t1" } });
    const made = (values["messages"] as unknown[]).flatMap((message) =>
      AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [],
    );
    if (isCall) expect(made).toHaveLength(reply.toolCalls?.length ?? 0);
  });

  test("a call that was cut at the limit of tokens does not run, and the model is told", async () => {
    const cut = call("a", "write_file", '{"file_path": "/a.md", "content": "half of i');
    const { go, server, agent } = await thread([{ toolCalls: [cut], truncated: true }]);
    expect((await go()).at(-1)).toMatchObject({ kind: "finished", answer: "end" });
    expect((await agent().snapshot("t1")).files).toEqual({});
    expect(server.requests.at(-1)?.messages.at(-1)?.toolResults[0]?.text).toMatch(
      /^Error: write_file was not run: the reply was cut at the limit of output tokens/,
    );
  });

  test("answered by a model of another provider from the same thread", async () => {
    const other = provider === "anthropic" ? "openai:gpt-5.3-codex" : "anthropic:claude-sonnet-4-5-20250929";
    const calls = {
      text: "\n",
      thinking: "Hm.",
      toolCalls: [call("call_1", "ls"), call("functions.ls:0", "ls")],
    };
    const first = await thread([calls]);
    const env = first.server.env(provider === "anthropic" ? "openai" : "anthropic");
    const { model } = await resolveModel({ model: other, env, requestMs: 20_000 });
    const { go, goOn } = await thread(
      [calls, { status: 500, message: "down" }, { status: 500, message: "down" }],
      {
        fallbackModels: [model],
        limits: { modelPatienceMs: 0 },
      },
    );
    await go();
    await goOn();
    expect(first.server.requests.length).toBeGreaterThan(0);
    expect(first.server.refusals).toEqual([]);
  });
});
