import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { MemorySaver } from "@langchain/langgraph";
import { buildAgent } from "../../../src/agent/agent.ts";
import { type NamedEntries, modelChoice, resolveConnection } from "../../../src/agent/models/choose.ts";
import { contextWindow, findExchange } from "../../../src/agent/models/exchange.ts";
import {
  PROVIDERS,
  buildProfile,
  findFamily,
  joinRules,
} from "../../../src/agent/models/profiles/profile.ts";
import { profileTable, requestRules } from "../../../src/agent/models/profiles/schema.ts";
import { knownWindow } from "../../../src/agent/models/profiles/profile.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { addressOf } from "../../support/http-address.ts";
import { collect } from "../../support/run-agent.ts";
import { openaiChat } from "../../support/wire-server-openai.ts";

const TABLE = new URL("../../../src/agent/models/profiles/profiles.json", import.meta.url);

describe("the table", () => {
  const table = profileTable.parse(JSON.parse(readFileSync(TABLE, "utf8")));

  test("has each family once, with a pattern that can be compiled", () => {
    const ids = table.families.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { match } of table.families) expect(() => new RegExp(match)).not.toThrow();
  });

  test("has no host that is, or ends with, a host of another provider", () => {
    const hosts = Object.entries(table.providers).flatMap(([id, { hosts = [] }]) =>
      hosts.map((host) => ({ id, host })),
    );
    const shared = hosts.flatMap(({ id, host }) =>
      hosts
        .filter((other) => other.id !== id && (other.host === host || other.host.endsWith(`.${host}`)))
        .map((other) => `${host} of ${id}, ${other.host} of ${other.id}`),
    );
    expect(shared).toEqual([]);
  });

  test("has an address, or a package, for each provider, and a name for each variable", () => {
    for (const { wire, base, package: own, keys = [], baseVariables = [] } of Object.values(
      table.providers,
    )) {
      expect(wire === undefined ? own?.chatModel : base).toBeTruthy();
      for (const name of [...keys, ...baseVariables]) expect(name).toMatch(/^[A-Z][A-Z0-9_]+$/);
    }
  });

  test("finds each provider at its own address", () => {
    // An address without a host of its own is the usual one of another server.
    const own = Object.entries(table.providers).filter(([, { hosts, base }]) => hosts && base);
    for (const [id, { base = "" }] of own) {
      const address = base.replace(/^\{DATABRICKS_HOST\}/, "https://adb-1.2.azuredatabricks.net");
      const filled = address.replace("{WATSONX_URL}", "https://us-south.ml.cloud.ibm.com");
      const at = filled.replace(/\{[A-Z_]+\}/, "acme");
      expect(buildProfile("m", { provider: "openai", address: at }).provider, at).toBe(id);
    }
  });
});

