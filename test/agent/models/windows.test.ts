import { createServer } from "node:http";
import { afterEach, describe, expect, test, vi } from "vitest";
import { contextWindow } from "../../../src/agent/models/exchange.ts";
import { buildProfile } from "../../../src/agent/models/profiles/profile.ts";
import { askWindow } from "../../../src/agent/models/profiles/windows.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { addressOf } from "../../support/http-address.ts";
import { WIRE_KEY, wireServer } from "../../support/wire-server.ts";

interface Asked {
  path: string;
  method: string;
  headers: Record<string, string>;
  body: string;
}

/** A model whose server answers these paths with JSON, and no others. */
async function ask(
  provider: string,
  base: string,
  answers: Readonly<Record<string, unknown>>,
  model = "qwen3:8b",
): Promise<{ window: number | undefined; asked: Asked[] }> {
  const asked: Asked[] = [];
  const fetch = (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(input instanceof Request ? input.url : input);
    const headers = Object.fromEntries(new Headers(init.headers));
    asked.push({
      path: url.pathname,
      method: init.method ?? "GET",
      headers,
      body: typeof init.body === "string" ? init.body : "",
    });
    const answer = answers[url.pathname];
    return Promise.resolve(
      answer === undefined
        ? new Response('{"error":"Not Found"}', { status: 404 })
        : answer instanceof Response
          ? answer
          : new Response(typeof answer === "string" ? answer : JSON.stringify(answer)),
    );
  };
  const profile = buildProfile(model, { provider, address: base });
  const window = await askWindow(profile, { url: base, headers: { authorization: "Bearer k" } }, fetch);
  return { window, asked };
}

const OLLAMA = "http://127.0.0.1:11434/v1";
const OTHERS = [
  {
    id: "other",
    max_model_len: 4096,
    context_length: 4096,
    model_name: "other",
    name: "other",
    max_context_length: 4096,
  },
];

interface Row {
  server: string;
  provider: string;
  base: string;
  answers: Record<string, unknown>;
  window: number | undefined;
  paths: string[];
  model?: string;
}

