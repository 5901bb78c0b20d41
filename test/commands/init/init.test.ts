// @module-tag python3
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { displayWidth } from "../../../src/cli/terminal/text.ts";
import { fakeKeychain } from "../../support/fake-keychain.ts";
import { openTerminal, type PseudoTerminal } from "../../support/pseudo-terminal.ts";
import { WIRE_KEY, startWireServer } from "../../support/wire-server.ts";
import { BIN, cleanEnv, runBin, type Outcome } from "../built-bin.ts";
import { terminalHome } from "../terminal-home.ts";

const KEY = WIRE_KEY;

/** The address of a provider that answers with `KEY`. */
async function provider(): Promise<Record<string, string>> {
  const server = await startWireServer(() => ({ text: "OK" }));
  onTestFinished(() => server.close());
  return { ANTHROPIC_BASE_URL: server.env("anthropic")["ANTHROPIC_BASE_URL"] ?? "" };
}

interface Scene {
  home: string;
  workspace: string;
  env: Record<string, string>;
  open(columns: number, args?: readonly string[]): PseudoTerminal;
  bin(args: readonly string[], env?: Record<string, string>): Promise<Outcome>;
  cursor: string;
}

/** A person with Cursor and a git repository, and nothing else that programs could find. */
function scene(given: Record<string, string> = {}): Scene {
  const { workspace, env: own } = terminalHome();
  const { HOME: home = "", DEEPAGENT_DATA_DIR: data = "" } = own;
  mkdirSync(join(home, ".cursor"));
  mkdirSync(join(workspace, "deep/.git/x"), { recursive: true });
  mkdirSync(join(workspace, ".git"));
  const env = {
    HOME: home,
    XDG_DATA_HOME: data,
    XDG_CONFIG_HOME: join(home, ".config"),
    NO_COLOR: "1",
    ...given,
  };
  return {
    home,
    workspace,
    env,
    open: (columns, args = ["init"]) =>
      openTerminal([process.execPath, BIN, ...args], {
        columns,
        rows: 50,
        cwd: workspace,
        env: { ...cleanEnv(), ...env },
      }),
    bin: (args, more) => runBin(args, { cwd: workspace, env: { ...env, ...more } }),
    cursor: join(home, ".cursor/mcp.json"),
  };
}

interface Entry {
  args: string[];
  env?: Record<string, string>;
}

const entryIn = (file: string): Entry => {
  const { mcpServers } = JSON.parse(readFileSync(file, "utf8")) as { mcpServers: { deepagent: Entry } };
  return mcpServers.deepagent;
};

test.each([80, 40])("the greeting says what is there, missing and next, on %i columns", async (columns) => {
  const { open, workspace } = scene();
  const terminal = open(columns, []);
  expect(await terminal.exited).toBe(0);
  const lines = terminal.everything();
  const text = lines.join("\n").replace(/\n +/g, " ");
  expect(text).toContain("An MCP server that gives any client");
  expect(text).toContain("✖ Model    no key of a model is set");
  expect(text).toContain("✖ Client   not set up yet; found here: Cursor");
  expect(text).toMatch(/[✔✖] Sandbox {2}/);
  expect(terminal.output()).toMatch(/Next: .* init\r\n/);
  expect(terminal.output()).not.toContain("\u001b[");
  for (const line of terminal
    .output()
    .split("\r\n")
    .filter((line) => !line.includes(BIN)))
    expect(displayWidth(line)).toBeLessThan(columns);
  expect(readdirSync(workspace).sort()).toEqual([".git", "deep", "notes.md"]);
});

test("the greeting of a machine that is set up goes on to the first task", async () => {
  const { bin, open, env } = scene({ ANTHROPIC_API_KEY: KEY, ...(await provider()) });
  expect((await bin(["init", "--client", "cursor", "--yes", "--key", "client"])).code).toBe(0);
  expect(env["ANTHROPIC_API_KEY"]).toBe(KEY);
  const terminal = open(80, []);
  expect(await terminal.exited).toBe(0);
  expect(terminal.output()).toContain("✔ Client   set up in Cursor");
  expect(terminal.output()).toMatch(/✔ Model {4}anthropic:/);
  expect(terminal.output()).toMatch(/Next: .* run\r\n/);
  expect(terminal.output()).not.toContain(KEY);
});

