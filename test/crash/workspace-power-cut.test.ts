import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newFolder } from "./checks.ts";
import { readTrace, traced } from "./trace.ts";

const LIBRARY = join(import.meta.dirname, "../../dist/index.js");
const PROGRAM = `
import { writeSync } from "node:fs";
import { FilesystemBackend } from ${JSON.stringify(LIBRARY)};
const backend = new FilesystemBackend({ rootDir: process.argv[1], virtualMode: true });
for (const [method, ...args] of [
  ["write", "/new/a.txt", "one"],
  ["edit", "/new/a.txt", "one", "two"],
  ["write", "/b.txt", "three"],
  ["delete", "/b.txt"],
]) {
  const { error } = await backend[method](...args);
  if (error !== undefined) throw new Error(error);
  writeSync(1, JSON.stringify({ done: method }) + "\\n");
}`;

// Without strace nobody sees when the disk is waited for.
test("a change of the workspace is on the disk before it is told to be made", { tags: "strace" }, () => {
  const folder = newFolder();
  const workspace = join(folder, "workspace");
  const [strace = "", ...options] = traced(join(folder, "trace"));
  const program = [process.execPath, "--input-type=module", "-e", PROGRAM, workspace];
  execFileSync(strace, [...options, ...program], { stdio: "pipe" });

  const told = readTrace(join(folder, "trace")).flatMap((event) => {
    if (event.kind === "said") return [event.text.trim()];
    if (event.kind === "put") return [`put ${event.file}`];
    return event.kind === "sync" ? [`sync ${event.file.replace(/[0-9a-f]{24}/, "*")}`] : [];
  });
  expect(told.join("\n").replaceAll("}\n", "}\n\n")).toBe(`sync .deepagent-*.tmp
put a.txt
sync new
{"done":"write"}

sync .deepagent-*.tmp
put a.txt
sync new
{"done":"edit"}

sync .deepagent-*.tmp
put b.txt
sync workspace
{"done":"write"}

sync workspace
{"done":"delete"}`);
});
