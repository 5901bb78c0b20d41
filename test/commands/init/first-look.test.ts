import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { filesIn } from "../../support/files-in.ts";
import { clientsHere } from "../../../src/cli/first-look.ts";
import { greeting } from "../../../src/cli/greeting.ts";
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