test.each([80, 40])("Enter takes what was found, and writes only that, on %i columns", async (columns) => {
  const keychain = fakeKeychain();
  const address = await provider();
  const { open, cursor, workspace } = scene({ ANTHROPIC_API_KEY: KEY, ...address, PATH: keychain.path });
  const terminal = open(columns);
  const client = await terminal.until(/1 of 5[^]*1 {2}Cursor[^]*found here[^]*›/);
  for (const line of client.split("\n")) expect(displayWidth(line)).toBeLessThanOrEqual(columns);
  terminal.type("\r");
  await terminal.until(/2 of 5[^]*Enter to use it/);
  terminal.type("\r");
  await terminal.until(/3 of 5[^]*1 {2}anthropic:[^]*is set[^]*›/);
  terminal.type("1");
  await terminal.until(/Where should ANTHROPIC_API_KEY be\s+stored\?[^]*1 {2}keychain[^]*2 {2}Cursor[^]*›/);
  terminal.type("2");
  await terminal.until(/4 of 5[^]*›/);
  terminal.type("3");
  await terminal.until(/5 of 5[^]*›/);
  terminal.type("\r");
  await terminal.until(/Enter to write it, q to cancel/);
  expect(existsSync(cursor)).toBe(false);
  terminal.type("\r");
  await terminal.until(/Watch a demo run now\?/);
  terminal.type("\r");
  expect(await terminal.exited).toBe(0);
  expect(terminal.output()).toContain("To watch it later:");
  const { args, env } = entryIn(cursor);
  expect(args.slice(1, 3)).toEqual(["--workspace", workspace]);
  expect(args.slice(3)).toEqual([
    "--model",
    expect.stringMatching(/^anthropic:/),
    "--approvals-execute",
    "unsandboxed",
  ]);
  expect(env).toEqual({ ANTHROPIC_API_KEY: KEY, ...address });
  expect(statSync(cursor).mode & 0o777).toBe(0o600);
  expect(terminal.output()).toContain("All checks passed.");
  expect(terminal.output()).not.toContain(KEY);
  expect(keychain.secrets()).toEqual({});
});

test.runIf(process.platform === "linux")(
  "a key that is typed is not shown, and goes into the keychain alone",
  async () => {
    const keychain = fakeKeychain();
    const { open, cursor } = scene({ ...(await provider()), PATH: keychain.path });
    const terminal = open(80);
    await terminal.until(/1 of 5[^]*›/);
    terminal.type("\r");
    await terminal.until(/Enter to use it/);
    terminal.type("\r");
    await terminal.until(/3 of 5[^]*asked for it[^]*›/);
    terminal.type("\r");
    await terminal.until(/ANTHROPIC_API_KEY \(not shown\)/);
    terminal.type("wrong");
    terminal.type("\u0015two words\r");
    await terminal.until(/A key consists of/);
    terminal.type(`${KEY}x`);
    terminal.type("\u007f\r");
    await terminal.until(/Where should ANTHROPIC_API_KEY be\s+stored\?[^]*›/);
    terminal.type("\r");
    await terminal.until(/4 of 5[^]*›/);
    terminal.type("\r");
    await terminal.until(/5 of 5[^]*›/);
    terminal.type("3");
    await terminal.until(/ANTHROPIC_API_KEY will be stored in the keychain[^]*Enter to write it/);
    expect(keychain.secrets()).toEqual({});
    terminal.type("\r");
    await terminal.until(/ANTHROPIC_API_KEY, from the keychain[^]*Watch a demo run now/);
    terminal.type("q");
    expect(await terminal.exited).toBe(0);
    expect(keychain.secrets()).toEqual({ ANTHROPIC_API_KEY: KEY });
    expect(entryIn(cursor).args.slice(-2)).toEqual(["--execute", "off"]);
    expect(readFileSync(cursor, "utf8")).not.toContain(KEY);
    for (const part of [KEY, KEY.slice(0, 8), "two words", "wrong"])
      expect(terminal.output()).not.toContain(part);
  },
);