const ROWS: Row[] = [
  {
    server: "Ollama, with the model loaded",
    provider: "ollama",
    base: OLLAMA,
    answers: {
      "/api/ps": { models: [...OTHERS, { name: "qwen3:8b", model: "qwen3:8b", context_length: 40_960 }] },
    },
    window: 40_960,
    paths: ["/api/ps"],
  },
  {
    server: "Ollama, with a latest model loaded",
    provider: "openai",
    base: "http://localhost:11434/v1",
    model: "devstral",
    answers: {
      "/api/ps": { models: [{ name: "devstral:latest", model: "devstral:latest", context_length: 16_384 }] },
    },
    window: 16_384,
    paths: ["/api/ps"],
  },
  {
    server: "Ollama, with a window set by the file of the model",
    provider: "ollama",
    base: OLLAMA,
    answers: {
      "/api/ps": { models: [] },
      "/api/show": {
        parameters:
          'temperature                    0.7\nnum_ctx                        65536\nstop    "<|im_end|>"',
        model_info: { "qwen3.context_length": 262_144 },
      },
    },
    window: 65_536,
    paths: ["/api/ps", "/api/show"],
  },
  {
    // The largest window of the family is not the one that the server reads with.
    server: "Ollama, with a window of the family alone",
    provider: "ollama",
    base: OLLAMA,
    answers: {
      "/api/ps": { models: null },
      "/api/show": { model_info: { "qwen3.context_length": 262_144 } },
    },
    window: undefined,
    paths: ["/api/ps", "/api/show"],
  },
  {
    server: "LM Studio",
    provider: "lmstudio",
    base: "http://127.0.0.1:1234/v1",
    model: "qwen/qwen3-8b",
    answers: {
      "/api/v0/models": {
        data: [
          ...OTHERS,
          { id: "qwen/qwen3-8b", state: "loaded", max_context_length: 131_072, loaded_context_length: 8192 },
        ],
      },
    },
    window: 8192,
    paths: ["/api/v0/models"],
  },
  {
    server: "LM Studio, at an unknown port",
    provider: "lmstudio",
    base: "http://192.168.1.9:8888/v1",
    answers: {
      "/api/v0/models": { data: OTHERS },
      "/v1/models": { data: [{ id: "qwen3:8b", max_context_length: 32_768 }] },
    },
    window: 32_768,
    paths: ["/api/v0/models", "/v1/models"],
  },
  {
    server: "llama.cpp",
    provider: "llamacpp",
    base: "http://127.0.0.1:8080/v1",
    answers: { "/props": { default_generation_settings: { n_ctx: 16_384, params: {} }, total_slots: 1 } },
    window: 16_384,
    paths: ["/props"],
  },
  {
    server: "llama.cpp, without its properties",
    provider: "llamacpp",
    base: "http://127.0.0.1:8080/v1",
    answers: { "/v1/models": { data: [{ id: "qwen3:8b", meta: { n_ctx_train: 262_144, n_ctx: 20_480 } }] } },
    window: 20_480,
    paths: ["/props", "/v1/models"],
  },
  {
    server: "vLLM",
    provider: "vllm",
    base: "http://127.0.0.1:8000/v1",
    model: "Qwen/Qwen3-8B",
    answers: { "/v1/models": { data: [...OTHERS, { id: "Qwen/Qwen3-8B", max_model_len: 40_960 }] } },
    window: 40_960,
    paths: ["/v1/models"],
  },
  {
    server: "SGLang",
    provider: "sglang",
    base: "http://127.0.0.1:30000/v1",
    answers: { "/v1/models": { data: [{ id: "qwen3:8b", max_model_len: 32_768 }] } },
    window: 32_768,
    paths: ["/v1/models"],
  },
  {
    server: "LiteLLM",
    provider: "litellm",
    base: "http://127.0.0.1:4000/v1",
    answers: {
      "/v1/model/info": {
        data: [
          { model_name: "other", model_info: { max_input_tokens: 1_000_000 } },
          {
            model_name: "qwen3:8b",
            litellm_params: { model: "x" },
            model_info: { max_input_tokens: 128_000, max_output_tokens: 8192 },
          },
        ],
      },
    },
    window: 128_000,
    paths: ["/v1/model/info"],
  },
  {
    server: "OpenRouter",
    provider: "openrouter",
    base: "https://openrouter.ai/api/v1",
    model: "z-ai/glm-4.6",
    answers: {
      "/api/v1/models": {
        data: [
          ...OTHERS,
          { id: "z-ai/glm-4.6", context_length: 204_800, top_provider: { context_length: 202_752 } },
        ],
      },
    },
    window: 202_752,
    paths: ["/api/v1/models"],
  },
  {
    server: "Copilot",
    provider: "copilot",
    base: "https://api.githubcopilot.com",
    model: "gpt-4.1",
    answers: {
      "/models": {
        data: [
          {
            id: "gpt-4.1",
            capabilities: {
              limits: {
                max_context_window_tokens: 128_000,
                max_prompt_tokens: 64_000,
                max_output_tokens: 16_384,
              },
            },
          },
        ],
      },
    },
    window: 64_000,
    paths: ["/models"],
  },
  {
    server: "a server that is not known",
    provider: "openai",
    base: "https://llm.example.com/v1",
    answers: { "/props": { default_generation_settings: { n_ctx: 8192 } } },
    window: 8192,
    paths: ["/v1/models", "/props"],
  },
];

test.each(ROWS)("$server", async ({ provider, base, answers, window, paths, model }) => {
  const told = await ask(provider, base, answers, model);
  expect(told.window).toBe(window);
  expect(told.asked.map(({ path }) => path)).toEqual(paths);
  for (const { headers, method, body } of told.asked) {
    expect(headers["authorization"]).toBe("Bearer k");
    expect(method === "POST" ? JSON.parse(body) : body).toEqual(
      method === "POST" ? { model: model ?? "qwen3:8b" } : "",
    );
  }
});

