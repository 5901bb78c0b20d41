import {
  appendFileSync,
  chmodSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { Agent, PendingInterrupt } from "../../../../src/agent/agent.ts";
import { FilesystemBackend } from "../../../../src/backends/filesystem/filesystem.ts";
import { CompositeBackend } from "../../../../src/backends/composite/composite.ts";
import { LocalShellBackend } from "../../../../src/backends/sandbox/shell-backend.ts";
import { StateBackend } from "../../../../src/backends/stores/state.ts";
import { paused } from "../../../support/run-agent.ts";
import type { ScriptedToolCall } from "../../../support/scripted-model.ts";
import { agentWith, answer, answerAll, approve, call, edit, go, ran, shownIn, texts } from "./asking.ts";
import { filesIn } from "../../../support/files-in.ts";

let folder: string;
const at = (path: string): string => join(folder, path);
const read = (path: string): string => readFileSync(at(path), "utf8");

beforeEach(() => {
  folder = filesIn();
});

/** An agent whose workspace is the folder, and whose changes of files are asked about. */
const fileAgent = (): Agent =>
  agentWith({
    tools: [],
    backend: new CompositeBackend(StateBackend, {
      "/workspace/": new FilesystemBackend({ rootDir: folder, virtualMode: true }),
    }),
    interruptOn: { edit_file: true, write_file: true, delete: true },
  });

const change = (path: string, from: string, to: string, id = "a"): ScriptedToolCall => ({
  id,
  name: "edit_file",
  args: { file_path: `/workspace/${path}`, old_string: from, new_string: to },
});
const editOf = (path: string) => ({ file_path: path, old_string: "old", new_string: "new" });
const ask = async (agent: Agent, ...calls: ScriptedToolCall[]): Promise<PendingInterrupt[]> => [
  ...paused(await go(agent, calls)),
];
const preview = (open: PendingInterrupt | undefined) => shownIn(open)?.preview;

/** Approves, and gives what is asked then. */
async function askedAgain(agent: Agent, open: PendingInterrupt | undefined): Promise<PendingInterrupt> {
  const [again] = paused(await answer(agent, open, approve));
  expect(again?.id).not.toBe(open?.id);
  expect(preview(again)?.summary).toMatch(
    /Asked again: (?:the file|what it would do) changed after the approval, so nothing was done$/,
  );
  if (again === undefined) throw new Error("nothing was asked again");
  return again;
}

it("people are asked in the order of the calls, however long their previews take", async () => {
  const held = new Map([
    ["/workspace/a.txt", 60],
    ["/workspace/c.txt", 20],
  ]);
  class SlowToRead extends FilesystemBackend {
    override async readRaw(...args: Parameters<FilesystemBackend["readRaw"]>) {
      await delay(held.get(`/workspace${args[0]}`) ?? 0);
      return super.readRaw(...args);
    }
  }
  const agent = agentWith({
    backend: new CompositeBackend(StateBackend, {
      "/workspace/": new SlowToRead({ rootDir: folder, virtualMode: true }),
    }),
    interruptOn: { edit_file: true, act: true },
  });
  for (const name of ["a", "b", "c"]) writeFileSync(at(`${name}.txt`), "old");
  const calls = ["a", "b", "c"].map((name) => change(`${name}.txt`, "old", "new", name));
  const events = await go(agent, [...calls, call("free", 1, "other"), call("last")]);
  const asked = events.flatMap((event) =>
    event.kind === "approval_requested"
      ? event.request.actionRequests.map(({ toolCallId }) => toolCallId)
      : [],
  );
  expect(asked).toEqual(["a", "b", "c", "last"]);
  expect(ran).toEqual(["other 1"]);
});

describe("an approved edit", () => {
  it("of a file that changed meanwhile is not made: the person is asked again with the new diff", async () => {
    writeFileSync(at("a.txt"), "timeout = 5\nretries = 1\n");
    const agent = fileAgent();
    const [open] = await ask(agent, change("a.txt", "timeout = 5", "timeout = 9"));
    writeFileSync(at("a.txt"), "timeout = 5\nretries = 1000\n");
    const again = await askedAgain(agent, open);
    expect(preview(open)?.detail).toMatch(/^ retries = 1$/m);
    expect(preview(again)?.detail).toContain(" retries = 1000");
    expect(read("a.txt")).toBe("timeout = 5\nretries = 1000\n");
    writeFileSync(at("a.txt"), "timeout = 5\nretries = 2000\n");
    const third = await askedAgain(agent, again);
    await answer(agent, third, approve);
    expect(read("a.txt")).toBe("timeout = 9\nretries = 2000\n");
    expect(await texts(agent)).toEqual(["Successfully replaced 1 occurrence(s) in '/workspace/a.txt'"]);
  });

  it("is made when the result is what was shown: touched, or changed far from the edit", async () => {
    const rest = "line\n".repeat(20);
    writeFileSync(at("a.txt"), `old\n${rest}`);
    const agent = fileAgent();
    const [open] = await ask(agent, change("a.txt", "old", "new"));
    utimesSync(at("a.txt"), 1, 1);
    appendFileSync(at("a.txt"), "more\n");
    await answer(agent, open, approve);
    expect(read("a.txt")).toBe(`new\n${rest}more\n`);
  });

  it("through a link that leads elsewhere by now is asked about again", async () => {
    for (const name of ["x", "y"]) {
      mkdirSync(at(name));
      writeFileSync(at(`${name}/a.txt`), "old\n");
    }
    symlinkSync("x", at("link"));
    const agent = fileAgent();
    const [open] = await ask(agent, change("link/a.txt", "old", "new"));
    expect(preview(open)?.summary).toContain("/workspace/link/a.txt, which leads to /workspace/x/a.txt");
    unlinkSync(at("link"));
    symlinkSync("y", at("link"));
    const again = await askedAgain(agent, open);
    expect(preview(again)?.summary).toContain("which leads to /workspace/y/a.txt");
    expect([read("x/a.txt"), read("y/a.txt")]).toEqual(["old\n", "old\n"]);
    await answer(agent, again, { type: "reject" });
    expect([read("x/a.txt"), read("y/a.txt")]).toEqual(["old\n", "old\n"]);
  });

  it("goes ahead beside another one of the same file that is far from it", async () => {
    const rest = "line\n".repeat(20);
    writeFileSync(at("a.txt"), `top\n${rest}end\n`);
    const agent = fileAgent();
    const calls = [change("a.txt", "top", "TOP", "a"), change("a.txt", "end", "END", "b")];
    const open = await ask(agent, ...calls);
    const decisions = Object.fromEntries(open.map(({ id }) => [id, { decisions: [approve] }]));
    await answerAll(agent, decisions);
    expect(read("a.txt")).toBe(`TOP\n${rest}END\n`);
  });

  it("beside another one that it touches is asked about again, and its answer is its own", async () => {
    writeFileSync(at("a.txt"), "one\ntwo\n");
    const agent = fileAgent();
    const open = await ask(agent, change("a.txt", "one", "1", "a"), change("a.txt", "two", "2", "b"));
    const decisions = Object.fromEntries(open.map(({ id }) => [id, { decisions: [approve] }]));
    const [again, ...others] = paused(await answerAll(agent, decisions));
    expect(others).toEqual([]);
    expect(["1\ntwo\n", "one\n2\n"]).toContain(read("a.txt"));
    await answer(agent, again, approve);
    expect(read("a.txt")).toBe("1\n2\n");
  });

  it("that the person changed needs the file as it was when they changed the call", async () => {
    writeFileSync(at("a.txt"), "old\n");
    const agent = fileAgent();
    const own = edit("edit_file", change("a.txt", "old", "theirs").args);
    const [open] = await ask(agent, change("a.txt", "old", "new"));
    writeFileSync(at("a.txt"), "old\nand more\n");
    const [again] = paused(await answer(agent, open, own));
    expect(preview(again)?.detail).toContain(" and more");
    await answer(agent, again, own);
    expect(read("a.txt")).toBe("theirs\nand more\n");
  });
});

describe("a change of a read-only file", () => {
  it("is refused without an approval, in words that say what to do", async () => {
    writeFileSync(at("a.txt"), "old\n", { mode: 0o444 });
    const agent = agentWith({
      tools: [],
      backend: new FilesystemBackend({ rootDir: folder, virtualMode: true }),
    });
    await go(agent, [{ ...change("a.txt", "old", "new"), args: editOf("/a.txt") }]);
    expect(await texts(agent)).toEqual([
      "Error: File '/a.txt' is read-only: its mode denies writing to everyone. It can be changed only after a person approves that. Ask for approval, or write to another file.",
    ]);
    expect(read("a.txt")).toBe("old\n");
  });

  it("is made when a person approves it, who is told", async () => {
    writeFileSync(at("a.txt"), "old\n", { mode: 0o444 });
    const agent = fileAgent();
    const [open] = await ask(agent, change("a.txt", "old", "new"));
    expect(preview(open)?.summary).toBe("Edit /workspace/a.txt (1 occurrence); this file is read-only");
    await answer(agent, open, approve);
    expect(read("a.txt")).toBe("new\n");
  });

  it("is asked about again when the file became read-only meanwhile", async () => {
    writeFileSync(at("a.txt"), "old\n");
    const agent = fileAgent();
    const [open] = await ask(agent, change("a.txt", "old", "new"));
    chmodSync(at("a.txt"), 0o444);
    const again = await askedAgain(agent, open);
    expect(preview(again)?.summary).toContain("this file is read-only");
    await answer(agent, again, approve);
    expect(read("a.txt")).toBe("new\n");
  });

  it("is not made for another call than the one that was shown", async () => {
    writeFileSync(at("a.txt"), "old\n");
    writeFileSync(at("ro.txt"), "old\n", { mode: 0o444 });
    const agent = fileAgent();
    const [open] = await ask(agent, change("a.txt", "old", "new"));
    await answer(agent, open, edit("edit_file", editOf("/workspace/ro.txt")));
    expect(read("ro.txt")).toBe("old\n");
    expect((await texts(agent)).at(-1)).toContain("'/workspace/ro.txt' is read-only");
  });

  it("with several names says so, before and after", async () => {
    writeFileSync(at("a.txt"), "old\n");
    linkSync(at("a.txt"), at("b.txt"));
    const agent = fileAgent();
    const [open] = await ask(agent, change("a.txt", "old", "new"));
    expect(preview(open)?.summary).toContain("; this file has 2 names; the change applies to all of them");
    await answer(agent, open, approve);
    expect([read("a.txt"), read("b.txt")]).toEqual(["new\n", "new\n"]);
    expect((await texts(agent)).at(-1)).toBe(
      "Successfully replaced 1 occurrence(s) in '/workspace/a.txt'. The same file is '/workspace/b.txt', and changed there too",
    );
  });
});

it("an approved new file is asked about again when something else is there by now", async () => {
  const agent = fileAgent();
  const write = { id: "a", name: "write_file", args: { file_path: "/workspace/a.txt", content: "mine\n" } };
  const [open] = await ask(agent, write);
  writeFileSync(at("a.txt"), "theirs\n");
  const again = await askedAgain(agent, open);
  expect(preview(again)?.summary).toContain("it would fail, because the file already exists");
  unlinkSync(at("a.txt"));
  const third = await askedAgain(agent, again);
  await answer(agent, third, approve);
  expect(read("a.txt")).toBe("mine\n");
});

it("an approved command whose directory is reached through a link that leads elsewhere by now is asked about again", async () => {
  for (const name of ["x", "y"]) mkdirSync(at(name));
  symlinkSync("x", at("link"));
  const shell = new LocalShellBackend({ rootDir: folder, virtualMode: true });
  onTestFinished(() => shell.close());
  const agent = agentWith({ tools: [], backend: shell, interruptOn: { execute: true } });
  const touch = { id: "a", name: "execute", args: { command: "touch here", cwd: "/link" } };
  const [open] = await ask(agent, touch);
  expect(preview(open)?.summary).toContain("Run a command in /link, which leads to /x");
  unlinkSync(at("link"));
  symlinkSync("y", at("link"));
  const again = await askedAgain(agent, open);
  expect(preview(again)?.summary).toContain("in /link, which leads to /y");
  expect([...readdirSync(at("x")), ...readdirSync(at("y"))]).toEqual([]);
  await answer(agent, again, approve);
  expect(readdirSync(at("y"))).toEqual(["here"]);
});

describe("an approved deletion", () => {
  const remove = (path: string): ScriptedToolCall => ({
    id: "a",
    name: "delete",
    args: { file_path: `/workspace/${path}` },
  });

  it("of a folder that has gained a file is asked about again, with that file", async () => {
    mkdirSync(at("d/e"), { recursive: true });
    writeFileSync(at("d/e/a.txt"), "a");
    const agent = fileAgent();
    const [open] = await ask(agent, remove("d"));
    expect(preview(open)).toMatchObject({
      summary: "Delete /workspace/d and everything below it: 2 entries",
      detail: "/workspace/d/e/\n/workspace/d/e/a.txt",
    });
    writeFileSync(at("d/e/b.txt"), "b");
    const again = await askedAgain(agent, open);
    expect(preview(again)?.detail).toContain("/workspace/d/e/b.txt");
    expect(readdirSync(at("d/e"))).toEqual(["a.txt", "b.txt"]);
    await answer(agent, again, approve);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("of a link says that what it leads to stays; a folder in its place is another deletion", async () => {
    mkdirSync(at("kept"));
    writeFileSync(at("kept/a.txt"), "a");
    symlinkSync("kept", at("link"));
    const agent = fileAgent();
    const [open] = await ask(agent, remove("link"));
    expect(preview(open)?.summary).toBe("Delete the link /workspace/link; its target stays");
    unlinkSync(at("link"));
    mkdirSync(at("link"));
    writeFileSync(at("link/b.txt"), "b");
    const again = await askedAgain(agent, open);
    expect(preview(again)?.detail).toBe("/workspace/link/b.txt");
    await answer(agent, again, { type: "reject" });
    expect(readdirSync(at("link"))).toEqual(["b.txt"]);
  });
});