test.each([
  ["at a choice", 0],
  ["at the folder", 1],
  ["at the key", 3],
])("Ctrl-C %s leaves nothing written, and the terminal as it was", async (_place, enters) => {
  const keychain = fakeKeychain();
  const { home, open, cursor } = scene({ PATH: keychain.path });
  const terminal = open(80);
  const prompts = [/1 of 5[^]*›/, /Enter to use it/, /3 of 5[^]*›/, /\(not shown\)/];
  for (const [index, prompt] of prompts.slice(0, enters + 1).entries()) {
    await terminal.until(prompt);
    if (index < enters) terminal.type("\r");
  }
  terminal.type("\u0003");
  expect(await terminal.exited).toBe(1);
  expect(terminal.output()).toContain("Nothing was written.");
  expect(existsSync(cursor)).toBe(false);
  expect(readdirSync(join(home, ".cursor"))).toEqual([]);
  expect(keychain.secrets()).toEqual({});
});

test("q at the end leaves everything as it was", async () => {
  const { open, cursor } = scene();
  const flags = "--client cursor --workspace . --model offline --approvals all".split(" ");
  const terminal = open(80, ["init", ...flags]);
  await terminal.until(/5 of 5[^]*›/);
  terminal.type("1");
  await terminal.until(/would\s+be\s+added:[^]*--approvals-write[^]*Enter to write it/);
  terminal.type("q");
  expect(await terminal.exited).toBe(1);
  expect(existsSync(cursor)).toBe(false);
});

test("without a terminal it says which flags to give, and with them asks nothing", async () => {
  const { bin, cursor, workspace } = scene();
  const refused = await bin(["init"]);
  expect(refused).toMatchObject({ code: 2, stdout: "" });
  expect(refused.stderr).toMatch(
    /no terminal.*--client.*--workspace.*--model.*--approvals.*--sandbox.*--yes/,
  );
  const flags = "--client cursor --model offline --approvals none --sandbox only --workspace".split(" ");
  flags.push(workspace);
  expect((await bin(["init", ...flags])).code).toBe(2);
  const { code, stdout } = await bin(["init", ...flags, "--yes"]);
  expect(stdout).toContain("Added to Cursor");
  expect(stdout).toContain("As Cursor will start it:");
  expect([0, 1]).toContain(code);
  const rest = "--model offline --approvals-write none --approvals-execute unsandboxed --execute sandbox";
  expect(entryIn(cursor).args.slice(1)).toEqual(["--workspace", workspace, ...rest.split(" ")]);
});

test.each([
  [["--client", "notepad"], "Unknown client"],
  [["--client", "cursor", "--model", "nonsense"], "does not name its provider"],
  [
    ["--client", "cursor", "--model", "offline", "--approvals", "maybe"],
    "--approvals is one of usual, all, files, none.",
  ],
  [
    ["--client", "cursor", "--model", "offline", "--sandbox", "maybe"],
    "--sandbox is one of auto, only, off.",
  ],
  [["--client", "cursor", "--workspace", "nowhere"], "The workspace "],
  [["--client", "cursor"], "Neither ANTHROPIC_API_KEY nor OPENAI_API_KEY is set."],
])("%j is refused, and nothing is written", async (flags, message) => {
  const { bin, cursor } = scene();
  const { code, stderr } = await bin(["init", ...flags, "--yes"]);
  expect(code).toBe(2);
  expect(stderr).toContain(message);
  expect(existsSync(cursor)).toBe(false);
});

test("a key is refused for a configuration in the workspace or in a git repository", async () => {
  const { bin, cursor, home } = scene({ ANTHROPIC_API_KEY: KEY, ...(await provider()) });
  const args = ["init", "--client", "cursor", "--yes", "--key", "client"];
  const inside = await bin([...args, "--workspace", home]);
  expect(inside.code).toBe(2);
  expect(inside.stderr).toContain("in the folder the agent works in");
  const dotfiles = join(home, "dotfiles");
  mkdirSync(dotfiles);
  execFileSync("git", ["init", "-q"], { cwd: dotfiles });
  writeFileSync(join(dotfiles, "mcp.json"), "{}");
  symlinkSync(join(dotfiles, "mcp.json"), cursor);
  const tracked = await bin(args);
  expect(tracked.code).toBe(2);
  expect(tracked.stderr).toContain(`in the git repository ${dotfiles}`);
  expect(readFileSync(cursor, "utf8")).toBe("{}");
});