describe("an answer that cannot be used", () => {
  test.each<[string, unknown]>([
    ["text", "not JSON"],
    ["null", "null"],
    ["a number", "7"],
    ["a list of other things", [1, null, "x", []]],
    ["no list", { data: "many" }],
    ["another model", { data: OTHERS }],
    ["a window as text", { data: [{ id: "qwen3:8b", max_model_len: "32768" }] }],
    ["a window of nothing", { data: [{ id: "qwen3:8b", max_model_len: 0 }] }],
    ["a window below zero", { data: [{ id: "qwen3:8b", max_model_len: -1 }] }],
    ["a window that is tiny", { data: [{ id: "qwen3:8b", max_model_len: 512 }] }],
    ["a part of a token", { data: [{ id: "qwen3:8b", max_model_len: 32_768.5 }] }],
    ["an endless window", '{"data":[{"id":"qwen3:8b","max_model_len":1e999}]}'],
    ["a refusal", new Response("no", { status: 401 })],
    ["a failure", new Response("no", { status: 500 })],
  ])("%s", async (_what, answer) => {
    const { window } = await ask("vllm", "http://127.0.0.1:8000/v1", { "/v1/models": answer });
    expect(window).toBeUndefined();
  });

  test("10 MB, announced or not, are not read to the end", async () => {
    for (const isAnnounced of [true, false]) {
      let sent = 0;
      const piece = new TextEncoder().encode(" ".repeat(65_536));
      const body = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          sent += piece.length;
          controller.enqueue(piece);
          if (sent > 10 * 1024 ** 2) controller.close();
        },
      });
      const headers = new Headers(isAnnounced ? [["content-length", String(10 * 1024 ** 2)]] : []);
      const answers = { "/v1/models": new Response(body, { headers }) };
      const { window } = await ask("vllm", "http://127.0.0.1:8000/v1", answers);
      expect(window).toBeUndefined();
      expect(sent).toBeLessThan(6 * 1024 ** 2);
    }
  });

  test("an address that sends elsewhere is not followed", async () => {
    const elsewhere: string[] = [];
    const target = await addressOf(
      createServer((request, response) => {
        elsewhere.push(request.url ?? "");
        response.end("{}");
      }),
    );
    const url = await addressOf(
      createServer((_request, response) =>
        response.writeHead(302, { location: `${target}/v1/models` }).end(),
      ),
    );
    const profile = buildProfile("m", { provider: "vllm", address: `${url}/v1` });
    expect(
      await askWindow(profile, { url: `${url}/v1`, headers: { authorization: "Bearer k" } }),
    ).toBeUndefined();
    expect(elsewhere).toEqual([]);
  });

  test("a server that never answers", async () => {
    const url = await addressOf(createServer(() => undefined));
    const profile = buildProfile("m", { provider: "vllm", address: `${url}/v1` });
    expect(await askWindow(profile, { url: `${url}/v1`, headers: {} })).toBeUndefined();
  });

  test("no server at all", async () => {
    const profile = buildProfile("m", { provider: "vllm", address: "http://127.0.0.1:1/v1" });
    expect(await askWindow(profile, { url: "http://127.0.0.1:1/v1", headers: {} })).toBeUndefined();
    expect(await askWindow(profile, { url: "nowhere", headers: {} })).toBeUndefined();
  });
});

describe("no question is sent to", () => {
  test.each([
    ["openai", "https://api.openai.com/v1"],
    ["openai", "https://eu.api.openai.com/v1"],
    ["anthropic", "https://api.anthropic.com"],
    ["openai", "https://api.anthropic.com/v1"],
    ["openai", "https://generativelanguage.googleapis.com/v1beta/openai"],
    ["deepseek", "https://api.deepseek.com"],
    ["groq", "https://api.groq.com/openai/v1"],
    ["openai", "https://acme.openai.azure.com/openai/v1"],
  ])("%s at %s", async (provider, base) => {
    expect(await ask(provider, base, {})).toEqual({ window: undefined, asked: [] });
  });
});

describe("a model", () => {
  afterEach(() => void vi.unstubAllGlobals());

  test("asks its server once, after its first answer, and works meanwhile", async () => {
    const server = await wireServer(() => ({ text: "hi" }));
    const asked: string[] = [];
    const real = globalThis.fetch;
    vi.stubGlobal("fetch", async (input: string | URL, init: RequestInit) => {
      if (init.method === "POST") return real(input, init);
      asked.push(`${new URL(input).pathname} ${new Headers(init.headers).get("authorization")}`);
      return new Response(JSON.stringify({ data: [{ id: "m", max_model_len: 24_576 }] }));
    });
    const { model } = await resolveModel({ model: "openai:m", env: server.env("openai") });
    expect(contextWindow(model)).toBe(32_000);
    expect(asked).toEqual([]);
    await model.invoke("hi");
    await expect.poll(() => contextWindow(model)).toBe(24_576);
    await model.invoke("hi");
    expect(asked).toEqual([`/v1/models Bearer ${WIRE_KEY}`]);
  });

  test("has the window that a person set, whatever its server reports", async () => {
    const server = await wireServer(() => ({ text: "hi" }));
    const entry = {
      baseUrl: `${server.url}/v1`,
      model: "m",
      keyVariable: "OPENAI_API_KEY",
      window: 12_345,
    };
    const { model } = await resolveModel({
      model: "own",
      env: { OPENAI_API_KEY: WIRE_KEY },
      models: { own: entry },
    });
    await model.invoke("hi");
    expect(contextWindow(model)).toBe(12_345);
  });
});
