/** Calls that can only fail: the model gets the error at once, and nobody is asked. */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { DeepAgentParams } from "../../../../src/agent/agent.ts";
import type { FilesystemPermission } from "../../../../src/agent/calls/permissions.ts";
import { CompositeBackend } from "../../../../src/backends/composite/composite.ts";
import { FilesystemBackend } from "../../../../src/backends/filesystem/filesystem.ts";
import { PolicyBackend } from "../../../../src/backends/policy.ts";
import { LocalShellBackend } from "../../../../src/backends/sandbox/shell-backend.ts";
import { StateBackend } from "../../../../src/backends/stores/state.ts";
import { filesIn } from "../../../support/files-in.ts";
import { paused } from "../../../support/run-agent.ts";
import type { ScriptedToolCall } from "../../../support/scripted-model.ts";
import { agentWith, answer, approve, effect, go, ran, shownIn, task, texts } from "./asking.ts";

let folder: string;
beforeEach(() => {
  folder = filesIn();
  mkdirSync(join(folder, "dir"));
  writeFileSync(join(folder, "a.txt"), "one\ntwo\none\n");
  writeFileSync(join(folder, "dir/b.txt"), "b\n");
  writeFileSync(join(folder, "a.png"), Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0]));
});

const ASKED = [
  "write_file",
  "edit_file",
  "delete",
  "read_file",
  "ls",
  "glob",
  "grep",
  "execute",
  "task",
  "act",
];

/** An agent that asks about every one of its calls. */
function askingAgent(params: DeepAgentParams = {}) {
  const files = new LocalShellBackend({ rootDir: folder, virtualMode: true });
  onTestFinished(() => files.close());
  return agentWith({
    tools: [effect("act")],
    backend: files,
    interruptOn: Object.fromEntries(ASKED.map((name) => [name, true])),
    subagents: [{ name: "worker", description: "d", systemPrompt: "p" }],
    ...params,
  });
}

const made = (name: string, args: Record<string, unknown>, id = "a"): ScriptedToolCall => ({
  id,
  name,
  args,
});
const write = (path: string, content = "x", id = "a") => made("write_file", { file_path: path, content }, id);
const edit = (path: string, from: string, to = "x", id = "a") =>
  made("edit_file", { file_path: path, old_string: from, new_string: to }, id);

const FAILING: [string, ScriptedToolCall, RegExp][] = [
  ["writes a file that exists", write("/a.txt"), /^Error: Cannot write to \/a.txt because it already exists/],
  ["writes a directory", write("/dir"), /^Error: '\/dir' is a directory/],
  ["writes a path that ends as a directory", write("/new/"), /^Error: '\/new' is a directory/],
  [
    "writes a picture that exists",
    write("/a.png", "AAEC"),
    /^Error: Cannot write to \/a.png because it already/,
  ],
  [
    "writes a picture that is not base64",
    write("/b.png", "?"),
    /^Error: Content of '\/b.png' must be base64/,
  ],
  ["edits a missing file", edit("/none.txt", "a"), /^Error: File '\/none.txt' not found/],
  ["edits a directory", edit("/dir", "a"), /^Error: '\/dir' is a directory/],
  ["edits a binary file", edit("/a.png", "a"), /^Error: File '\/a.png' is binary/],
  ["edits text that is missing", edit("/a.txt", "three"), /^Error: String not found .*Read the file again/s],
  ["edits text that stands twice", edit("/a.txt", "one"), /^Error: String 'one' appears 2 times/],
  ["edits nothing", edit("/a.txt", "two", "two"), /^Error: old_string and new_string are identical/],
  ["deletes a missing file", made("delete", { file_path: "/none" }), /^Error: File '\/none' not found/],
  ["deletes everything", made("delete", { file_path: "/" }), /^Error: Refusing to delete '\/'/],
  ["reads a missing file", made("read_file", { file_path: "/none" }), /^Error: File '\/none' not found/],
  ["reads a directory", made("read_file", { file_path: "/dir" }), /^Error: '\/dir' is a directory/],
  ["lists a missing directory", made("ls", { path: "/none" }), /^Error: Directory '\/none' not found/],
  [
    "finds in a missing directory",
    made("glob", { pattern: "*", path: "/none" }),
    /^Error: .*'\/none' not found/,
  ],
  [
    "searches a missing directory",
    made("grep", { pattern: "a", path: "/none" }),
    /^Error: .*'\/none' not found/,
  ],
  ["leaves the tree", write("../x"), /^Error: Path traversal not allowed: ..\/x/],
  ["runs nothing", made("execute", { command: " " }), /^Error: Invalid arguments .*non-empty/],
  ["runs outside the tree", made("execute", { command: "ls", cwd: "../x" }), /^Error: Path traversal not/],
  ["starts an unknown subagent", task("a", [], "nobody"), /^Error: invoked agent of type nobody/],
  ["has arguments that do not fit", made("act", { n: "many" }), /^Error: Invalid arguments for act/],
  ["names a tool that does not exist", made("fly", {}), /^Error: fly is not a valid tool/],
];

