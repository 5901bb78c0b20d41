import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { filesIn } from "../support/files-in.ts";
import { openWorld, type World } from "../support/harness.ts";
import { answersOf, play } from "../support/harness-brain.ts";
import type { TestClient } from "../support/clients.ts";
import { APPROVE, repeat, runIdOf } from "./support.ts";

const IN = "/workspace";
/** What an agent may try with each name. */
const NAMES = [
  "missing.txt",
  "missing/below.txt",
  "file.txt/below.txt",
  "folder",
  "outside",
  "outside/secret.txt",
  "dangling",
  "loop",
  "pipe",
  "binary.png",
  "latin1.txt",
  "../data",
  "%2e%2e/data",
  "a\u0000b",
  `${"long".repeat(100)}.txt`,
  "d/".repeat(300),
];

/** A workspace with everything in it that operations fail on. */
function furnish({ workspace }: World, elsewhere: string): void {
  const at = (name: string): string => join(workspace, name);
  writeFileSync(at("file.txt"), "one\ntwo\n");
  mkdirSync(at("folder"));
  symlinkSync(elsewhere, at("outside"));
  symlinkSync(join(elsewhere, "gone"), at("dangling"));
  symlinkSync(at("loop"), at("loop"));
  execFileSync("mkfifo", [at("pipe")]);
  writeFileSync(at("binary.png"), Buffer.from([137, 80, 78, 71, 0, 255]));
  writeFileSync(at("latin1.txt"), Buffer.from([0x66, 0xfc, 0x72]));
}

const calls = (paths: readonly string[]) => [
  ...paths.flatMap((path) => [
    { name: "ls", args: { path } },
    { name: "read_file", args: { file_path: path } },
    { name: "write_file", args: { file_path: path, content: "new" } },
    { name: "edit_file", args: { file_path: path, old_string: "one", new_string: "1" } },
    { name: "grep", args: { pattern: "one", path } },
    { name: "glob", args: { pattern: "**/*", path } },
    { name: "execute", args: { command: "true", cwd: path } },
  ]),
  { name: "grep", args: { pattern: "(", regex: true } },
  { name: "grep", args: { pattern: "one", glob: "[" } },
  { name: "glob", args: { pattern: "../**" } },
  { name: "glob", args: { pattern: "{a,b" } },
];

/** Everything a client gets to see of a run and of the shared files, errors included. */
async function seenBy(client: TestClient, runId: string, paths: readonly string[]): Promise<string[]> {
  const uris = [
    ...(await client.listResources()).map(({ uri }) => uri),
    ...["", "/events", "/report", "/todos", "/transcript"].map((view) => `deepagent://runs/${runId}${view}`),
    ...paths.flatMap((path) => {
      const encoded = path.split("/").map(encodeURIComponent).join("/");
      return [`deepagent://files${encoded}`, `deepagent://runs/${runId}/files${encoded}`];
    }),
  ];
  const read = (work: Promise<unknown>): Promise<string> =>
    work.then(JSON.stringify, (error: unknown) => `${String(error)} ${JSON.stringify(error)}`);
  return [
    ...(await Promise.all(uris.map((uri) => read(client.readResource(uri))))),
    ...(await Promise.all(paths.map((path) => read(client.call("read_agent_file", { path }))))),
    ...(await Promise.all(
      paths.map((path) => read(client.complete("deepagent://files/{+path}", "path", path.slice(1)))),
    )),
  ];
}

test("no answer, error, event or resource names a host path", { tags: "long" }, async () => {
  const paths = NAMES.map((name) => `${IN}/${name}`);
  const world = await openWorld("memory", {
    think: play({ "try it": [{ toolCalls: calls(paths) }, repeat] }),
  });
  const elsewhere = filesIn();
  writeFileSync(join(elsewhere, "secret.txt"), "one secret\n");
  furnish(world, elsewhere);
  const client = await world.connect("v2-modern", () => APPROVE);
  let result = await client.call("run_deep_agent", { task: "try it" });
  while (result.structured["status"] === "working" || result.structured["status"] === "input_required") {
    result = await client.call("check_deep_agent", { run_id: runIdOf(result) });
  }
  expect(result.structured["status"]).toBe("completed");
  const seen = [JSON.stringify(result), ...(await seenBy(client, runIdOf(result), paths))];
  const told = world.brain.thoughts.map(({ request }) => JSON.stringify(request.messages));
  const answers = world.brain.thoughts.flatMap((thought) => answersOf(thought));
  expect(answers.length).toBeGreaterThan(7 * paths.length);
  for (const text of [...seen, ...told]) {
    for (const path of [dirname(world.workspace), elsewhere, process.cwd(), process.execPath]) {
      expect(text).not.toContain(path);
    }
    expect(text).not.toMatch(/one secret|\\n\s+at |node_modules|ENO[A-Z]+|EACCES|ELOOP/);
  }
});
