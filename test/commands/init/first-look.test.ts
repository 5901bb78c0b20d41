import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { filesIn } from "../../support/files-in.ts";
import { clientsHere, modelsHere } from "../../../src/cli/first-look.ts";
import { greeting } from "../../../src/cli/greeting.ts";
import { keyOf } from "../../../src/cli/init-questions.ts";
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
])("the key of %s with %j is %s", (spec, env, key) => {
  expect(keyOf(spec, env)).toBe(key);
});