/** Rows with another call of the same tool, which may succeed and is asked about. */
const WITH_SIBLING: [string, ScriptedToolCall, RegExp, ScriptedToolCall][] = [
  [
    "writes below a file",
    write("/w/a.txt/b"),
    /^Error: '\/w\/a.txt\/b' cannot exist because one/,
    write("/w/b/c/d"),
  ],
  [
    "writes two levels below a file",
    write("/w/a.txt/b/c"),
    /^Error: .* one of its parent directories/,
    write("/w/b"),
  ],
  ["edits below a file", edit("/w/a.txt/b", "a"), /^Error: '\/w\/a.txt\/b' cannot/, edit("/w/a.txt", "two")],
  [
    "writes to a link",
    write("/w/link"),
    /^Error: Cannot write to \/w\/link because it is a symlink/,
    write("/w/l"),
  ],
  ["edits in a read-only folder", edit("/ro/b.txt", "b"), /^Error: Edits are not/, edit("/w/dir/b.txt", "b")],
  [
    "deletes in a read-only folder",
    made("delete", { file_path: "/ro/b.txt" }),
    /^Error: Deletes are not/,
    made("delete", { file_path: "/w/a.txt" }),
  ],
  [
    "deletes a folder with protected entries",
    made("delete", { file_path: "/p/dir" }),
    /^Error: Deletes are not allowed under \/p\/dir/,
    made("delete", { file_path: "/p/free" }),
  ],
  [
    "deletes a mount",
    made("delete", { file_path: "/w" }),
    /^Error: Refusing to delete '\/w'/,
    made("delete", { file_path: "/w/dir" }),
  ],
  [
    "reads beyond the end",
    made("read_file", { file_path: "/w/a.txt", offset: 9 }),
    /^Error: Line offset 9 exceeds/,
    made("read_file", { file_path: "/w/a.txt" }),
  ],
  [
    "reads a file that cannot be shown",
    made("read_file", { file_path: "/w/a.bin" }),
    /^Error: File '\/w\/a.bin' is binary/,
    made("read_file", { file_path: "/w/dir/b.txt" }),
  ],
  [
    "finds by a broken pattern",
    made("glob", { pattern: "[", path: "/w" }),
    /^Error: Invalid glob/,
    made("glob", { pattern: "*", path: "/w" }),
  ],
  [
    "finds in a file",
    made("glob", { pattern: "*", path: "/w/a.txt" }),
    /^Error: .* is not a directory/,
    made("glob", { pattern: "a" }),
  ],
  [
    "searches by a broken expression",
    made("grep", { pattern: "(", regex: true }),
    /^Error: Invalid regex/,
    made("grep", { pattern: "(" }),
  ],
  [
    "searches over a line break",
    made("grep", { pattern: "a\nb" }),
    /^Error: Search pattern contains a line/,
    made("grep", { pattern: "a" }),
  ],
  [
    "searches files of a broken pattern",
    made("grep", { pattern: "a", glob: "{" }),
    /^Error: Invalid glob/,
    made("grep", { pattern: "a", glob: "*" }),
  ],
  [
    "runs in a missing folder",
    made("execute", { command: "true", cwd: "/w/none" }),
    /^Error: Directory '\/w\/none' not found\n\[Command failed/,
    made("execute", { command: "true", cwd: "/w/dir" }),
  ],
  [
    "runs in a file",
    made("execute", { command: "true", cwd: "/w/a.txt" }),
    /^Error: '\/w\/a.txt' is not a directory/,
    made("execute", { command: "true", cwd: "/w/out" }),
  ],
  [
    "runs where no command runs",
    made("execute", { command: "true", cwd: "/ro" }),
    /^Error: Commands run in \/w\/ and below only/,
    made("execute", { command: "true", cwd: "/w" }),
  ],
  [
    "starts a job in a missing folder",
    made("execute", { command: "true", cwd: "/w/none", background: true }),
    /^Error: Directory '\/w\/none' not found$/,
    made("execute", { command: "true", background: true }),
  ],
  [
    "runs a command with NUL",
    made("execute", { command: "a\0b" }),
    /^Error: Invalid .* NUL character/,
    made("execute", { command: "a" }),
  ],
  [
    "reads a job without an id",
    made("job", { action: "read" }),
    /^Error: job needs the id/,
    made("execute", { command: "true" }),
  ],
  [
    "stops a job that does not exist",
    made("job", { action: "stop", id: "job_1" }),
    /^Error: There is no background job 'job_1'/,
    made("job", { action: "list" }),
  ],
  [
    "runs a program that does not compile",
    made("run_program", { source: "let = ;" }),
    /^Error: SyntaxError: unexpected token .*program.js:1:21$/s,
    made("run_program", { source: "throw new Error('ran')" }),
  ],
  [
    "runs a program that ends too early",
    made("run_program", { source: "return 1; }" }),
    /^Error: SyntaxError: /,
    made("run_program", { source: "return 1;" }),
  ],
  [
    "asks for two fields of one name",
    made("ask_user", { question: "q", fields: [{ name: "a" }, { name: "a" }] }),
    /^Error: .*Two fields are named 'a'/,
    made("ask_user", { question: "q" }),
  ],
  [
    "reads a page of a private address",
    made("web_fetch", { url: "http://127.0.0.1/" }),
    /^Error: .* is not on the public internet/,
    made("web_fetch", { url: "https://example.com/" }),
  ],
];

/** A tree of several places, of which one runs commands. */
function askingTree() {
  symlinkSync("a.txt", join(folder, "link"));
  symlinkSync(filesIn(), join(folder, "out"));
  writeFileSync(join(folder, "a.bin"), Uint8Array.from([0, 1, 2, 0]));
  const other = filesIn();
  for (const name of ["dir", "free"]) mkdirSync(join(other, name));
  for (const name of ["b.txt", "dir/secret", "free/c.txt"]) writeFileSync(join(other, name), "b\n");
  const commands = new LocalShellBackend({ rootDir: folder, virtualMode: true });
  onTestFinished(() => commands.close());
  const files = new FilesystemBackend({ rootDir: other, virtualMode: true });
  const places = {
    "/w/": commands,
    "/ro/": new PolicyBackend(files, { readOnly: true }),
    "/p/": new PolicyBackend(files, { denyGlobs: ["**/secret"] }),
  };
  const backend = new CompositeBackend(StateBackend, places, { executor: "/w/" });
  return (interruptOn: DeepAgentParams["interruptOn"]) =>
    agentWith({
      backend,
      interruptOn,
      filesystem: { jobs: true },
      programs: true,
      askUser: true,
      web: { mode: "allow" },
    });
}

describe("a call that can only fail", () => {
  const everything = Object.fromEntries(WITH_SIBLING.flatMap(([, { name }]) => [[name, true]]));

  it.each(WITH_SIBLING)("%s: nobody is asked, but about another one", async (_what, call, error, sibling) => {
    const treeWith = askingTree();
    const agent = treeWith(everything);
    expect((await go(agent, [call])).at(-1)).toMatchObject({ kind: "finished" });
    expect(await texts(agent)).toEqual([expect.stringMatching(error)]);
    const asked = paused(await go(treeWith(everything), [sibling]));
    expect(asked.map((one) => shownIn(one)?.name)).toEqual([sibling.name]);
    // The error is that of the call itself.
    const unasked = treeWith({});
    await go(unasked, [call]);
    expect(await texts(unasked)).toEqual(await texts(agent));
  });

  it.each(FAILING)("%s: the model gets the error, and nobody is asked", async (_what, call, error) => {
    const agent = askingAgent();
    const events = await go(agent, [call]);
    expect(events.at(-1)).toMatchObject({ kind: "finished" });
    expect(await texts(agent)).toEqual([expect.stringMatching(error)]);
    // The error is that of the call itself, so that a model cannot tell the two apart.
    const unasked = askingAgent({ interruptOn: {} });
    await go(unasked, [call]);
    if (!["grep", "edit_file"].includes(call.name)) expect(await texts(unasked)).toEqual(await texts(agent));
    expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("one\ntwo\none\n");
  });

  it("of a subagent and of a program is not asked about either", async () => {
    const inner = [write("/a.txt", "x", "inner")];
    const delegating = askingAgent({ interruptOn: { write_file: true } });
    expect((await go(delegating, [task("t", inner)])).at(-1)).toMatchObject({ kind: "finished" });
    const source =
      'try { await tools.write_file({ file_path: "/a.txt", content: "x" }) } catch (e) { return e.message }';
    const programmed = askingAgent({ interruptOn: { write_file: true }, programs: true });
    expect((await go(programmed, [made("run_program", { source })])).at(-1)).toMatchObject({
      kind: "finished",
    });
    expect((await texts(programmed))[0]).toContain("Cannot write to /a.txt because it already exists");
  });

  it("is answered at once beside calls that cannot change its file", async () => {
    const agent = askingAgent();
    const calls = [
      write("/a.txt", "x", "fails"),
      write("/new.txt", "x", "asks"),
      edit("/dir/b.txt", "b", "c", "too"),
    ];
    const open = paused(await go(agent, calls)).map((one) => shownIn(one)?.toolCallId);
    expect(open.sort()).toEqual(["asks", "too"]);
  });

  it.each<[string, ScriptedToolCall]>([
    ["a command", made("execute", { command: "rm a.txt" }, "b")],
    ["a tool with effects", made("act", { n: 1 }, "b")],
    ["a subagent", task("b", [])],
    ["a deletion above it", made("delete", { file_path: "/dir" }, "b")],
  ])("is asked about beside %s, which may make it possible", async (_what, other) => {
    const agent = askingAgent();
    const open = paused(await go(agent, [write("/dir/b.txt"), other]));
    expect(open.map((one) => shownIn(one)?.toolCallId).sort()).toEqual(["a", "b"]);
  });

  it("is answered at once beside a command, if its arguments alone are wrong", async () => {
    const agent = askingAgent();
    const open = paused(await go(agent, [write("../x"), made("execute", { command: "true" }, "b")]));
    expect(open.map((one) => shownIn(one)?.toolCallId)).toEqual(["b"]);
  });

  it("does not say what is in a file that a person has to allow to be read", async () => {
    const rule: FilesystemPermission = {
      operations: ["read", "write"],
      paths: ["/dir/**"],
      mode: "interrupt",
    };
    const agent = askingAgent({ interruptOn: {}, permissions: [rule] });
    const [asked, ...others] = paused(
      await go(agent, [edit("/dir/b.txt", "c"), made("read_file", { file_path: "/dir/none" }, "b")]),
    );
    expect([shownIn(asked)?.toolCallId, others]).toEqual(["a", []]);
  });

  it("in a folder that is read-only is refused", async () => {
    const files = new LocalShellBackend({ rootDir: folder, virtualMode: true });
    onTestFinished(() => files.close());
    const ruled = new PolicyBackend(files, { readOnly: true });
    const backend = new CompositeBackend(StateBackend, { "/ro/": ruled });
    const agent = askingAgent({ backend });
    expect((await go(agent, [write("/ro/new.txt")])).at(-1)).toMatchObject({ kind: "finished" });
    expect((await texts(agent))[0]).toMatch(/^Error: Writes are not allowed/);
  });
});

it("a call that fails only after its approval is asked about again, and one that may fail is asked about", async () => {
  const agent = askingAgent();
  const [open] = paused(await go(agent, [write("/new.txt", "mine")]));
  writeFileSync(join(folder, "new.txt"), "theirs");
  const [again] = paused(await answer(agent, open, approve));
  expect(shownIn(again)?.preview?.summary).toContain("it would fail, because the file already exists");
  const [doubtful] = paused(await go(askingAgent(), [made("execute", { command: "false" })]));
  expect(shownIn(doubtful)?.name).toBe("execute");
  expect(ran).toEqual([]);
});