describe("the family of a name", () => {
  test.each([
    ["claude-opus-4-6..5", "claude-opus-4-6 anthropic/claude-sonnet-4.6 us.anthropic.claude-opus-4-7-v1:0"],
    ["claude-opus-4-6..5", "claude-sonnet-5 global.anthropic.claude-opus-5-20261101-v1:0"],
    ["claude-4-5", "claude-sonnet-4-5-20250929 claude-sonnet-4-20250514 claude-haiku-4.5 claude-4-sonnet"],
    ["claude-4-5", "apac.anthropic.claude-sonnet-4-20250514-v1:0 claude-opus-4-1@20250805"],
    ["claude-4-5", "databricks-claude-sonnet-4 vertex_ai/claude-opus-4@20250514"],
    ["claude-3-0", "claude-3-opus-20240229 claude-3-haiku"],
    ["claude-3", "claude-3-5-sonnet-v2@20241022 anthropic/claude-3.7-sonnet:thinking"],
    ["gpt-5.4-mini-nano", "gpt-5.4-mini openai/gpt-5.4-nano-2026-03-05"],
    ["gpt-5.4+", "gpt-5.4 openai/gpt-5.6 gpt-5.5-pro"],
    ["gpt-5..5.3", "gpt-5 gpt-5-mini-2025-08-07 openai/gpt-5.3-codex azure/gpt-5.1"],
    ["gpt-5-chat", "gpt-5-chat-latest gpt-5.2-chat-latest"],
    ["gpt-4.1", "gpt-4.1 openai/gpt-4.1-mini-2025-04-14 ft:gpt-4.1-nano-2025-04-14:org::abc"],
    ["gpt-4o", "gpt-4o-mini gpt-4o-2024-08-06 chatgpt-4o-latest my-gpt-4o gpt-4-turbo-2024-04-09"],
    [
      "o3-o4",
      "o3 o3-mini openai/o3-pro o4-mini-2025-04-16 o1 o1-2024-12-17 o3:free ft:o4-mini-2025-04-16:o::x",
    ],
    ["gpt-oss", "gpt-oss:20b openai/gpt-oss-120b:free openai.gpt-oss-120b-1:0 gpt-oss-20b-MXFP4-GGUF"],
    ["gemini-3", "gemini-3-pro-preview google/gemini-3.1-flash"],
    ["gemini-2.5", "gemini-2.5-pro models/gemini-2.5-flash-lite"],
    ["gemma-4", "gemma-4-31b-it gemma4:26b"],
    ["gemma-3", "gemma3:27b google/gemma-3-12b-it:free unsloth/gemma-3-27b-it-GGUF"],
    ["deepseek-v4", "deepseek-v4-flash deepseek-ai/DeepSeek-V4-Pro"],
    ["deepseek-r1", "deepseek-reasoner deepseek-r1:7b us.deepseek.r1-v1:0 DeepSeek-R1-Distill-Llama-70B"],
    ["deepseek-r1", "deepseek/deepseek-r1-0528-qwen3-8b:free"],
    ["deepseek-v3", "deepseek-chat deepseek-ai/DeepSeek-V3.2-Exp accounts/fireworks/models/deepseek-v3p1"],
    ["deepseek-v3", "deepseek.v3-v1:0 deepseek/deepseek-chat-v3-0324:free deepseek-v3.1:671b-cloud"],
    ["qwen3.5+", "qwen3.5-plus Qwen/Qwen3.6-35B-A3B qwen3.5:27b accounts/fireworks/models/qwen3p5-397b"],
    [
      "qwen3-coder",
      "qwen3-coder:30b qwen/qwen3-coder-480b-a35b Qwen3-Coder-Next-Q4_K_M.gguf qwen3-coder-plus",
    ],
    ["qwen-hosted", "qwen-max qwen-plus-latest qwen-turbo-2025-04-28 qwen3-max"],
    ["qwen3", "Qwen/Qwen3-8B qwen3:8b qwen3-30b-a3b-instruct-2507-q4_K_M qwen-3-235b-a22b qwen3-4b:free"],
    ["qwen3", "teichai/Qwen3-8B-GPT-5-Codex-Distill-GGUF Qwen3-14B-Claude-Sonnet-4.5-Reasoning-Distill"],
    ["qwen3-vl", "qwen3-vl:8b qwen/qwen3-vl-235b-a22b-instruct"],
    ["qwen2.5-vl", "qwen2.5vl:7b Qwen/Qwen2.5-VL-72B-Instruct-AWQ qwen2-vl-7b"],
    ["qwen2.5", "qwen2.5:14b qwen2.5-coder:32b-instruct-q8_0 qwen/qwen-2.5-72b-instruct"],
    ["glm-5", "glm-5 z-ai/glm-5.1 zai-org/GLM-5-FP8"],
    ["glm-4.6..4.7", "glm-4.6 zai-org/GLM-4.7-Flash glm-4.6:cloud accounts/fireworks/models/glm-4p7"],
    ["glm-4.5", "glm-4.5-air z-ai/glm-4.5:free"],
    ["glm-4.5v-4.6v", "glm-4.5v zai-org/GLM-4.6V"],
    ["kimi-k2.5+", "kimi-k2.5 moonshotai/Kimi-K2.6 accounts/fireworks/models/kimi-k2p5"],
    ["kimi-k2", "kimi-k2-thinking moonshotai/kimi-k2-0905 kimi-k2:1t-cloud"],
    ["minimax-m2-m3", "MiniMax-M2.1 minimax/minimax-m2:free minimax-m3"],
    ["grok-4.3+", "grok-4.3 x-ai/grok-4-fast grok-4-1-fast-reasoning"],
    ["grok-4", "grok-4-0709 grok-code-fast-1"],
    ["grok-3", "grok-3-mini"],
    ["mistral-large-medium-small", "mistral-large-latest mistral-small-2603 devstral-2512 codestral-2508"],
    ["mistral", "mistral-large-2411 mistral-small3.2:24b open-mistral-nemo mistralai/mistral-small-3.1-24b"],
    ["mistral-7b-mixtral", "mistral:7b mistralai/Mistral-7B-Instruct-v0.3 mixtral-8x7b-32768 mistral"],
    ["magistral", "magistral-medium-2509 magistral:24b"],
    ["nemotron-3", "nvidia/nemotron-3-nano-30b-a3b:free NVIDIA-Nemotron-3-Super-120B"],
    ["llama-3-4", "llama3.1:8b-instruct-q4_0 meta.llama3-1-70b-instruct-v1:0 llama-3.3-70b-versatile"],
    ["llama-3-4", "meta-llama/Meta-Llama-3.1-70B-Instruct-Turbo databricks-meta-llama-3-3-70b-instruct"],
    ["llama-3-4", "accounts/fireworks/models/llama-v3p3-70b-instruct llama4:scout llama-4-maverick-17b-128e"],
    ["llama-3-4", "nvidia/llama-3.3-nemotron-super-49b-v1.5 nousresearch/hermes-3-llama-3.1-405b"],
    ["command-a", "command-a-03-2025 CohereLabs/c4ai-command-a-03-2025"],
    ["command-r", "command-r command-r-plus-08-2024 command-r7b:7b"],
    ["granite-3-4", "granite4:tiny-h ibm/granite-3-3-8b-instruct granite3.1-dense:8b"],
    ["phi-4-mini", "phi-4-mini-instruct phi4-mini:3.8b microsoft/phi-4-multimodal-instruct"],
    ["phi-4", "phi4:14b microsoft/phi-4"],
    ["mimo-v2-flash", "mimo-v2-flash"],
    ["mimo-v2", "xiaomi/mimo-v2-pro mimo-v2.5-pro"],
    ["step-3.5", "step-3.5-flash"],
    ["lfm2-olmo3-hunyuan-jamba-xlam-gigachat", "LFM2-8B-A1B allenai/olmo-3-32b-think jamba-large-1.7"],
  ])("%s: %s", (id, names) => {
    const found = names.split(" ").map((name) => [name, findFamily(name)?.id]);
    expect(found).toEqual(names.split(" ").map((name) => [name, id]));
  });

  test.each(
    [
      "o1-mini my-o3-finetune foo3 gpt-4 gpt-4-32k gpt-3.5-turbo gpt-50 claude-2.1 claude-instant-1.2",
      "llama3:8b llama3-70b-8192 llama-2-70b-chat codellama:34b tinyllama ollama-model llama-guard-3-8b",
      "gemma2:9b embeddinggemma gemma3:1b gemma-3n-e4b-it medgemma grok-2-1212 grok-beta qwq:32b qwen-vl-max",
      "qwen3-embedding:8b glm-4-9b-chat glm4:9b minimax-music-2 granite-code:8b granite-3-2b-instruct",
      "command-light my-command-tool nemotron-mini:4b checkpoint-step-3000 olmocr-2-7b phi3:mini default",
    ].flatMap((line) => line.split(" ")),
  )("%s has none", (name) => expect(findFamily(name)?.id).toBeUndefined());
});

