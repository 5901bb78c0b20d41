/** Calls that can only fail: the model gets the error at once, and nobody is asked. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { DeepAgentParams } from "../../../../src/agent/agent.ts";
import type { FilesystemPermission } from "../../../../src/agent/calls/permissions.ts";
import { CompositeBackend } from "../../../../src/backends/composite/composite.ts";
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

describe("a call that can only fail", () => {
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
