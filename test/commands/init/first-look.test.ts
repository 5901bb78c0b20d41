import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { filesIn } from "../../support/files-in.ts";
import { clientsHere, modelsHere } from "../../../src/cli/first-look.ts";
import { findClient } from "../../../src/cli/clients/catalogue.ts";
import { greeting } from "../../../src/cli/greeting.ts";
import { keyOf, modelNameProblem } from "../../../src/cli/init-questions.ts";
import { addressOf } from "../../../src/cli/setup.ts";
import { colorsFor } from "../../../src/cli/terminal/text.ts";

function temporaryHome(): string {
  const home = filesIn();
  return home;
}

test("in the home folder the greeting says that there is no folder to work in", async () => {
  const home = temporaryHome();
  const host = { cwd: home, home, platform: "linux" as const, env: { PATH: "" } };
  const text = await greeting(host, { columns: 100, colors: colorsFor({ isTTY: false }, {}) });
  expect(text).toContain(
    "✖ Folder   none to work in: start in a project's folder, or name one with --workspace",
  );
  expect(text).not.toContain("Sandbox");
});

test("Codex is found set up where CODEX_HOME says", () => {
  const home = temporaryHome();
  const folder = join(home, "elsewhere");
  mkdirSync(folder);
  writeFileSync(join(folder, "config.toml"), "[mcp_servers.deepagent]\n");
  const isSetUp = (env: Record<string, string>): boolean | undefined =>
    clientsHere({ cwd: home, home, platform: "linux", env }).find(({ name }) => name === "codex")?.hasServer;
  expect(isSetUp({})).toBe(false);
  expect(isSetUp({ CODEX_HOME: folder })).toBe(true);
});

test("a bearer token and the model of a gateway are found as they are set for other programs", async () => {
  const home = temporaryHome();
  const env = {
    ANTHROPIC_AUTH_TOKEN: "token-1",
    ANTHROPIC_MODEL: "glm-5.2",
    OPENAI_API_KEY: "${OPENAI_API_KEY}",
  };
  const found = await modelsHere({ cwd: home, home, platform: "linux", env });
  expect(found).toMatchObject([
    { spec: "anthropic:glm-5.2", key: "ANTHROPIC_AUTH_TOKEN", from: "environment" },
    { key: "OPENAI_API_KEY", from: undefined },
  ]);
});

test.each([
  ["anthropic:glm-5.2", { ANTHROPIC_AUTH_TOKEN: "t" }, "ANTHROPIC_AUTH_TOKEN"],
  ["anthropic:glm-5.2", {}, "ANTHROPIC_API_KEY"],
  ["moonshot:kimi-k2.6", { KIMI_API_KEY: "k" }, "KIMI_API_KEY"],
  ["upstage:solar-pro3", {}, "UPSTAGE_API_KEY"],
  ["ollama:qwen3:8b", {}, undefined],
  ["databricks:claude-sonnet-4-6", { DATABRICKS_HOST: "https://adb-1.example" }, "DATABRICKS_TOKEN"],
  ["snowflake:claude-sonnet-4-6", { SNOWFLAKE_ACCOUNT: "acme", SNOWFLAKE_TOKEN: "t" }, "SNOWFLAKE_TOKEN"],
  ["snowflake:claude-sonnet-4-6", {}, undefined],
])("the key of %s with %j is %s", (spec, env, key) => {
  expect(keyOf(spec, env)).toBe(key);
});

test("an address with the name of an account in it is complete with its variables, which go into a client's entry", () => {
  const spec = "snowflake:claude-sonnet-4-6";
  expect(modelNameProblem(spec, {})).toMatch(/SNOWFLAKE_ACCOUNT/);
  const env = { SNOWFLAKE_ACCOUNT: "acme", SNOWFLAKE_TOKEN: "t" };
  expect(modelNameProblem(spec, env)).toBeUndefined();
  const home = temporaryHome();
  const host = { cwd: home, home, platform: "linux" as const, env };
  const client = (name: string) => findClient(name, { host }) ?? expect.fail(name);
  expect(addressOf(spec, client("claude-desktop"), host)).toEqual([["SNOWFLAKE_ACCOUNT", "acme"]]);
  expect(addressOf(spec, client("claude-code"), host)).toEqual([]);
  const whole = { ...host, env: { ...env, SNOWFLAKE_BASE_URL: "https://llm.example" } };
  expect(addressOf(spec, client("claude-desktop"), whole)).toEqual([
    ["SNOWFLAKE_BASE_URL", "https://llm.example"],
  ]);
});