test.each([
  ["openai", "https://api.x.ai/v1", "llama-3.3-70b", 128_000],
  ["openai", "http://192.168.1.7:8080/v1", "llama-3.3-70b", 32_000],
  ["openai", "http://localhost:9999/v1", "phi-4", 16_000],
  ["openai", "http://[::1]:9999/v1", "unheard-of", 32_000],
  ["openai", "http://host.docker.internal:1/v1", "unheard-of", 32_000],
  ["openai", "https://llm.example.com/v1", "unheard-of", undefined],
  ["ollama", "https://gpu.example.com/v1", "qwen3:8b", 32_000],
  // A gateway of one's own that passes requests on: the weights are not public.
  ["openai", "http://127.0.0.1:4000/v1", "claude-sonnet-4-5", 200_000],
  ["anthropic", "https://10.example.com", "claude-sonnet-4-5", 200_000],
])("the window of %s at %s for %s is %s", (provider, address, model, window) => {
  expect(knownWindow(buildProfile(model, { provider, address }))).toBe(window);
});

test("rules are joined: lists and records by their members, and no name goes round in a circle", () => {
  const first = requestRules.parse({
    drop: ["a"],
    put: { b: 1 },
    rename: { max_completion_tokens: "max_tokens" },
  });
  const second = requestRules.parse({
    drop: ["a", "c"],
    put: { d: 2 },
    rename: { max_tokens: "max_completion_tokens" },
  });
  expect(joinRules(first, undefined, second)).toEqual({
    drop: ["a", "c"],
    put: { b: 1, d: 2 },
    rename: { max_tokens: "max_completion_tokens" },
  });
  expect(joinRules(second, first).rename).toEqual({ max_completion_tokens: "max_tokens" });
  expect(joinRules(joinRules(first, second), joinRules(first, second))).toEqual(joinRules(first, second));
});

