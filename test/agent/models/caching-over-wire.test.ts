import { tool } from "@langchain/core/tools";
import { HumanMessage, SystemMessage } from "@langchain/core/messages";
import { createMiddleware, modelFallbackMiddleware } from "langchain";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import type { DeepAgentParams } from "../../../src/agent/build/params.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { snapshotFiles } from "../../../src/backends/runtime.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { list, record, type Json } from "../../support/wire-server-protocol.ts";
import { wireServer } from "../../support/wire-server.ts";

const MARK = { type: "ephemeral" };
const go = { messages: [new HumanMessage("go")] };

async function setup(params: DeepAgentParams = {}, status?: number) {
  const server = await wireServer(({ protocol, number }) => {
    if (protocol === "anthropic" && status !== undefined) return { status, message: "overloaded" };
    return number === 0 ? { toolCalls: [{ name: "ls", args: {} }] } : { text: "end" };
  });
  const [claude, gpt] = await Promise.all(
    (["anthropic:claude-sonnet-4-5-20250929", "openai:gpt-4.1"] as const).map(async (model) => {
      const env = server.env(model.startsWith("openai") ? "openai" : "anthropic");
      return (await resolveModel({ model, env, requestMs: 20_000 })).model;
    }),
  );
  if (!claude || !gpt) throw new Error("no models");
  const agent = (more: DeepAgentParams = {}) => createDeepAgent({ model: claude, ...params, ...more });
  return { server, agent, gpt };
}

/** The marks of a request, in the order of its prefix: tools, system, messages, the whole. */
const marksOf = ({ tools, system, messages, cache_control: newest }: Json) => ({
  tools: list(tools).filter((item) => "cache_control" in item).length,
  system: list(system).map(({ cache_control: mark }) => mark),
  messages: list(messages).flatMap(({ content }) => list(content).filter((item) => "cache_control" in item))
    .length,
  newest,
});

describe("marks for Anthropic's cache", () => {
  const block = (text: string, ttl?: string) => ({
    type: "text" as const,
    text,
    cache_control: ttl === undefined ? MARK : { ...MARK, ttl },
  });
  const lifetimes = ({ system, messages }: Json): unknown[] =>
    [...list(system), ...list(messages).flatMap(({ content }) => list(content))].flatMap(
      ({ cache_control: mark }) => (mark === undefined ? [] : [record(mark)["ttl"] ?? "5m"]),
    );

  test("of a caller beyond four leave the oldest messages, and the caller's objects stay", async () => {
    const { server, agent } = await setup();
    const content = Array.from({ length: 6 }, (_, n) => block(`part ${n}`));
    const message = new HumanMessage({ content });
    await agent().invoke({ messages: [message] });
    const sent = list(list(server.requests[0]?.body["messages"])[0]?.["content"]);
    expect(sent.map((part) => "cache_control" in part)).toEqual([false, false, true, true, true, true]);
    expect(message.content).toEqual(content);
  });

  test.each<[string, (string | undefined)[]]>([
    ["long ones before short ones", ["1h", undefined]],
    ["a long one behind a short one", [undefined, "1h"]],
    ["a long one alone", ["1h"]],
  ])("have lifetimes in an order that Anthropic takes: %s", async (_name, given) => {
    const { server, agent } = await setup();
    const content = given.map((ttl, n) => block(`part ${n}`, ttl));
    await agent().invoke({ messages: [new HumanMessage({ content })] });
    const order = lifetimes(server.requests[0]?.body ?? {});
    expect(order.length).toBeGreaterThan(1);
    expect(order.lastIndexOf("1h")).toBeLessThan(order.includes("5m") ? order.indexOf("5m") : Infinity);
  });

  test("stand at the end of what is the same in all threads, of the system prompt, and at the newest turn", async () => {
    const files = new StateBackend({ files: snapshotFiles() });
    const { server, agent } = await setup({ memory: ["/AGENTS.md"], backend: files });
    await agent().invoke(go);
    files.write("/AGENTS.md", "Jane likes tea.");
    await agent().invoke(go);
    const [first, , later] = server.requests.map(({ body }) => body);
    expect(marksOf(first ?? {})).toEqual({ tools: 0, system: [MARK, MARK], messages: 0, newest: MARK });
    const [stable, memory] = list(first?.["system"]);
    expect(memory?.["text"]).toMatch(/^<agent_memory>/);
    expect(list(later?.["system"])[0]).toEqual(stable);
    expect(list(later?.["system"])[1]).not.toEqual(memory);
    expect(later?.["tools"]).toEqual(first?.["tools"]);
  });

  test("are set on the request as it leaves the stack", async () => {
    const late = createMiddleware({
      name: "Late",
      wrapModelCall: (request, handler) =>
        handler({ ...request, systemPrompt: `${request.systemPrompt}\n\nAdded late.` }),
    });
    const { server, agent } = await setup({ middleware: [late] });
    await agent().invoke(go);
    const [block, ...others] = list(server.requests[0]?.body["system"]);
    expect(others).toEqual([]);
    expect(block).toMatchObject({ text: expect.stringMatching(/Added late\.$/), cache_control: MARK });
  });

  test("do not reach another provider that takes over", async () => {
    const { server, agent, gpt } = await setup({}, 529);
    const limits = { modelPatienceMs: 1 };
    await agent({ middleware: [modelFallbackMiddleware(gpt)], limits }).invoke(go);
    const sent = server.requests.filter(({ protocol }) => protocol !== "anthropic");
    expect(sent.length).toBeGreaterThan(0);
    expect(JSON.stringify(sent.map(({ body }) => body))).not.toContain("cache_control");
    expect(server.refusals).toEqual([]);
  });

  test.each([
    [2, 1, true],
    [3, 0, true],
    [4, 0, false],
  ])("leave the caller's %d, and are %d of the system prompt besides", async (own, system, newest) => {
    const texts = Array.from({ length: own }, (_, n) => ({
      type: "text" as const,
      text: `part ${n}`,
      cache_control: { type: "ephemeral", ttl: "1h" },
    }));
    const { server, agent } = await setup({ systemPrompt: new SystemMessage({ content: texts }) });
    await agent().invoke(go);
    const marks = marksOf(server.requests[0]?.body ?? {});
    expect(marks.system.filter((mark) => mark !== undefined)).toHaveLength(own + system);
    expect(marks.newest).toEqual(newest ? MARK : undefined);
    expect(server.refusals).toEqual([]);
  });

  test("are one sign for Bedrock's package, which sets them itself, and none for its other models", async () => {
    const signs: unknown[] = [];
    for (const name of ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", "amazon.nova-pro-v1:0"]) {
      const model = scriptedModel(() => ({ text: "end" }));
      Object.assign(model, { model: name, _llmType: () => "chat_bedrock_converse" });
      const generate = model._generate.bind(model);
      model._generate = (messages, options, manager) => {
        signs.push(Reflect.get(options, "cache_control"));
        expect(typeof messages[0]?.content).toBe("string");
        return generate(messages, options, manager);
      };
      const noop = tool(() => "", { name: "noop", description: "n", schema: z.object({}) });
      await createDeepAgent({ model, tools: [noop] }).invoke(go);
    }
    expect(signs).toEqual([MARK, undefined]);
  });
});
