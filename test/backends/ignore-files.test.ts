import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { ToolMessage } from "@langchain/core/messages/tool";
import { MemorySaver } from "@langchain/langgraph";
import { buildAgent } from "../../src/agent/agent.ts";
import { FileTree } from "../../src/app/file-tree.ts";
import { runGates } from "../../src/app/run-gates.ts";
import { FilesystemBackend } from "../../src/backends/filesystem/filesystem.ts";
import { IgnoreFiles } from "../../src/backends/ignore-files.ts";
import table from "../../src/backends/ignore-files.json" with { type: "json" };
import { PolicyBackend } from "../../src/backends/policy.ts";
import { LocalShellBackend } from "../../src/backends/sandbox/shell-backend.ts";
import { ConfigSchema } from "../../src/config/schema.ts";
import { filesIn } from "../support/files-in.ts";
import { findings, isJudge, met } from "../support/judge.ts";
import { collect } from "../support/run-agent.ts";
import { scriptedModel } from "../support/scripted-model.ts";

let root: string;
beforeEach(() => void (root = filesIn()));

function put(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

/** The names that each of these has, from the root or from `path`. */
async function found(path = "/") {
  const rules = IgnoreFiles.of(root);
  const backend = new PolicyBackend(new FilesystemBackend({ rootDir: root, virtualMode: true }), rules ?? {});
  const names = (files: ReadonlyArray<{ path: string }> = []) =>
    files.map((file) => file.path.replace(/\/$/, "")).filter((name) => !/\/\.[^/]*$|\.json/.test(name));
  return {
    backend,
    ls: names((await backend.ls(path)).files),
    glob: names((await backend.glob("**/*", path)).files),
    grep: names((await backend.grep("hit", path)).matches),
  };
}

/** True if reading a path needs a person. */
function asks(path: string, tool = "read_file"): boolean {
  const config = ConfigSchema.parse({ dataDir: "/data", workspace: root });
  const gate = runGates(config, { principal: "local" }, { mounted: undefined, served: [] })[tool];
  return gate !== undefined && Object(gate).when({ args: { file_path: path } }) === true;
}

const FILES = { "a.txt": "hit", "key.pem": "hit", "private/b.txt": "hit" };

it("have a source for each row", () => {
  for (const { source } of [table.searches, table.reading, table.settings].flat())
    expect(source).toMatch(/^(https:\/\/|docs\/)/);
});

it.each(table.reading)("$name hides files, and a person must allow to read them", async ({ name }) => {
  put({ ...FILES, [name]: "# secrets\n*.pem\nprivate/\n" });
  const { backend, ls, glob, grep } = await found();
  expect(ls).toEqual(["/a.txt"]);
  expect(glob).toEqual(["/a.txt"]);
  expect(grep).toEqual(["/a.txt"]);
  expect((await backend.read("/key.pem")).error).toBeUndefined();
  expect(["key.pem", "KEY.pem", "private/b.txt", "a.txt"].map((path) => asks(`/workspace/${path}`))).toEqual([
    true,
    true,
    true,
    false,
  ]);
});

it.each(table.searches)("$name leaves files out of searches only", async ({ name }) => {
  put({ ...FILES, [name]: "*.pem\nprivate/\n" });
  const { ls, glob, grep } = await found();
  expect(ls).toEqual(["/a.txt", "/key.pem", "/private"]);
  expect([glob, grep]).toEqual([["/a.txt"], ["/a.txt"]]);
  expect((await found("/private")).grep).toEqual(["/private/b.txt"]);
  expect(asks("/workspace/key.pem")).toBe(false);
});

describe("settings of programs", () => {
  const rules = { deny: ["Read(./key.pem)", "Bash(rm:*)", "Read", "Edit(a.txt)"], ask: ["Read(private/**)"] };
  const forms: Record<string, object> = {
    rules: { permissions: { ...rules, deny: [...rules.deny, "Read(/private/**)"], allow: ["Read(**)"] } },
    map: { permission: { read: { "*": "allow", "*.pem": "deny", "private/*": "ask" } } },
    list: { private_files: ["**/*.pem", "private/**"] },
    files: { context: { fileFiltering: { customIgnoreFilePaths: ["mine.ignore", "../../etc/passwd"] } } },
  };

  it.each(table.settings)("of $name only take away", async ({ name, form }) => {
    put({ ...FILES, "mine.ignore": "*.pem\nprivate/*", [name]: `// rules\n${JSON.stringify(forms[form])}` });
    const { grep } = await found();
    expect(grep).toEqual(["/a.txt"]);
    expect(["key.pem", "private/b.txt", "a.txt"].map((path) => asks(`/workspace/${path}`))).toEqual([
      true,
      true,
      false,
    ]);
  });

  it.each([
    "",
    "[]",
    "{",
    '{"permissions":3}',
    '{"permissions":{"deny":[1,null,"Read(","Read()","Read(~/x)","Read(//etc/x)"]}}',
  ])("such as %j harm nothing", async (text) => {
    put({ ...FILES, ".claude/settings.json": text });
    expect((await found()).grep).toHaveLength(3);
  });
});

describe("ignore files", () => {
  it("hold for links to a file, and for folders below the one that has them", async () => {
    put({ ...FILES, ".aiignore": "/private/\n*.pem", ".cursorignore": "!*.pem\n" });
    symlinkSync("key.pem", join(root, "link.txt"));
    expect(asks("/workspace/link.txt")).toBe(true);
    expect(asks("/workspace/private", "grep")).toBe(true);
    const below = IgnoreFiles.of(join(root, "private"), root);
    expect([below?.isAsked("/b.txt"), IgnoreFiles.of(join(root, "private"))]).toEqual([true, null]);
  });

  it("are not changed unasked", () => {
    const config = ConfigSchema.parse({ dataDir: "/data", workspace: root, approvals: { write: "none" } });
    const gate = runGates(config, { principal: "local" }, { mounted: undefined, served: [] })["write_file"];
    for (const { name } of [...table.reading, ...table.searches, ...table.settings])
      expect([name, Object(gate).when({ args: { file_path: `/workspace/${name}` } })]).toEqual([name, true]);
  });

  it("do not keep a backend from running commands", async () => {
    put({ ...FILES, ".aiignore": "*.pem" });
    const shell = new LocalShellBackend({ rootDir: root, virtualMode: true });
    const backend = new PolicyBackend(shell, IgnoreFiles.of(root) ?? {});
    const result = await backend.execute?.("cat key.pem");
    expect(result?.output).toContain("hit");
    expect(new PolicyBackend(shell, { denyGlobs: ["x"] }).execute).toBeUndefined();
    await shell.close();
  });
});

it("a judge is refused what a person must allow to be read, because it cannot ask", async () => {
  put({ ...FILES, ".aiexclude": "*.pem\n" });
  const config = ConfigSchema.parse({ dataDir: "/data", workspace: root });
  const owner = { principal: "local" };
  const place = "/workspace/key.pem";
  const looks = [
    { id: "1", name: "read_file", args: { file_path: place } },
    { id: "2", name: "read_file", args: { file_path: "/workspace/a.txt" } },
    { id: "3", name: "grep", args: { path: place, pattern: "hit" } },
  ];
  const model = scriptedModel((request) =>
    !isJudge(request)
      ? { text: "done" }
      : request.messages.some(ToolMessage.isInstance)
        ? findings(met)
        : { toolCalls: looks },
  );
  const agent = buildAgent({
    model,
    checkpointer: new MemorySaver(),
    goal: { criteria: ["There is a key"] },
    backend: new FileTree(config).withThread(owner),
    interruptOn: runGates(config, owner, { mounted: undefined, served: [] }),
  });
  await collect(agent, { kind: "task", task: "make a key" });
  const { messages = [] } = model.requests.filter(isJudge).at(-1) ?? {};
  const results = messages.filter(ToolMessage.isInstance);
  expect(results.map(({ text }) => /needs a person's approval|hit/.exec(text)?.[0])).toEqual([
    "needs a person's approval",
    "hit",
    "needs a person's approval",
  ]);
});