/** Variables of addresses that have a part of the account. */
const ACCOUNT = {
  DATABRICKS_HOST: "https://adb-1.2.azuredatabricks.net",
  SNOWFLAKE_ACCOUNT: "acme",
  WATSONX_URL: "https://us-south.ml.cloud.ibm.com",
  CLOUDFLARE_ACCOUNT_ID: "acc",
};
const BY_WIRE = Object.entries(PROVIDERS).flatMap(([id, { wire, keys = [] }]) =>
  wire === undefined ? [] : [{ id, wire, variable: keys[0] ?? "UNUSED" }],
);
const PATHS = { chat: "/chat/completions", messages: "/v1/messages" };

describe("requests of a provider", () => {
  let sent: Array<{ url: string; headers: Record<string, string> }>;
  beforeEach(() => {
    sent = [];
    vi.stubGlobal("fetch", async (url: string | URL, init: RequestInit) => {
      sent.push({ url: String(url), headers: Object.fromEntries(new Headers(init.headers)) });
      return new Response('{"error":{"message":"no"}}', { status: 418 });
    });
  });
  afterEach(() => void vi.unstubAllGlobals());

  async function ask(model: string, env: Record<string, string>, models: NamedEntries = {}) {
    const made = await resolveModel({ model, env, models });
    await made.model.invoke("hi").catch(() => undefined);
    const [request = { url: "", headers: {} }] = sent.splice(0);
    return { ...request, model: made.model };
  }

  test.each(BY_WIRE)("$id: by its name, and by its address", async ({ id, wire, variable }) => {
    const env = { ...ACCOUNT, [variable]: "key-1" };
    expect(modelChoice({ model: `${id}:some-model`, env })).toMatchObject({ ok: true, provider: id });
    const named = await ask(`${id}:some-model`, env);
    const { url = "" } = resolveConnection(id, env);
    const path = id === "openai" ? "/responses" : PATHS[wire];
    expect(named.url).toBe(`${url}${path}`);
    expect(url).toMatch(/^https?:\/\/[\w.-]+(?::\d+)?(?:\/(?!\/)|$)/);
    if (variable !== "UNUSED")
      expect(named.headers).toMatchObject(
        wire === "messages" ? { "x-api-key": "key-1" } : { authorization: "Bearer key-1" },
      );
    const general = wire === "messages" ? "anthropic" : "openai";
    const upper = general.toUpperCase();
    const other = await ask(`${general}:some-model`, {
      [`${upper}_BASE_URL`]: url,
      [`${upper}_API_KEY`]: "k2",
    });
    expect(other.url).toBe(named.url);
    // The usual port of `mlx` is that of llama.cpp.
    expect(findExchange(other.model)?.profile.provider).toBe(id === "mlx" ? "llamacpp" : id);
    expect(findExchange(other.model)?.rules).toEqual(findExchange(named.model)?.rules);
  });

  test.each([
    ["a bare host", "adb-1.2.azuredatabricks.net"],
    ["a slash at the end", "https://adb-1.2.azuredatabricks.net/"],
  ])("DATABRICKS_HOST with %s", async (_form, host) => {
    const { url } = await ask("databricks:m", { DATABRICKS_HOST: host, DATABRICKS_TOKEN: "k" });
    expect(url).toBe("https://adb-1.2.azuredatabricks.net/serving-endpoints/chat/completions");
  });

  test.each([
    ["127.0.0.1:11434", "http://127.0.0.1:11434/v1"],
    ["0.0.0.0", "http://127.0.0.1:11434/v1"],
    ["0.0.0.0:8888", "http://127.0.0.1:8888/v1"],
    ["gpu-box", "http://gpu-box:11434/v1"],
    ["localhost:11434/", "http://localhost:11434/v1"],
    ["http://gpu-box:1234", "http://gpu-box:1234/v1"],
    ["https://ollama.com", "https://ollama.com/v1"],
  ])("OLLAMA_HOST=%s is %s", async (host, url) => {
    expect((await ask("ollama:m", { OLLAMA_HOST: host })).url).toBe(`${url}/chat/completions`);
  });

  test("the server of Docker has a path of its own", async () => {
    const { url } = await ask("docker:m", { DOCKER_MODEL_BASE_URL: "http://localhost:12434" });
    expect(url).toBe("http://localhost:12434/engines/v1/chat/completions");
  });

  test("a bearer token of Anthropic's protocol takes the place of its own header, and a key goes before it", async () => {
    const env = { ANTHROPIC_BASE_URL: "http://127.0.0.1:3456", ANTHROPIC_AUTH_TOKEN: "token-1" };
    const { headers } = await ask("anthropic:m", env);
    expect(headers["authorization"]).toBe("Bearer token-1");
    expect(headers).not.toHaveProperty("x-api-key");
    const both = await ask("anthropic:m", { ...env, ANTHROPIC_API_KEY: "key-1" });
    expect(both.headers["x-api-key"]).toBe("key-1");
    expect(both.headers).not.toHaveProperty("authorization");
  });

  test("headers hold variables as they are, and are left out without them", async () => {
    const headers = {
      "cf-aig-authorization": "Bearer ${CF_TOKEN}",
      "x-team": "${TEAM}",
      "x-json": '{"A":1}',
    };
    const models: NamedEntries = { gateway: { baseUrl: "https://gw.example.com/v1", model: "m", headers } };
    const sent = await ask("gateway", { OPENAI_API_KEY: "k", CF_TOKEN: "abc/" }, models);
    expect(sent.headers).toMatchObject({ "cf-aig-authorization": "Bearer abc/", "x-json": '{"A":1}' });
    expect(sent.headers).not.toHaveProperty("x-team");
    const portkey = await ask("portkey:m", { PORTKEY_API_KEY: "pk", PORTKEY_PROVIDER: "@groq" });
    expect(portkey.headers).toMatchObject({ "x-portkey-api-key": "pk", "x-portkey-provider": "@groq" });
    expect(portkey.headers).not.toHaveProperty("x-portkey-config");
  });

  test("an entry of `models` names a provider, an address, a key, parameters and rules", async () => {
    const models: NamedEntries = {
      house: { model: "qwen3:8b", baseUrl: "http://gpu:8000/v1", keyVariable: "HOUSE_KEY", window: 64_000 },
      claude: {
        provider: "anthropic",
        model: "claude-sonnet-4-5",
        baseUrl: "https://gw.example.com/anthropic",
      },
      open: { provider: "openrouter", request: { drop: ["stop"] } },
    };
    const env = {
      HOUSE_KEY: "house",
      ANTHROPIC_API_KEY: "anthropic",
      OPENROUTER_API_KEY: "or",
      OPENAI_API_KEY: "oa",
    };
    const house = await ask("house", env, models);
    expect(house).toMatchObject({
      url: "http://gpu:8000/v1/chat/completions",
      headers: { authorization: "Bearer house" },
    });
    expect(contextWindow(house.model)).toBe(64_000);
    const claude = await ask("claude", env, models);
    expect(claude).toMatchObject({
      url: "https://gw.example.com/anthropic/v1/messages",
      // Only the provider's own host gets its key without being told.
      headers: { "x-api-key": "none" },
    });
    const open = await ask("open:z-ai/glm-4.6:free", env, models);
    expect(open).toMatchObject({
      url: "https://openrouter.ai/api/v1/chat/completions",
      headers: { authorization: "Bearer or" },
    });
    expect(findExchange(open.model)).toMatchObject({
      rules: { drop: ["stop"] },
      profile: { model: "z-ai/glm-4.6:free" },
    });
    expect(contextWindow(open.model)).toBe(204_000);
    const chosen = await ask("house:llama-3.3-70b", env, models);
    expect(findExchange(chosen.model)?.profile.model).toBe("llama-3.3-70b");
  });
});

