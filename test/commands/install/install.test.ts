import { execFile, execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { filesIn } from "../../support/files-in.ts";
import { parseJson } from "../../../src/config/load.ts";
import { fakeKeychain } from "../../support/fake-keychain.ts";
import { openTerminal } from "../../support/pseudo-terminal.ts";
import { WIRE_KEY, startWireServer } from "../../support/wire-server.ts";
import { BIN, type Outcome } from "../built-bin.ts";

let home: string;
let project: string;
beforeEach(() => {
  home = filesIn();
  project = join(home, "project");
  mkdirSync(project);
});

/** Runs the program with nothing in its environment but what is named. */
function bin(args: readonly string[], env: Record<string, string> = {}): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [BIN, ...args],
      { cwd: project, env: { PATH: process.env["PATH"], HOME: home, ...env } },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

/** A provider that answers with `WIRE_KEY`. */
async function provider(name: "anthropic" | "openai"): Promise<Record<string, string | undefined>> {
  const server = await startWireServer(() => ({ text: "OK" }));
  onTestFinished(() => server.close());
  return server.env(name);
}

/** A client's file below the home folder, with its folder. */
function written(path: string, text: string, mode = 0o644): string {
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  chmodSync(file, mode);
  return file;
}

function valueOf(file: string): Record<string, Record<string, unknown>> {
  const parsed = parseJson(readFileSync(file, "utf8").replace(/^\uFEFF/, ""));
  if (!parsed.ok) throw new Error(parsed.place);
  return Object(parsed.value);
}

const CURSOR = ".cursor/mcp.json";
const READY = ["--model", "offline", "--workspace"] as const;

describe("a client's file", () => {
  it.each([
    [
      "comments and trailing commas",
      '{\n  // mine\n  "mcpServers": {\n    "other": {"command":"x"}, // keep\n  },\n}\n',
    ],
    [
      "a comment behind the last server",
      '{\n\t"mcpServers": {\n\t\t"a": { "url": "https://a" } // keep\n\t}\n}\n',
    ],
    ["Windows line ends and a mark", '\uFEFF{\r\n    "theme": "dark"\r\n}\r\n'],
    ["everything in one line", '{"mcpServers":{"other":{"command":"x"}},"z":[1,2]}'],
    ["an empty list of servers", '{ "mcpServers": {} }'],
    ["nothing but a comment", "{\n  // none yet\n}"],
    ["no text", ""],
  ])("with %s has every byte of it again after uninstall", { tags: "long" }, async (_title, text) => {
    const file = written(CURSOR, text);
    const { code, stdout } = await bin(["install", "cursor", ...READY, project]);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringContaining("All checks passed."),
    });
    const { deepagent } = valueOf(file)["mcpServers"] ?? {};
    expect(deepagent).toEqual({
      command: process.execPath,
      args: [BIN, "--workspace", project, "--model", "offline"],
    });
    const now = readFileSync(file, "utf8");
    for (const line of text.split("\n").filter((line) => /keep|mine|theme|none yet/.test(line)))
      expect(now).toContain(
        line
          .replace(/\{ *\}$/, "")
          .trim()
          .slice(0, 12),
      );

    expect((await bin(["install", "cursor", ...READY, project])).stdout).toContain("already has this server");
    expect(readFileSync(file, "utf8")).toBe(now);
    expect(await bin(["uninstall", "cursor"])).toMatchObject({ code: 0, stderr: "" });
    expect(readFileSync(file, "utf8")).toBe(text);
    expect((await bin(["uninstall", "cursor"])).stdout).toContain("does not have this server");
    expect(readdirSync(dirname(file))).toEqual(["mcp.json"]);
  });

  it("that did not exist is gone again after uninstall", async () => {
    await bin(["install", "cursor", ...READY, project]);
    const file = join(home, CURSOR);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await bin(["uninstall", "cursor"]);
    expect(existsSync(file)).toBe(false);
  });

  it("that was changed by a second install is gone after uninstall, and so is the key in it", async () => {
    const file = join(home, CURSOR);
    const env = ["--env", "ANTHROPIC_API_KEY=sk-first"];
    await bin(["install", "cursor", ...READY, project, ...env]);
    const { stdout } = await bin(["install", "cursor", ...READY, home]);
    expect(stdout).toContain(`Changed in Cursor: ${file}`);
    // Says that there was no file, without a key in it.
    const note = readFileSync(`${file}.before-deepagent`, "utf8");
    expect(note).toBe("deepagent-mcp made this file.\n");
    await bin(["uninstall", "cursor"]);
    expect(readdirSync(dirname(file))).toEqual([]);
  });

  it.each([
    ["an empty list of servers", '{\n  "mcpServers": {\n  }\n}\n'],
    ["one line", '{ "mcpServers": { "x": { "url": "http://127.0.0.1:1/mcp" } } }'],
  ])("lacs-project/sysknife#480: that has %s stays when its copy is gone", async (_title, text) => {
    const file = written(CURSOR, text);
    await bin(["install", "cursor", ...READY, project]);
    rmSync(`${file}.before-deepagent`);
    await bin(["uninstall", "cursor"]);
    expect(readFileSync(file, "utf8")).toBe(text);
  });

  it("that install made stays with what others put into it, and the copy goes", async () => {
    await bin(["install", "cursor", ...READY, project]);
    const file = join(home, CURSOR);
    writeFileSync(file, readFileSync(file, "utf8").replace(/^\{/, '{\n  "mine": 1,'));
    await bin(["uninstall", "cursor"]);
    expect(readFileSync(file, "utf8")).toBe('{\n  "mine": 1\n}\n');
    expect(readdirSync(dirname(file))).toEqual(["mcp.json"]);
  });

  it("uninstall names what stays, and how to remove it", async () => {
    const [data, moved] = [join(home, ".local/share/deepagent-mcp"), join(home, "my data")];
    await bin(["install", "cursor", ...READY, project]);
    const { stdout } = await bin(["uninstall", "cursor"]);
    expect(stdout).toContain(`Runs and memories are kept in ${data}, which`);
    expect(stdout).toContain(`To delete them: rm -r ${data}\n`);
    expect(stdout).toMatch(/Keys in the keychain are kept as well. To list them: .* keys list/);
    const elsewhere = await bin(["uninstall", "claude-code"], { DEEPAGENT_DATA_DIR: moved });
    expect(elsewhere.stdout).toContain(`rm -r '${moved}'`);
  });

  it("that is read-only is left alone", async () => {
    const file = written(CURSOR, "{}", 0o444);
    const { code, stderr } = await bin(["install", "cursor", ...READY, project]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("it is read-only") });
    expect(stderr).toContain("Add this to it yourself");
    expect(readFileSync(file, "utf8")).toBe("{}");
    expect(readdirSync(dirname(file))).toEqual(["mcp.json"]);
  });

  it("loses only this server when it was changed since", async () => {
    const file = written(CURSOR, '{ "mcpServers": { "a": {"command":"x"} } }');
    await bin(["install", "cursor", ...READY, project]);
    const changed = readFileSync(file, "utf8")
      .replace('"a":', '/* first */ "a":')
      .replace("} } }", '},\n"z": {} // last\n} }');
    writeFileSync(file, changed);
    await bin(["uninstall", "cursor"]);
    const text = readFileSync(file, "utf8");
    expect(text).toContain('/* first */ "a": {"command":"x"}');
    expect(text).toContain('"z": {} // last');
    expect(valueOf(file)).toEqual({ mcpServers: { a: { command: "x" }, z: {} } });
  });

  it("stays a link, with the mode of its target, and its first copy is kept", async () => {
    const target = written("dotfiles/cursor.json", '{"mcpServers":{"first":{}}}', 0o640);
    mkdirSync(join(home, ".cursor"));
    const link = join(home, CURSOR);
    symlinkSync("../dotfiles/cursor.json", link);
    await bin(["install", "cursor", ...READY, project]);
    await bin(["install", "cursor", "--model", "offline", "--workspace", home]);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(statSync(target).mode & 0o777).toBe(0o640);
    expect(valueOf(target)["mcpServers"]).toMatchObject({
      first: {},
      deepagent: { args: expect.arrayContaining([home]) },
    });
    expect(readFileSync(`${link}.before-deepagent`, "utf8")).toBe('{"mcpServers":{"first":{}}}');
    expect(readdirSync(join(home, "dotfiles"))).toEqual(["cursor.json"]);
  });

  it("is made where a link leads that has no file yet", async () => {
    mkdirSync(join(home, ".cursor"));
    mkdirSync(join(home, "dotfiles"));
    symlinkSync("../dotfiles/next.json", join(home, CURSOR));
    symlinkSync("cursor.json", join(home, "dotfiles/next.json"));
    await bin(["install", "cursor", ...READY, project]);
    expect(readdirSync(join(home, "dotfiles")).sort()).toEqual(["cursor.json", "next.json"]);
    expect(lstatSync(join(home, "dotfiles/next.json")).isSymbolicLink()).toBe(true);
    expect(valueOf(join(home, "dotfiles/cursor.json"))["mcpServers"]).toHaveProperty("deepagent");
    await bin(["uninstall", "cursor"]);
    expect(readdirSync(join(home, "dotfiles"))).toEqual(["next.json"]);
  });

  it.each([
    ['{ "mcpServers": ', "is not valid JSON"],
    ["[]", "does not hold a JSON object"],
    ['{"mcpServers":[]}', '"mcpServers" is not what clients write there'],
    ['{"mcpServers":{}, "mcpServers":{"a":{}}}', '"mcpServers" is there twice'],
    [`{"mcpServers": ${"[".repeat(100_000)}`, "nested too deeply"],
  ])("is left alone when it is broken: %#", async (text, why) => {
    const file = written(CURSOR, text);
    const { code, stderr } = await bin(["install", "cursor", ...READY, project]);
    expect({ code, lines: stderr.split("\n")[0] }).toEqual({ code: 1, lines: expect.stringContaining(why) });
    expect(readFileSync(file, "utf8")).toBe(text);
    expect(readdirSync(dirname(file))).toEqual(["mcp.json"]);
  });

  it("is left alone when it is no text or no file", async () => {
    const file = written(CURSOR, "");
    writeFileSync(file, Buffer.from([0x7b, 0xff, 0x7d]));
    expect((await bin(["install", "cursor"])).stderr).toContain("it is not a text in UTF-8");
    rmSync(file);
    execFileSync("mkfifo", [file]);
    expect((await bin(["install", "cursor"])).stderr).toContain("it is not a file");
  });
});

