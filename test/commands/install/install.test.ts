import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { clientInstall } from "../../../src/commands/install/clients.ts";
import { mergeConfig } from "../../../src/commands/install/merge-config.ts";

const entry = { command: "npx", args: ["-y", "deepagent-mcp"] };

describe("a client's configuration", () => {
  it("keeps what it has and gets one server", () => {
    const merged = mergeConfig(
      '{"theme":"dark","mcpServers":{"other":{"command":"x"}}}',
      "mcpServers",
      "deepagent",
      entry,
    );
    if (!merged.ok) throw new Error(merged.problem);
    expect(JSON.parse(merged.text)).toEqual({
      theme: "dark",
      mcpServers: { other: { command: "x" }, deepagent: entry },
    });
    expect(mergeConfig(merged.text, "mcpServers", "deepagent", entry)).toMatchObject({
      ok: true,
      changed: false,
    });
  });

  it.each(["{ // comment\n}", "[]", '"text"', '{"mcpServers":[]}'])("is left alone when it is %s", (text) => {
    expect(mergeConfig(text, "mcpServers", "deepagent", entry)).toMatchObject({ ok: false });
  });

  it("is where each platform has it; other clients are given a command", () => {
    const host = { cwd: "/", home: "/home/me", env: {} };
    const fileOn = (platform: NodeJS.Platform, env = {}) => {
      const install = clientInstall("claude-desktop", { ...host, platform, env }, entry);
      return install?.kind === "file" ? install.file : undefined;
    };
    expect(fileOn("linux")).toBe("/home/me/.config/Claude/claude_desktop_config.json");
    expect(fileOn("darwin")).toBe("/home/me/Library/Application Support/Claude/claude_desktop_config.json");
    expect(fileOn("win32")).toBeUndefined();
    const launch = { command: "npx", args: ["-y", "deepagent-mcp", "--workspace", "/it's here"] };
    expect(clientInstall("codex", { ...host, platform: "linux" }, launch)).toMatchObject({
      command: `codex mcp add deepagent -- npx -y deepagent-mcp --workspace '/it'\\''s here'`,
    });
  });
});

describe("deepagent-mcp install", () => {
  let home: string;
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), "deepagent-install-"));
  });
  afterEach(() => rm(home, { recursive: true }));
  const run = (...args: string[]) =>
    promisify(execFile)(process.execPath, ["dist/bin/deepagent-mcp.js", "install", ...args], {
      env: { PATH: process.env["PATH"], HOME: home },
    });

  it("writes the file, keeps a copy of the old one, and says so", async () => {
    const file = join(home, ".cursor", "mcp.json");
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, '{"mcpServers":{"other":{"command":"x"}}}');
    const { stdout } = await run("cursor", "--workspace", home, "--model", "offline");
    expect(stdout).toContain("Restart Cursor");
    const { mcpServers } = JSON.parse(await readFile(file, "utf8"));
    expect(mcpServers.other).toEqual({ command: "x" });
    expect(mcpServers.deepagent.args.slice(-4)).toEqual(["--workspace", home, "--model", "offline"]);
    expect(await readFile(`${file}.before-deepagent`, "utf8")).toContain("other");
  });

  it("changes nothing with --print, for an unknown client, or a folder that is not there", async () => {
    expect((await run("vscode", "--print")).stdout).toContain('"servers"');
    await expect(readFile(join(home, ".config/Code/User/mcp.json"))).rejects.toThrow("ENOENT");
    await expect(run("emacs")).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Unknown client"),
    });
    await expect(run("cursor", "--workspace", join(home, "none"))).rejects.toMatchObject({ code: 2 });
  });
});
