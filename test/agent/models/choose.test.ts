import { describe, expect, test } from "vitest";
import { resolveConnection, modelChoice } from "../../../src/agent/models/choose.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { ConfigurationError } from "../../../src/core/errors.ts";

const ANTHROPIC = { ANTHROPIC_API_KEY: "sk-ant-1234567890" };
const OPENAI = { OPENAI_API_KEY: "sk-openai-1234567890" };

describe("the model", () => {
  test.each([
    [{}, ANTHROPIC, "anthropic:claude-sonnet-4-5-20250929", "api.anthropic.com"],
    [{}, OPENAI, "openai:gpt-5.4", "api.openai.com"],
    [{}, { ...OPENAI, ...ANTHROPIC }, "anthropic:claude-sonnet-4-5-20250929", "api.anthropic.com"],
    [{}, { ...OPENAI, ANTHROPIC_API_KEY: " " }, "openai:gpt-5.4", "api.openai.com"],
    [{ model: "openai:gpt-4.1" }, { ...OPENAI, ...ANTHROPIC }, "openai:gpt-4.1", "api.openai.com"],
    [{ model: " offline " }, {}, "offline", undefined],
    [{ model: ' "gpt-5" ' }, OPENAI, "openai:gpt-5", "api.openai.com"],
    [{ model: "${user_config.model}" }, OPENAI, "openai:gpt-5.4", "api.openai.com"],
    [{}, { ...OPENAI, ANTHROPIC_API_KEY: "${user_config.key}" }, "openai:gpt-5.4", "api.openai.com"],
    [{ model: "gpt-5" }, OPENAI, "openai:gpt-5", "api.openai.com"],
    [{ model: "o3-mini" }, OPENAI, "openai:o3-mini", "api.openai.com"],
    [{ model: "claude-x" }, ANTHROPIC, "anthropic:claude-x", "api.anthropic.com"],
    [{ model: "gemini-2.5-pro" }, {}, "google-vertexai:gemini-2.5-pro", undefined],
    [
      { model: "openai:qwen3:8b" },
      { OPENAI_BASE_URL: "http://127.0.0.1:11434/v1" },
      "openai:qwen3:8b",
      "127.0.0.1:11434",
    ],
    [{ model: "ollama:llama3:8b" }, {}, "ollama:llama3:8b", "127.0.0.1:11434"],
    [
      {},
      { ...ANTHROPIC, ANTHROPIC_BASE_URL: "https://u:p@proxy.local:8443/x" },
      "anthropic:claude-sonnet-4-5-20250929",
      "proxy.local:8443",
    ],
  ])("of %j with %j is %s at %s", (options, env, spec, endpoint) => {
    const choice = modelChoice({ ...options, env });
    expect(choice).toMatchObject({ ok: true, spec });
    expect(choice.ok && choice.endpoint).toBe(endpoint);
    expect(JSON.stringify(choice)).not.toMatch(/sk-|u:p/);
  });

  test.each([
    ["its own host", "https://api.anthropic.com", undefined, ["ANTHROPIC_API_KEY"]],
    ["another host", "https://gateway.example.com", undefined, []],
    ["another host, with a key of its own", "https://gateway.example.com", "GATEWAY_KEY", ["GATEWAY_KEY"]],
  ])("an entry at %s names the variables whose key is sent", (_where, baseUrl, keyVariable, keys) => {
    const entry = { provider: "anthropic", model: "claude-x", baseUrl, ...(keyVariable && { keyVariable }) };
    const env = { ...ANTHROPIC, GATEWAY_KEY: "sk-gateway" };
    expect(modelChoice({ model: "house", env, models: { house: entry } })).toMatchObject({ ok: true, keys });
    const sent = resolveConnection("anthropic", env, entry);
    expect(sent.key).toBe(keys[0] === undefined ? undefined : { ...env }[keys[0] as keyof typeof env]);
  });

  test.each([
    ["docker/cli#3630", '"sk-1"\r'],
    ["copied with a line end", "sk-1\n"],
  ])("%s: a key is read without what is around it", (_source, key) => {
    expect(resolveConnection("openai", { OPENAI_API_KEY: key }).key).toBe("sk-1");
  });

  test.each([
    ["JohnnyZ93/oai-compatible-copilot#110", "anthropic", "https://api.x.com/eu/v1", "https://api.x.com/eu"],
    ["vellum-ai/vellum-assistant#25930", "anthropic", "https://x.ai/api/v1/messages/", "https://x.ai/api"],
    ["a slash at the end", "anthropic", "https://api.x.com/", "https://api.x.com"],
    ["NousResearch/hermes-agent#7516", "openai", "http://127.0.0.1:11434", "http://127.0.0.1:11434/v1"],
    ["jakobdylanc/llmcord#56", "openai", "http://localhost:1234/", "http://localhost:1234/v1"],
    ["LibreChat-AI/librechat.ai#278", "openai", "http://h:1/v1/chat/completions", "http://h:1/v1"],
    ["ys-ll/uniterm#365", "openai", "https://x.cn/api/paas/v4/chat/completions", "https://x.cn/api/paas/v4"],
    ["an address without a version", "openai", "https://api.x.com/", "https://api.x.com"],
    ["an address of its own form", "openai", "https://x.com/openai?v=1", "https://x.com/openai?v=1"],
  ])("%s: the endpoint of %s at %s is %s", (_source, provider, address, url) => {
    const env = { ANTHROPIC_BASE_URL: address, OPENAI_BASE_URL: address };
    expect(resolveConnection(provider, env).url).toBe(url);
  });

  test("a placeholder in its place is ignored and named", () => {
    const choice = modelChoice({ model: "${user_config.model}", env: OPENAI });
    expect(choice.ok && choice.why).toContain("did not replace ${user_config.model}");
  });

  test("without a key and a choice: the three ways out", () => {
    const choice = modelChoice({ env: {} });
    expect(choice).toMatchObject({ ok: false, code: "model_not_configured" });
    const message = choice.ok ? "" : choice.message;
    expect(message).toMatch(
      /1\. .*ANTHROPIC_API_KEY or OPENAI_API_KEY.*\n2\. .*provider:model.*\n3\. .*offline/,
    );
  });

  test.each([
    [{ model: "anthropic:claude-x" }, {}, "model_key_missing", "ANTHROPIC_API_KEY"],
    [{ model: "groq:llama" }, { ...OPENAI }, "model_key_missing", "GROQ_API_KEY"],
    [
      { model: "gpt-5" },
      {},
      "model_key_missing",
      "'openai:gpt-5' needs the environment variable OPENAI_API_KEY",
    ],
    [{ model: "llama3" }, ANTHROPIC, "model_unknown", "'provider:llama3'"],
    [{ model: "offline2" }, ANTHROPIC, "model_unknown", "'provider:offline2'"],
    [{ model: "nobody:model" }, {}, "model_unknown", "Known providers: anthropic, openai,"],
    [{ model: "constructor:model" }, {}, "model_unknown", "'constructor'"],
    [{ model: "openai:" }, OPENAI, "model_unknown", "openai:"],
    [{}, { ...OPENAI, OPENAI_BASE_URL: "localhost:8080" }, "model_endpoint_invalid", "OPENAI_BASE_URL"],
  ])("of %j with %j is refused as %s", async (options, env, code, part) => {
    const choice = modelChoice({ ...options, env });
    expect(choice).toMatchObject({ ok: false, code });
    expect(choice.ok ? "" : choice.message).toContain(part);
    const error: unknown = await resolveModel({ ...options, env }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error).toMatchObject({ code, message: choice.ok ? "" : choice.message });
  });

  test("of a provider whose package is not installed names the package", async () => {
    const error: unknown = await resolveModel({
      model: "cohere:command-a",
      env: { CO_API_KEY: "co_12345678" },
    }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "model_package_missing" });
    expect((error as Error).message).toContain("npm install @langchain/cohere");
  });

  test("is the provider's own, with the endpoint and the key of the given environment", async () => {
    const { model, name, provider } = await resolveModel({
      env: { ...ANTHROPIC, ANTHROPIC_API_KEY: `${ANTHROPIC.ANTHROPIC_API_KEY}\n` },
    });
    expect({ name, provider, type: model._llmType() }).toEqual({
      name: "anthropic:claude-sonnet-4-5-20250929",
      provider: "anthropic",
      type: "anthropic",
    });
    expect(model).toMatchObject({ apiKey: ANTHROPIC.ANTHROPIC_API_KEY, apiUrl: "https://api.anthropic.com" });
  });

  test.each([
    [{}, true],
    [{ OPENAI_BASE_URL: "https://eu.api.openai.com/v1" }, true],
    [{ OPENAI_BASE_URL: "http://127.0.0.1:11434/v1" }, false],
    [{ OPENAI_BASE_URL: "https://api.openai.com.example.net/v1" }, false],
  ])("of OpenAI with %j uses the responses API: %s", async (env, responses) => {
    const { model } = await resolveModel({ env: { ...OPENAI, ...env } });
    expect(model).toMatchObject({ useResponsesApi: responses });
  });
});