describe("keys", () => {
  const KEY = WIRE_KEY;

  it("are copied into the user's own file, and shown nowhere", async () => {
    const { ANTHROPIC_BASE_URL: url } = await provider("anthropic");
    const env = { ANTHROPIC_API_KEY: KEY };
    const address = ["--env", `ANTHROPIC_BASE_URL=${url}`];
    const args = ["install", "cursor", "--workspace", project, "--env", "ANTHROPIC_API_KEY", ...address];
    expect((await bin([...args, "--print"], env)).stdout).not.toContain(KEY);
    const { code, stdout, stderr } = await bin(args, env);
    expect(code).toBe(0);
    expect(stdout + stderr).not.toContain(KEY);
    expect(valueOf(join(home, CURSOR))["mcpServers"]).toMatchObject({ deepagent: { env } });
    expect(await bin(args)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("ANTHROPIC_API_KEY is not set here"),
    });
  });

  it("are asked for by VS Code, and its questions go with the server", async () => {
    const file = written(
      ".config/Code/User/mcp.json",
      '{\n\t"inputs": [\n\t\t{ "id": "mine" } // my own\n\t]\n}\n',
    );
    const before = readFileSync(file, "utf8");
    const { code, stdout } = await bin(["install", "vscode", "--env", "ANTHROPIC_API_KEY"]);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringContaining("asks for deepagent-anthropic-api-key"),
    });
    expect(valueOf(file)).toMatchObject({
      inputs: [{ id: "mine" }, { type: "promptString", id: "deepagent-anthropic-api-key", password: true }],
      servers: {
        deepagent: {
          type: "stdio",
          args: [BIN, "--workspace", "${workspaceFolder}"],
          env: { ANTHROPIC_API_KEY: "${input:deepagent-anthropic-api-key}" },
        },
      },
    });
    writeFileSync(file, `${readFileSync(file, "utf8")}\n// the end\n`);
    await bin(["uninstall", "vscode"]);
    expect(readFileSync(file, "utf8")).toContain('{ "id": "mine" } // my own');
    // The block of servers was not there before.
    expect(valueOf(file)).toEqual(Object(parseJson(before)).value);
    expect(existsSync(`${file}.before-deepagent`)).toBe(false);
  });

  it.each([
    ["claude-code", ".mcp.json", "mcpServers", "${ANTHROPIC_API_KEY}", "."],
    ["cursor", ".cursor/mcp.json", "mcpServers", "${env:ANTHROPIC_API_KEY}", "${workspaceFolder}"],
    ["vscode", ".vscode/mcp.json", "servers", "${input:deepagent-anthropic-api-key}", "${workspaceFolder}"],
  ])("never get into the project's file of %s", async (client, path, key, reference, folder) => {
    const refused = await bin(["install", client, "--project", "--env", `ANTHROPIC_API_KEY=${KEY}`]);
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Use --env ANTHROPIC_API_KEY"),
    });
    expect(readdirSync(project)).toEqual([]);
    const { ANTHROPIC_BASE_URL: url } = await provider("anthropic");
    const address = ["--env", `ANTHROPIC_BASE_URL=${url}`];
    const args = ["install", client, "--project", "--env", "ANTHROPIC_API_KEY", ...address];
    expect(await bin(args, { ANTHROPIC_API_KEY: KEY })).toMatchObject({ code: 0 });
    const file = join(project, path);
    expect(readFileSync(file, "utf8")).not.toContain(KEY);
    expect(valueOf(file)[key]).toMatchObject({
      deepagent: { args: [BIN, "--workspace", folder], env: { ANTHROPIC_API_KEY: reference } },
    });
  });
});

