import { createServer } from "node:http";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { RunFailure } from "../../../src/core/errors.ts";
import { modelFailure } from "../../../src/agent/models/failure.ts";
import { type ResolveOptions, resolveModel } from "../../../src/agent/models/resolve.ts";
import {
  startWireServer,
  wireServer,
  type WireReply,
  type WireRequest,
  type WireServer,
} from "../../support/wire-server.ts";
import { addressOf } from "../../support/http-address.ts";
import { PROVIDERS } from "../../support/wire-thread.ts";

/** Answers everything alike, and gives its address. */
async function httpServer(type: string, body: string): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": type });
    response.end(body);
  });
  return addressOf(server);
}

const readFile = tool(() => "", {
  name: "read_file",
  description: "Reads a file.",
  schema: z.object({ file_path: z.string(), limit: z.number().int().optional() }),
});

describe.each(PROVIDERS)("$protocol", ({ protocol, provider, spec }) => {
  async function connect(
    reply: (request: WireRequest) => WireReply,
    options: Partial<ResolveOptions> = {},
  ): Promise<{ server: WireServer; model: BaseChatModel }> {
    const server = await wireServer(reply);
    const { model } = await resolveModel({ model: spec, env: server.env(provider), ...options });
    return { server, model };
  }

  async function failure(reply: WireReply, options: Partial<ResolveOptions> = {}): Promise<RunFailure> {
    const { model } = await connect(() => reply, options);
    const error: unknown = await model.invoke("hello").then(
      (answer) => new Error(`answered ${answer.text}`),
      (thrown: unknown) => thrown,
    );
    return modelFailure(error);
  }

  test("the parameters that the operator set for a model, and nobody else's", async () => {
    const { server, model } = await connect(() => ({ text: "Yes." }), {
      parameters: {
        [`${provider}:`]: { temperature: 1, maxTokens: 5 },
        [spec]: { temperature: 0.25, maxTokens: 777, model: "another", maxRetries: 9 },
        [`${spec}-other`]: { temperature: 0.5 },
      },
    });
    await model.invoke("hello");
    const [sent] = server.requests;
    const { temperature, model: called, ...body } = sent?.body ?? {};
    expect({ temperature, called }).toEqual({ temperature: 0.25, called: spec.split(":")[1] });
    expect(body["max_tokens"] ?? body["max_completion_tokens"] ?? body["max_output_tokens"]).toBe(777);
  });

  test("a conversation with tools, through the provider's own package", async () => {
    const { server, model } = await connect(({ messages }) =>
      messages.at(-1)?.toolResults.length === 2
        ? { text: "Both are empty.", usage: { inputTokens: 300, outputTokens: 7, cachedInputTokens: 200 } }
        : {
            text: "I read both.",
            toolCalls: [
              { name: "read_file", args: { file_path: '/a "quoted" ü.md', limit: 3 } },
              { name: "read_file", args: { file_path: "/b.md" } },
            ],
          },
    );
    const bound = model.bindTools!([readFile]);
    const system = new SystemMessage("Be brief.");
    const human = new HumanMessage("Read /a and /b.");
    const first = await bound.invoke([system, human]);
    expect(first.text).toBe("I read both.");
    expect(first.tool_calls?.map(({ args }) => args)).toEqual([
      { file_path: '/a "quoted" ü.md', limit: 3 },
      { file_path: "/b.md" },
    ]);
    const results = (first.tool_calls ?? []).map(
      ({ id = "", name }) => new ToolMessage({ content: "empty", tool_call_id: id, name }),
    );
    const last = await bound.invoke([system, human, first, ...results]);
    expect(last.text).toBe("Both are empty.");
    expect(last.usage_metadata).toMatchObject({
      input_tokens: 300,
      input_token_details: { cache_read: 200 },
    });
    // Anthropic's package adds the count of the opening event to the final one.
    expect([7, 8]).toContain(last.usage_metadata?.output_tokens);
    expect(server.refusals).toEqual([]);
    expect(server.requests.map(({ tools, stream, protocol }) => ({ tools, stream, protocol }))).toEqual(
      [0, 1].map(() => ({ tools: ["read_file"], stream: true, protocol })),
    );
    const [sent] = server.requests;
    expect(sent?.messages.map(({ role, text }) => ({ role, text }))).toEqual([
      { role: "system", text: "Be brief." },
      { role: "user", text: "Read /a and /b." },
    ]);
  });

  test("streams its answer in pieces", async () => {
    const { model } = await connect(() => ({ text: "one two three four five six seven eight" }));
    const texts: string[] = [];
    for await (const chunk of await model.stream("count")) texts.push(chunk.text);
    expect(texts.filter((text) => text !== "").length).toBeGreaterThan(2);
    expect(texts.join("")).toBe("one two three four five six seven eight");
  });

  test("a history that breaks the provider's rules is refused by name", async () => {
    const { server, model } = await connect(() => ({ text: "never" }));
    const dangling = new AIMessage({
      content: "x",
      tool_calls: [{ id: "call_1", name: "read_file", args: {} }],
    });
    const error: unknown = await model.bindTools!([readFile])
      .invoke([new HumanMessage("a"), dangling, new HumanMessage("b")])
      .catch((thrown: unknown) => thrown);
    expect(modelFailure(error).code).toBe("model_error");
    expect(modelFailure(error).message).toContain("call_1");
    expect(server.requests).toEqual([]);
  });

  test.each<[WireReply, string, RegExp]>([
    [
      { status: 401, message: "invalid key sk-abcdefghijklmnop" },
      "model_auth",
      /refused the key \(HTTP 401\)/,
    ],
    [{ status: 403, message: "not in your region" }, "model_auth", /not in your region/],
    [{ status: 404, message: "model: nope-1" }, "model_not_found", /Check the name after the colon/],
    [
      { status: 429, message: "slow down", headers: { "retry-after": "7" } },
      "model_rate_limited",
      /Wait 7 s/,
    ],
    [
      { status: 429, message: "You exceeded your current quota", code: "insufficient_quota" },
      "model_rate_limited",
      /billing/,
    ],
    [{ status: 500, message: "Internal server error" }, "model_unavailable", /HTTP 500/],
    [{ status: 503, message: "try later" }, "model_unavailable", /HTTP 503/],
    [{ status: 529, message: "Overloaded" }, "model_unavailable", /HTTP 529/],
    [{ status: 400, message: "temperature: out of range" }, "model_error", /temperature: out of range/],
    [{ status: 413, message: "Request exceeds the maximum size" }, "context_overflow", /new thread/],
    [
      { status: 400, message: "prompt is too long: 250000 tokens > 200000 maximum" },
      "context_overflow",
      /new thread/,
    ],
    [
      {
        status: 400,
        message: "This model's maximum context length is 128000 tokens.",
        code: "context_length_exceeded",
      },
      "context_overflow",
      /new thread/,
    ],
    [{ fault: "refuse" }, "model_unavailable", /connection failed/],
    [{ fault: "cut" }, "model_stream_broken", /in the middle of an answer/],
    [{ fault: "end" }, "model_stream_broken", /in the middle of an answer/],
    [
      { fault: "report", error: { status: 529, message: "Overloaded", code: "server_error" } },
      "model_unavailable",
      /Overloaded/,
    ],
  ])("%j", async (reply, code, message) => {
    const failed = await failure(reply);
    expect(failed.message).toMatch(message);
    expect(failed.code).toBe(code);
    expect(failed.message).not.toMatch(/sk-|Troubleshooting|\n|\bat \//);
  });

  test("no answer in time", async () => {
    const failed = await failure({ fault: "hang" }, { requestMs: 50 });
    expect(failed.code).toBe("model_unavailable");
    expect(failed.message).toContain("did not answer in time");
  });

  test("silence in the middle of an answer", async () => {
    const failed = await failure({ fault: "stall" }, { idleMs: 50 });
    expect(failed.code).toBe("model_stream_broken");
  });

  test("a wrong key: the message has neither key", async () => {
    const server = await wireServer(() => ({ text: "never" }));
    const env = {
      ...server.env(provider),
      ANTHROPIC_API_KEY: "sk-wrong-key-123456",
      OPENAI_API_KEY: "sk-wrong-key-123456",
    };
    const { model } = await resolveModel({ model: spec, env });
    const error: unknown = await model.invoke("hello").catch((thrown: unknown) => thrown);
    const failed = modelFailure(error, spec);
    expect(failed.code).toBe("model_auth");
    expect(failed.message).toContain(`The model ${spec} refused the key`);
    expect(failed.message).not.toMatch(/sk-wr|3456/);
  });

  test("nobody listening", async () => {
    const server = await startWireServer(() => ({ text: "never" }));
    await server.close();
    const { model } = await resolveModel({ model: spec, env: server.env(provider) });
    const failed = modelFailure(await model.invoke("hello").catch((thrown: unknown) => thrown));
    expect(failed.code).toBe("model_unavailable");
    expect(failed.message).toContain("ECONNREFUSED");
  });

  test.each([
    ["text/html", "<html>Sign in</html>", "model_unavailable", /did not answer like a model/],
    ["application/json", "{}", "model_unavailable", /did not answer like a model/],
    ["text/event-stream", "data: {not\n\n", "model_stream_broken", /middle/],
  ])("an answer of type %s: %s", async (type, body, code, message) => {
    const url = await httpServer(type, body);
    const failed = await failureAt(url);
    expect(failed).toMatchObject({ code, message: expect.stringMatching(message) as string });
  });

  test("an endpoint that speaks no TLS", async () => {
    const failed = await failureAt((await httpServer("text/plain", "x")).replace("http:", "https:"));
    expect(failed.code).toBe("model_unavailable");
    expect(failed.message).toMatch(/no secure connection could be made \((?:ERR_SSL_\w+|EPROTO)\)/);
  });

  async function failureAt(url: string): Promise<RunFailure> {
    const base = url + (provider === "openai" ? "/v1" : "");
    const env = {
      ANTHROPIC_API_KEY: "k",
      ANTHROPIC_BASE_URL: base,
      OPENAI_API_KEY: "k",
      OPENAI_BASE_URL: base,
    };
    const { model } = await resolveModel({ model: spec, env });
    return modelFailure(await model.invoke("hello").catch((thrown: unknown) => thrown));
  }

  test("a cancelled call ends the request and is not tried again", async () => {
    const controller = new AbortController();
    const { server, model } = await connect(() => {
      setImmediate(() => controller.abort());
      return { fault: "hang" };
    });
    await expect(model.invoke("hello", { signal: controller.signal })).rejects.toThrow(/abort/i);
    await expect.poll(() => server.abandoned).toBe(1);
    expect(server.requests).toHaveLength(1);
  });
});
