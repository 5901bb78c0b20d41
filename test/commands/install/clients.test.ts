// Every client by its documentation: where it keeps its servers, in which form, and that what is written there starts.
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { filesIn } from "../../support/files-in.ts";
import { parse as parseToml } from "smol-toml";
import { parse } from "yaml";
import { CLIENT_NAMES, findClient } from "../../../src/cli/clients/catalogue.ts";
import { COMMANDS } from "../../../src/cli/commands.ts";
import { setTomlTable } from "../../../src/cli/clients/toml-text.ts";
import { setYamlMember } from "../../../src/cli/clients/yaml-text.ts";
import { parseJson } from "../../../src/config/load.ts";
import { connect } from "../../support/harness.ts";
import { stdioCommand } from "../../support/harness-stdio.ts";
import { BIN, type Outcome, ROOT } from "../built-bin.ts";

let home: string;
let workspace: string;
beforeEach(() => {
  home = filesIn();
  workspace = join(home, "my work");
  mkdirSync(workspace);
});

function bin(...args: readonly string[]): Promise<Outcome> {
  const env = { PATH: process.env["PATH"], HOME: home };
  return new Promise((resolve) => {
    execFile(process.execPath, [BIN, ...args], { cwd: workspace, env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

/** How a client starts the server, as it reads it from what `install` left behind. */
interface Start {
  command: string;
  args: string[];
  env: Record<string, string>;
}

interface Documented {
  /** The file on Linux, macOS and Windows; none: the client has a command of its own. */
  files?: readonly [linux: string, macOS: string, windows: string];
  /** What stands there, from the document that the catalogue names. */
  form: (start: Start) => unknown;
}

const servers =
  (key: string, more: object = {}): Documented["form"] =>
  (start) => ({
    [key]: { deepagent: { ...more, ...start } },
  });
const everywhere = (path: string): readonly [string, string, string] => [
  `/home/me/${path}`,
  `/home/me/${path}`,
  `C:\\Users\\me\\${path.replaceAll("/", "\\")}`,
];
const ROAMING = "C:\\Users\\me\\AppData\\Roaming";
const SUPPORT = "/home/me/Library/Application Support";

const OF_GOOSE = { type: "stdio", name: "deepagent", description: "Durable deep agent", enabled: true };

const DOCUMENTED: Readonly<Record<string, Documented>> = {
  "claude-desktop": {
    files: [
      "/home/me/.config/Claude/claude_desktop_config.json",
      `${SUPPORT}/Claude/claude_desktop_config.json`,
      `${ROAMING}\\Claude\\claude_desktop_config.json`,
    ],
    form: servers("mcpServers"),
  },
  "claude-code": {
    form: ({ command, args, env }) => [
      "claude",
      "mcp",
      "add",
      ...Object.entries(env).flatMap(([name, value]) => ["--env", `${name}=${value}`]),
      "--scope",
      "user",
      "--transport",
      "stdio",
      "deepagent",
      "--",
      command,
      ...args,
    ],
  },
  cursor: { files: everywhere(".cursor/mcp.json"), form: servers("mcpServers") },
  vscode: {
    files: [
      "/home/me/.config/Code/User/mcp.json",
      `${SUPPORT}/Code/User/mcp.json`,
      `${ROAMING}\\Code\\User\\mcp.json`,
    ],
    form: servers("servers", { type: "stdio" }),
  },
  windsurf: { files: everywhere(".codeium/windsurf/mcp_config.json"), form: servers("mcpServers") },
  zed: {
    files: [
      "/home/me/.config/zed/settings.json",
      "/home/me/.config/zed/settings.json",
      `${ROAMING}\\Zed\\settings.json`,
    ],
    form: servers("context_servers"),
  },
  opencode: {
    files: everywhere(".config/opencode/opencode.json"),
    form: ({ command, args, env }) => ({
      mcp: {
        deepagent: { type: "local", command: [command, ...args], enabled: true, environment: env },
      },
    }),
  },
  gemini: { files: everywhere(".gemini/settings.json"), form: servers("mcpServers") },
  codex: { files: everywhere(".codex/config.toml"), form: servers("mcp_servers", { required: true }) },
  goose: {
    files: [
      "/home/me/.config/goose/config.yaml",
      "/home/me/.config/goose/config.yaml",
      `${ROAMING}\\Block\\goose\\config\\config.yaml`,
    ],
    form: ({ command, args, env }) => ({
      extensions: {
        deepagent: { ...OF_GOOSE, cmd: command, args, envs: env, env_keys: [], timeout: 300 },
      },
    }),
  },
  "lm-studio": { files: everywhere(".lmstudio/mcp.json"), form: servers("mcpServers") },
};

it("every client is here as it is documented", () => {
  expect(Object.keys(DOCUMENTED)).toEqual(CLIENT_NAMES);
});

const PLATFORMS = [
  { platform: "linux", home: "/home/me", env: {} },
  { platform: "darwin", home: "/home/me", env: {} },
  { platform: "win32", home: "C:\\Users\\me", env: { APPDATA: ROAMING } },
] as const;

describe.each(Object.entries(DOCUMENTED))("%s", (name, { files, form }) => {
  it("is configured where it looks", () => {
    const found = PLATFORMS.map((facts) => findClient(name, { host: { cwd: "/", ...facts } }));
    for (const client of found) expect(client?.docs).toMatch(/^https:\/\//);
    expect(found.flatMap((client) => (client?.kind === "file" ? client.file : []))).toEqual(files ?? []);
  });

  it("starts the server from what is written, with an empty environment", async () => {
    const variables = { DEEPAGENT_DATA_DIR: join(home, "data"), DEEPAGENT_LOG_LEVEL: "silent" };
    const env = Object.entries(variables).flatMap(([key, value]) => ["--env", `${key}=${value}`]);
    const flags = ["--model", "offline", "--workspace", workspace, ...env];
    const { code, stdout, stderr } = await bin("install", name, ...flags);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const start = {
      command: process.execPath,
      args: [BIN, "--workspace", workspace, "--model", "offline"],
      env: variables,
    };
    expect(await written(name, stdout)).toEqual(form(start));
    const assigned = Object.entries(start.env).map(([key, value]) => `${key}=${value}`);
    const server = stdioCommand(["env", "-i", ...assigned, start.command, ...start.args], {});
    const client = await connect(server, "v2-modern");
    const { text } = await client.call("run_deep_agent", { task: "Say hello" });
    expect(text).toContain("completed");
  });
});

/** What a client reads: its file, or the words that a shell makes of the line that is shown. */
async function written(name: string, stdout: string): Promise<unknown> {
  const client = findClient(name, { host: { cwd: "/", home, platform: process.platform, env: {} } });
  if (client?.kind === "file") {
    const text = readFileSync(client.file, "utf8");
    if (client.format === "yaml") return parse(text);
    // As plain objects.
    if (client.format === "toml") return JSON.parse(JSON.stringify(parseToml(text)));
    const parsed = parseJson(text);
    return parsed.ok ? parsed.value : parsed.place;
  }
  const program = client?.add([])[0] ?? "";
  const line =
    stdout.split("\n").find((candidate) => candidate.trim().startsWith(`${program} mcp add`)) ?? "";
  const shell = `${program}() { printf '%s\\n' ${program} "$@"; }; ${line}`;
  return new Promise((resolve, reject) => {
    execFile("sh", ["-c", shell], (error, words) =>
      error === null ? resolve(words.trimEnd().split("\n")) : reject(error),
    );
  });
}

describe("a published package that npx fetched", () => {
  it.each([
    ["linux", ["npx", "-y", "deepagent-mcp"]],
    ["win32", ["cmd", "/c", "npx", "-y", "deepagent-mcp"]],
  ])("is started by npx on %s", async (platform, words) => {
    const installed = join(home, "_npx/0a1b/node_modules/deepagent-mcp");
    cpSync(join(ROOT, "dist/bin"), join(installed, "dist/bin"), { recursive: true });
    const { private: _, ...manifest } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    writeFileSync(join(installed, "package.json"), JSON.stringify(manifest));
    const claim = `Object.defineProperty(process, "platform", { value: "${platform}" })`;
    const loaded = `data:text/javascript,${encodeURIComponent(claim)}`;
    const start = ["--import", loaded, join(installed, "dist/bin/deepagent-mcp.js")];
    const shown = await new Promise<string>((resolve, reject) => {
      execFile(
        process.execPath,
        [...start, "install", "cursor", "--print", "--workspace", workspace],
        { env: { PATH: process.env["PATH"], HOME: home } },
        (error, stdout) => (error === null ? resolve(stdout) : reject(error)),
      );
    });
    const entry = JSON.parse(shown.slice(shown.indexOf("{"))).mcpServers.deepagent;
    expect([entry.command, ...entry.args]).toEqual([...words, "--workspace", workspace]);
  });
});

it.each([
  ["linux", "/home/me/.config/Claude/claude_desktop_config.json"],
  ["darwin", "/home/me/Library/Application Support/Claude/claude_desktop_config.json"],
  ["win32", undefined],
] as const)("on %s without APPDATA Claude Desktop has its settings in %s", (platform, file) => {
  const client = findClient("claude-desktop", { host: { cwd: "/", home: "/home/me", env: {}, platform } });
  expect(client?.kind === "file" ? client.file : undefined).toBe(file);
});

describe("Claude Desktop on Windows", () => {
  it.each([
    ["Claude-Data/claude_abc", "Claude-Data/claude_abc"],
    ["Packages/Claude_abc/LocalCache/Roaming/Claude", "Packages/Claude_abc/LocalCache/Roaming/Claude"],
    ["Packages/Claude_never-started", undefined],
    ["Packages/Another_abc/LocalCache/Roaming/Claude", undefined],
  ])("with %s has its settings in %s", (made, expected) => {
    mkdirSync(join(home, made), { recursive: true });
    const env = { APPDATA: ROAMING, LOCALAPPDATA: home };
    const host = { cwd: "/", home: "C:\\Users\\me", platform: "win32", env } as const;
    const client = findClient("claude-desktop", { host });
    const folder = expected ? join(home, expected) : `${ROAMING}\\Claude`;
    // The paths of Windows, made on another system.
    const slashed = (path: string): string => path.replaceAll("\\", "/");
    expect(client?.kind === "file" && slashed(client.file)).toBe(
      slashed(`${folder}/claude_desktop_config.json`),
    );
  });
});

it("the help of --project names every client that has a file of projects", () => {
  const host = { cwd: "/", home: "/home/me", platform: "linux", env: {} } as const;
  const having = CLIENT_NAMES.filter((name) => findClient(name, { host, project: "/p" }) !== undefined);
  const [flag] = COMMANDS.flatMap(({ flags }) => flags.filter(({ name }) => name === "project"));
  for (const name of CLIENT_NAMES)
    expect(new RegExp(`[ ,]${name}[ ,.]`).test(flag?.help ?? "")).toBe(having.includes(name));
});

describe("opencode", () => {
  const folder = () => join(home, ".config/opencode");

  it.each([
    ["version 1", "opencode.json", '{ "mcp": { "servers": {"type":"local","command":["x"]} } }', ["mcp"]],
    ["version 2", "opencode.json", '{ "mcp": { "servers": { "a": {} } } // mine\n}', ["mcp", "servers"]],
    ["a file with comments", "opencode.jsonc", '{\n  // mine\n  "theme": "x"\n}', ["mcp"]],
  ])("with %s gets the form that it reads", async (_, file, text, path) => {
    mkdirSync(folder(), { recursive: true });
    writeFileSync(join(folder(), file), text);
    await bin("install", "opencode", "--model", "offline", "--workspace", workspace);
    const after = readFileSync(join(folder(), file), "utf8");
    const parsed = parseJson(after);
    let value: unknown = parsed.ok ? parsed.value : undefined;
    for (const key of path) value = Reflect.get(Object(value), key);
    expect(value).toHaveProperty("deepagent.type", "local");
    expect(Object.hasOwn(Reflect.get(Object(value), "deepagent"), "enabled")).toBe(path.length === 1);
    expect(after.includes("// mine")).toBe(text.includes("// mine"));
    await bin("uninstall", "opencode");
    expect(readFileSync(join(folder(), file), "utf8")).toBe(text);
  });
});

describe("the YAML of Goose", () => {
  const FILE = ".config/goose/config.yaml";

  it.each([
    [
      "other extensions",
      "# mine\nextensions:\n    memory: # builtin\n        enabled: true\n        type: builtin\n\nGOOSE_MODEL: x   # keep\n",
    ],
    ["no extensions", "GOOSE_PROVIDER: openai\r\n# keep\r\n"],
    ["an empty list", "extensions: {}\nGOOSE_MODEL: 'x'\n"],
    ["nothing below the name", "extensions:\nGOOSE_MODEL: x\n"],
    ["no line break at its end", "extensions:\n  a:\n    enabled: false"],
    ["no text", ""],
  ])("with %s keeps every other line, and has them again after uninstall", async (_, text) => {
    const file = join(home, FILE);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    expect(await bin("install", "goose", "--model", "offline", "--workspace", workspace)).toMatchObject({
      code: 0,
    });
    const after = readFileSync(file, "utf8");
    for (const line of text.split(/\r?\n/).filter((line) => !line.startsWith("extensions:")))
      expect(after.split(/\r?\n/)).toContain(line);
    const before = Object(parse(text) ?? {});
    expect(parse(after)).toEqual({
      ...before,
      extensions: { ...before.extensions, deepagent: expect.objectContaining({ cmd: process.execPath }) },
    });
    expect((await bin("install", "goose", "--model", "offline", "--workspace", workspace)).stdout).toContain(
      "already has this server",
    );
    // Not the earlier file as a whole: something was changed since.
    writeFileSync(file, `${after}OTHER: 1\n`);
    await bin("uninstall", "goose");
    const rest = readFileSync(file, "utf8");
    expect(rest).not.toContain("deepagent");
    expect({ ...Object(parse(rest)), extensions: Object(parse(rest)).extensions ?? {} }).toEqual({
      ...before,
      extensions: before.extensions ?? {},
      OTHER: 1,
    });
  });

  it("is replaced in its place when it changes", () => {
    const text = "extensions:\n  deepagent:\n    cmd: old\n  # another\n  other:\n    cmd: y\n";
    expect(setYamlMember(text, "extensions", "deepagent", { cmd: "new" })).toEqual({
      ok: true,
      text: 'extensions:\n  deepagent:\n    cmd: "new"\n  # another\n  other:\n    cmd: y\n',
    });
  });

  it.each([
    ["extensions: [a]\n", '"extensions" is not what clients write there'],
    ["- a\n", "it does not hold a YAML map"],
    ["a: 'b\n", "it is not valid YAML, line 2, column 1"],
    ["extensions: {a: {b: 1}}\n", '"extensions" is not what clients write there'],
    ["a: &a [1]\nextensions: *a\n", '"extensions" is not what clients write there'],
  ])("is left alone when it is %j", async (text, why) => {
    const file = join(home, FILE);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    const { code, stderr } = await bin("install", "goose", "--model", "offline", "--workspace", workspace);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(why) });
    expect(readFileSync(file, "utf8")).toBe(text);
    expect(existsSync(`${file}.before-deepagent`)).toBe(false);
  });
});

describe("the TOML of Codex", () => {
  const FILE = ".codex/config.toml";
  const value = { command: "new", args: ["a\nb"], required: true, env: { A: "1" } };

  it.each([
    ["other servers", '# mine\nmodel = "x" # keep\n\n[mcp_servers.a]\ncommand = "x"\n'],
    ["tables behind", "[mcp_servers.a]\r\ncommand = 'x'\r\n\r\n# about b\r\n[b]\r\nat = 1979-05-27\r\n"],
    ["lists of tables", '[[hooks]]\nrun = ["[mcp_servers.deepagent]"]\n'],
    ["no servers", "[mcp_servers]\n"],
    ["no text", ""],
  ])("with %s keeps every other line, and has its bytes again after uninstall", async (_, text) => {
    const file = join(home, FILE);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    const install = ["install", "codex", "--model", "offline", "--workspace", workspace];
    expect(await bin(...install)).toMatchObject({ code: 0 });
    const after = readFileSync(file, "utf8");
    for (const line of text.split("\n")) expect(after.split("\n")).toContain(line);
    expect(parseToml(after)).toMatchObject({
      ...parseToml(text),
      mcp_servers: { deepagent: { required: true } },
    });
    expect((await bin(...install)).stdout).toContain("already has this server");
    // Not the earlier file as a whole: something was changed since.
    writeFileSync(file, `# new\n${after}`);
    await bin("uninstall", "codex");
    expect(readFileSync(file, "utf8")).toBe(`# new\n${text}`);
  });

  it("is replaced in its place when it changes, its own tables too", () => {
    const ours = '[mcp_servers."deepagent"]\ncommand = "old"\n\n[mcp_servers.deepagent.env]\nB = "2"\n';
    const result = setTomlTable(`a = 1\n${ours}\n# b\n[b]\n`, "mcp_servers", "deepagent", value);
    const text = expect.stringMatching(/^a = 1\n\[mcp.*\n\n# b\n\[b\]\n$/s);
    expect(result).toMatchObject({ ok: true, text });
    expect(result.ok && parseToml(result.text)["mcp_servers"]).toMatchObject({ deepagent: value });
  });

  it.each([
    ["mcp_servers = { a = { command = 'x' } }\n", '"mcp_servers" is not what clients write there'],
    ["[mcp_servers]\ndeepagent.command = 'x'\n", '"mcp_servers" is not what clients write there'],
    ["a = '''\n[mcp_servers.deepagent]\n'''\n", '"mcp_servers" is not what clients write there'],
    ["a = \n", "it is not valid TOML"],
  ])("is left alone when it is %j", async (text, why) => {
    const file = join(home, FILE);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    const { code, stderr } = await bin("install", "codex", "--model", "offline", "--workspace", workspace);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(why) });
    expect(readFileSync(file, "utf8")).toBe(text);
  });
});