describe("keys and places that are shared", () => {
  const KEY = "sk-very-secret";
  const repository = () => mkdirSync(join(home, ".git"));

  it.each([
    [["--env", `ANTHROPIC_API_KEY=${KEY}`], {}],
    [["--env", "ANTHROPIC_API_KEY"], { ANTHROPIC_API_KEY: KEY }],
    [["--env", `DEEPAGENT_STORAGE=postgres://me:${KEY}@host/runs`], {}],
  ])("a value is refused for a file in a git repository: %j", async (flags, env) => {
    repository();
    for (const more of [[], ["--print"], ["--yes"]]) {
      const refused = await bin(["install", "cursor", ...READY, project, ...flags, ...more], env);
      expect(refused).toMatchObject({ code: 2, stdout: "" });
      expect(refused.stderr).toMatch(
        /mcp\.json is in the git repository .*does not belong\. Leave it out, and/,
      );
      expect(refused.stderr).not.toContain(KEY);
    }
    expect(existsSync(join(home, ".cursor"))).toBe(false);
  });

  it("a value is refused for a file in the folder the agent works in, and one that is no key is not", async () => {
    const refused = await bin(["install", "cursor", ...READY, home, "--env", `OPENAI_API_KEY=${KEY}`]);
    expect(refused).toMatchObject({ code: 2 });
    expect(refused.stderr).toMatch(/is in the folder the agent works in.* keys set OPENAI_API_KEY/);
    const plain = await bin(["install", "cursor", ...READY, home, "--env", "DEEPAGENT_LOG_LEVEL=debug"]);
    expect(plain).toMatchObject({ code: 0 });
  });

  it("the command of a client has no value of a key in it", async () => {
    const args = ["install", "claude-code", ...READY, project];
    args.push("--env", `OPENAI_API_KEY=${KEY}`, "--env", "A=b c");
    const { code, stdout, stderr } = await bin(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain(`--env OPENAI_API_KEY="$OPENAI_API_KEY" --env A='b c' --scope user`);
    expect(stdout).toContain("Before that, set OPENAI_API_KEY in that shell.");
    expect(stdout).not.toContain(KEY);
  });
});

describe("deepagent-mcp install", () => {
  it("says what is missing where the client will start the server, whatever this shell has", async () => {
    const { code, stdout, stderr } = await bin(["install", "cursor"], { ANTHROPIC_API_KEY: "sk-here" });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^✖ Workspace/m);
    expect(stdout).toMatch(/^✖ Model/m);
    expect(stdout).not.toContain("Restart");
    expect(stderr).toContain("Cursor is configured, but the server can't start a run yet");
  });

  it("asks for what is missing, and leaves nothing behind at Ctrl-C", { tags: "python3" }, async () => {
    const { OPENAI_BASE_URL: url } = await provider("openai");
    const open = (client: string) =>
      openTerminal([process.execPath, BIN, "install", client], {
        columns: 80,
        rows: 50,
        cwd: project,
        env: { PATH: process.env["PATH"], HOME: home, OPENAI_BASE_URL: url },
      });
    const left = open("windsurf");
    await left.until(/Enter to use it/);
    left.type("\r");
    await left.until(/Which model should the agent use[^]*›/);
    left.type("\u0003");
    expect(await left.exited).toBe(1);
    expect(left.output()).toContain("Nothing was written.");
    expect(existsSync(join(home, ".codeium"))).toBe(false);

    const terminal = open("cursor");
    await terminal.until(/Enter to use it/);
    terminal.type("\r");
    await terminal.until(/Which model should the agent use[^]*openai:[^]*›/);
    terminal.type("2");
    await terminal.until(/OPENAI_API_KEY \(not shown\)/);
    terminal.type(`${WIRE_KEY}\r`);
    expect(await terminal.exited).toBe(0);
    expect(terminal.output()).toContain("All checks passed.");
    expect(terminal.output()).not.toContain(WIRE_KEY);
    expect(valueOf(join(home, CURSOR))["mcpServers"]).toMatchObject({
      deepagent: {
        args: [BIN, "--workspace", project, "--model", expect.stringMatching(/^openai:/)],
        env: { OPENAI_API_KEY: WIRE_KEY, OPENAI_BASE_URL: url },
      },
    });
  });

  it(
    "asks for no key that nothing could keep, and refers to it in the project",
    { tags: "python3" },
    async () => {
      const terminal = openTerminal([process.execPath, BIN, "install", "cursor", "--project"], {
        columns: 80,
        rows: 50,
        cwd: project,
        env: { PATH: fakeKeychain().path, HOME: home, KEYCHAIN_FAILS: "1" },
      });
      await terminal.until(/Which model should the agent use[^]*›/);
      terminal.type("1");
      expect(await terminal.exited).toBe(1);
      expect(terminal.output()).toContain("Cursor has no safe place for ANTHROPIC_API_KEY");
      expect(terminal.output()).not.toContain("(not shown)");
      expect(valueOf(join(project, CURSOR))["mcpServers"]).toMatchObject({
        deepagent: { env: { ANTHROPIC_API_KEY: "${env:ANTHROPIC_API_KEY}" } },
      });
    },
  );

  it("shows the command of clients that have one, and how to remove it", async () => {
    const folder = join(home, "it's here");
    mkdirSync(folder);
    const { OPENAI_BASE_URL: url } = await provider("openai");
    const args = ["--workspace", folder, "--env", "OPENAI_API_KEY", "--env", `OPENAI_BASE_URL=${url}`];
    const { stdout } = await bin(["install", "claude-code", ...args], { OPENAI_API_KEY: WIRE_KEY });
    expect(stdout).toContain(
      `claude mcp add --env OPENAI_API_KEY="$OPENAI_API_KEY" --env OPENAI_BASE_URL=${url} --scope user`,
    );
    expect(stdout).toContain(`${BIN} --workspace '${home}/it'\\''s here'`);
    expect(stdout).toContain("All checks passed.");
    expect((await bin(["uninstall", "claude-code"])).stdout).toContain("claude mcp remove");
  });

  it("changes nothing with --print, for an unknown client, or a folder that is not there", async () => {
    expect((await bin(["install", "vscode", "--print"])).stdout).toContain('"servers"');
    expect(existsSync(join(home, ".config"))).toBe(false);
    expect(await bin(["install", "emacs"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Unknown client"),
    });
    expect(await bin(["install", "windsurf", "--project"])).toMatchObject({ code: 2 });
    expect(await bin(["install", "cursor", "--workspace", "none"])).toMatchObject({ code: 2 });
    expect(await bin(["install", "cursor", "--env", "a b"])).toMatchObject({ code: 2 });
  });
});

describe("links of a project that lead out of it", () => {
  const ENTRIES = '{"mcpServers":{"first":{}}}';
  /** Links by client: name in the project, target. `{out}` stands for a folder beside the project. */
  const LINKS: ReadonlyArray<[name: string, client: string, links: Record<string, string>]> = [
    ["a file link", "cursor", { ".cursor/mcp.json": "{out}/made.json" }],
    ["a relative file link", "claude-code", { ".mcp.json": "../out/made.json" }],
    ["a link to an existing file", "gemini", { ".gemini/settings.json": "{out}/there.json" }],
    ["a folder link", "cursor", { ".cursor": "{out}" }],
    ["a folder link to a missing folder", "vscode", { ".vscode": "{out}/new/folder" }],
    ["a link to a link", "opencode", { "opencode.json": "a", a: "b", b: "{out}/made.json" }],
    ["a link through a folder link", "claude-code", { ".mcp.json": "way/made.json", way: "{out}" }],
    ["the copy of the file", "claude-code", { ".mcp.json.before-deepagent": "{out}/there.json" }],
    ["the copy of the file, missing", "cursor", { ".cursor/mcp.json.before-deepagent": "{out}/made.json" }],
  ];

  it.each(LINKS)("%s is neither read nor written (%s)", async (_name, client, links) => {
    const out = join(home, "out");
    mkdirSync(out);
    writeFileSync(join(out, "there.json"), ENTRIES);
    for (const [name, target] of Object.entries(links)) {
      mkdirSync(dirname(join(project, name)), { recursive: true });
      symlinkSync(target.replace("{out}", out), join(project, name));
    }
    const before = readdirSync(project, { recursive: true });
    for (const command of ["install", "uninstall"]) {
      const given = command === "install" ? ["--model", "offline", "--yes"] : [];
      const { code, stderr } = await bin([command, client, "--project", ...given]);
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /: \S+ was left alone: a link leads from \S+ to \S+, outside the project\. Replace/,
      );
    }
    expect(readdirSync(out)).toEqual(["there.json"]);
    expect(readFileSync(join(out, "there.json"), "utf8")).toBe(ENTRIES);
    expect(readdirSync(project, { recursive: true })).toEqual(before);
  });

  it("keep a key out of the keychain, too", async () => {
    symlinkSync(join(home, "out.json"), join(project, ".mcp.json"));
    const { code, stderr } = await bin(
      ["install", "claude-code", "--project", "--model", "anthropic:claude-sonnet-4-5", "--yes"],
      { ANTHROPIC_API_KEY: "sk-ant-0123456789abcdef" },
    );
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("outside the project") });
    expect(existsSync(join(home, "out.json"))).toBe(false);
  });

  it("are followed inside the project", async () => {
    mkdirSync(join(project, "config"));
    symlinkSync("config", join(project, ".cursor"));
    symlinkSync("servers.json", join(project, "config/mcp.json"));
    await bin(["install", "cursor", "--project", "--model", "offline"]);
    expect(valueOf(join(project, "config/servers.json"))["mcpServers"]).toHaveProperty("deepagent");
    expect((await bin(["uninstall", "cursor", "--project"])).code).toBe(0);
    expect(readdirSync(join(project, "config"))).toEqual(["mcp.json"]);
  });
});