test.each([
  [
    "anthropic:m",
    { ANTHROPIC_API_KEY: "${ANTHROPIC_API_KEY}" },
    "ANTHROPIC_API_KEY has the placeholder ${ANTHROPIC_API_KEY}",
  ],
  [
    "anthropic:m",
    { ANTHROPIC_AUTH_TOKEN: "${user_config.token}" },
    "ANTHROPIC_AUTH_TOKEN has the placeholder ${user_config.token}",
  ],
  [
    "openai:m",
    { OPENAI_API_KEY: "${user_config.key}" },
    "OPENAI_API_KEY has the placeholder ${user_config.key}",
  ],
  ["groq:m", { GROQ_API_KEY: "<your key>" }, "GROQ_API_KEY has the placeholder <your key>"],
  [
    undefined,
    { OPENAI_API_KEY: "${input:openai-key}" },
    "OPENAI_API_KEY has the placeholder ${input:openai-key}",
  ],
  [
    undefined,
    { MISTRAL_API_KEY: "mk" },
    "MISTRAL_API_KEY is set: choose one of its models as mistralai:NAME.",
  ],
  [
    "databricks:m",
    { DATABRICKS_TOKEN: "k" },
    "set DATABRICKS_HOST in the environment, or the whole address in DATABRICKS_BASE_URL",
  ],
  ["databricks:m", { DATABRICKS_TOKEN: "k", DATABRICKS_HOST: "${DATABRICKS_HOST}" }, "set DATABRICKS_HOST"],
  ["own", { OPENAI_API_KEY: "k" }, "needs the environment variable OWN_KEY"],
  ["none", { OPENAI_API_KEY: "k" }, "models.none names no model. Set its `model`, or choose none:MODEL."],
  ["nobody:m", {}, "Known providers: own, none, anthropic"],
])("of %s with %j: %s", (model, env, part) => {
  const models: NamedEntries = {
    own: { model: "m", baseUrl: "https://x.example.com/v1", keyVariable: "OWN_KEY" },
    none: { provider: "openai" },
  };
  const choice = modelChoice({ model, env, models });
  expect(choice.ok ? "" : choice.message).toContain(part);
});

