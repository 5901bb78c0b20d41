import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";
import { expect, test } from "vitest";
import { WorkspaceProposals } from "../../src/proposals/proposals.ts";
import { copyOf } from "../../src/proposals/workspace-copy.ts";
import { attempts } from "../support/effort.ts";
import { filesIn } from "../support/files-in.ts";

const RUN = { id: "run_1", threadId: "thr_1", task: "Do it" };
const FILES = Array.from({ length: 34 }, (_, index) => `f${index}.txt`);
const MOVED = Array.from({ length: 6 }, (_, index) => `m${index}.txt`);

/** `review-process.ts` as one file. */
function bundled(): string {
  const folder = filesIn();
  const outfile = join(folder, "process.mjs");
  const entryPoints = [fileURLToPath(new URL("./review-process.ts", import.meta.url))];
  // Packages are CommonJS in part, and look for `require`.
  const banner = {
    js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
  };
  buildSync({
    mainFields: ["module", "main"],
    entryPoints,
    outfile,
    banner,
    bundle: true,
    platform: "node",
    format: "esm",
    logLevel: "error",
  });
  return outfile;
}

async function proposed(): Promise<{ home: string; workspace: string; proposals: WorkspaceProposals }> {
  const home = filesIn();
  const workspace = join(home, "workspace");
  mkdirSync(workspace);
  for (const name of FILES) writeFileSync(join(workspace, name), `${name}\nbefore\n`);
  writeFileSync(join(workspace, "gone.txt"), "gone\n");
  mkdirSync(join(workspace, "old"));
  for (const name of MOVED) writeFileSync(join(workspace, "old", name), movedText(name, "before"));
  const proposals = new WorkspaceProposals({ dir: join(home, "copies"), without: [], maxBytes: 1e8 });
  await proposals.open(RUN, workspace);
  const tree = copyOf(join(home, "copies"), RUN.threadId);
  for (const name of FILES) writeFileSync(join(tree, name), `${name}\nafter\n`);
  mkdirSync(join(tree, "new"));
  writeFileSync(join(tree, "new/file.txt"), "new\n");
  rmSync(join(tree, "gone.txt"));
  renameSync(join(tree, "old"), join(tree, "moved"));
  for (const name of MOVED) writeFileSync(join(tree, "moved", name), movedText(name, "after"));
  return { home, workspace, proposals };
}

const movedText = (name: string, end: string): string => `${`${name}\n`.repeat(20)}${end}\n`;

/** Number of files that are as the change wants them. */
const applied = (workspace: string): number =>
  FILES.filter((name) => readFileSync(join(workspace, name), "utf8").endsWith("after\n")).length +
  MOVED.map((name) => join(workspace, "moved", name)).filter(
    (path) => existsSync(path) && readFileSync(path, "utf8").endsWith("after\n"),
  ).length +
  MOVED.filter((name) => !existsSync(join(workspace, "old", name))).length +
  Number(existsSync(join(workspace, "new/file.txt"))) +
  Number(!existsSync(join(workspace, "gone.txt")));

const ALL = FILES.length + 2 * MOVED.length + 2;

test("a process that is killed while it applies leaves all or nothing behind", async () => {
  const program = bundled();
  for (let attempt = 0; attempt < attempts(24).numRuns; attempt += 1) {
    const { home, workspace, proposals } = await proposed();
    const child = spawn(process.execPath, [program, join(home, "copies"), RUN.threadId], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = once(child, "exit");
    await Promise.race([once(child.stdout, "data"), ended]);
    await delay(Math.random() * 120);
    child.kill("SIGKILL");
    await ended;
    const change = await proposals.change(RUN);
    const found = applied(workspace);
    expect([0, ALL]).toContain(found);
    expect(change === undefined).toBe(found === ALL);
  }
});

test("a file that cannot be written takes the others back", async () => {
  const { workspace, proposals } = await proposed();
  // Appears after the review was shown, in the way of a new file.
  const { files } = (await proposals.change(RUN)) ?? { files: [] };
  const shown = Object.fromEntries(files.map(({ path, version }) => [path, version]));
  writeFileSync(join(workspace, "new"), "a file where a folder is wanted\n");
  const apply = Object.fromEntries(files.map(({ path }) => [path, "all" as const]));
  const outcome = await proposals.review(RUN, { apply }, { id: "review_1", by: "test", shown });
  expect(outcome).toMatchObject({ kind: "failed", message: expect.stringContaining("cannot be written") });
  expect(applied(workspace)).toBe(0);
  rmSync(join(workspace, "new"));
  expect(await proposals.review(RUN, { apply }, { id: "review_2", by: "test", shown })).toMatchObject({
    kind: "done",
  });
  expect(applied(workspace)).toBe(ALL);
});