describe("one entry for all projects", () => {
  const argsOf = (stdout: string): string => stdout.slice(stdout.indexOf("--folders"));

  it("names the folders beside the current one, or those that are given or configured", async () => {
    const beside = await bin(["install", "claude-code", "--all-projects", "--model", "offline", "--print"]);
    expect(beside.stdout).toContain("--scope user");
    expect(argsOf(beside.stdout)).toContain(join(home, "*"));
    expect(beside.stdout).not.toContain("--workspace");
    const given = ["install", "cursor", "--all-projects", "--folders", "~/code/*", "--folders", "~/notes"];
    const none = await bin([...given, "--model", "offline", "--yes"]);
    expect([none.code, none.stdout]).toEqual([1, expect.stringContaining("0 folders to choose from")]);
    mkdirSync(join(home, "code/api"), { recursive: true });
    const { code, stdout } = await bin([...given, "--model", "offline", "--yes"]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("1 folder to choose from")]);
    const entry = Object(valueOf(join(home, CURSOR))["mcpServers"]?.["deepagent"]) as { args: string[] };
    expect(entry.args.slice(-6)).toEqual([
      "--folders",
      join(home, "code/*"),
      "--folders",
      join(home, "notes"),
      "--model",
      "offline",
    ]);
    const env = { DEEPAGENT_FOLDERS: "~/work/*" };
    const configured = await bin(
      ["install", "codex", "--all-projects", "--model", "offline", "--print"],
      env,
    );
    expect(configured.stdout).toContain(join(home, "work/*"));
  });

  it("is refused together with the configuration of one project", async () => {
    const { code, stderr } = await bin(["install", "cursor", "--all-projects", "--project", "--yes"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("omit --project")]);
  });
});
