import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { acceptedStart } from "../../src/handshake/settings.ts";
import { filesIn } from "../support/files-in.ts";

function machine(env: Record<string, string> = {}) {
  const home = realpathSync(filesIn());
  const cwd = join(home, "work");
  mkdirSync(join(cwd, "inner"), { recursive: true });
  writeFileSync(join(cwd, "file"), "");
  return { cwd, home, platform: "linux" as const, env };
}

test.each([
  [[], {}],
  [["serve"], {}],
  [["--workspace", "inner"], {}],
  [["serve", "--workspace=~/work", "--model", "anthropic:claude-sonnet-5"], {}],
  [
    ["--data-dir", "elsewhere"],
    { DEEPAGENT_WORKSPACE: "~/work/inner", DEEPAGENT_MODEL: "offline", OTHER: "1" },
  ],
  [["--codex-tools"], { DEEPAGENT_MODEL: "" }],
])("the start %j in %j is right for the program, too", (argv, env) => {
  const host = machine(env);
  expect(acceptedStart(argv, host)).toEqual({ codexTools: argv.includes("--codex-tools") });
  const flags = Object.fromEntries(
    argv.flatMap((word, at) => {
      const [, name = "", inline] = /^--([a-z-]+)(?:=(.*))?$/.exec(word) ?? [];
      return name === "" ? [] : [[name, name === "codex-tools" ? true : (inline ?? argv[at + 1])]];
    }),
  );
  expect(loadConfig({ flags, ...host })).toMatchObject({ ok: true });
});

test.each([
  [["run", "task"], {}],
  [["serve", "--http"], {}],
  [["--wrong"], {}],
  [["--config", "none.json"], {}],
  [["--approvals-write", "all"], {}],
  [["--workspace"], {}],
  [["--workspace", ""], {}],
  [["--workspace", "--model"], {}],
  [["--workspace", "missing"], {}],
  [["--workspace", "file"], {}],
  [["--workspace", "${workspaceFolder}"], {}],
  [["--model", "a", "--model", "b"], {}],
  [["--codex-tools=true"], {}],
  [["--help"], {}],
  [["--", "--codex-tools"], {}],
  [["--data-dir", "."], {}],
  [["--workspace", "inner", "--data-dir", "~/work"], {}],
  [[], { DEEPAGENT_WORKSPACE: "inner" }],
  [[], { DEEPAGENT_WORKSPACE: ' "~/work"' }],
  [[], { DEEPAGENT_CODEX_TOOLS: "true" }],
  [[], { DEEPAGENT_CONFIG: "/x.json" }],
  [[], { DEEPAGENT_WORKSPAC: "/x" }],
])("the start %j in %j is left to the program", (argv, env) => {
  expect(acceptedStart(argv, machine(env))).toBeUndefined();
});

test("skills in the data folder are left to the program, which refuses them", () => {
  const host = machine();
  mkdirSync(join(host.home, ".deepagent/skills"), { recursive: true });
  expect(acceptedStart(["--data-dir", join(host.home, "data")], host)).toBeDefined();
  expect(acceptedStart(["--data-dir", join(host.home, ".deepagent")], host)).toBeUndefined();
});