test("a placeholder gives way to another variable", () => {
  const env = { ANTHROPIC_API_KEY: "${ANTHROPIC_API_KEY}", ANTHROPIC_AUTH_TOKEN: "t", OPENAI_API_KEY: "k" };
  expect(modelChoice({ env })).toMatchObject({ ok: true, provider: "anthropic" });
  expect(resolveConnection("anthropic", env)).toMatchObject({ key: "t", isBearer: true });
  expect(modelChoice({ env: { ...env, ANTHROPIC_AUTH_TOKEN: "%TOKEN%" } })).toMatchObject({
    provider: "openai",
  });
});

test("a main model and its fallback have their own endpoints, keys and names", async () => {
  const seen: Array<[string, string | undefined, string]> = [];
  const start = (name: string, status: number) =>
    addressOf(
      createServer((request, response) => {
        const parts: Buffer[] = [];
        request.on("data", (part: Buffer) => parts.push(part));
        request.on("end", () => {
          if (request.method !== "POST") return void response.writeHead(404).end();
          const body = JSON.parse(Buffer.concat(parts).toString("utf8")) as Record<string, unknown>;
          seen.push([name, request.headers.authorization, String(body["model"])]);
          response.writeHead(status, { "content-type": "text/event-stream" });
          const answer = openaiChat.events(openaiChat.read(body, 0), { text: `from ${name}` }).join("");
          response.end(status === 200 ? answer : "{}");
        });
      }),
    );
  const models: NamedEntries = {
    main: { model: "glm-4.6", baseUrl: `${await start("one", 503)}/v1`, keyVariable: "ONE_KEY" },
    spare: { baseUrl: `${await start("two", 200)}/v1`, keyVariable: "TWO_KEY" },
  };
  const env = { ONE_KEY: "first", TWO_KEY: "second" };
  const { model } = await resolveModel({ model: "main", env, models });
  const { model: other } = await resolveModel({ model: "spare:qwen3:8b", env, models });
  const limits = { modelPatienceMs: 0 };
  const agent = buildAgent({ model, fallbackModels: [other], limits, checkpointer: new MemorySaver() });
  const events = await collect(agent, { kind: "task", task: "go" });
  expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "from two" });
  expect(seen).toEqual([
    ["one", "Bearer first", "glm-4.6"],
    ["two", "Bearer second", "qwen3:8b"],
  ]);
});
