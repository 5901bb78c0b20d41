import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { PolicyRules } from "../../src/backends/policy-rules.ts";
import { WorkspaceProposals } from "../../src/proposals/proposals.ts";
import { copyOf } from "../../src/proposals/workspace-copy.ts";
import { LeaseLostError } from "../../src/runs/ports.ts";
import type { ReviewChoice } from "../../src/tools/request.ts";
import { filesIn } from "../support/files-in.ts";

const RUN = { id: "run_1", threadId: "thr_1", task: "Do it" };
const SECRET = "secret of a hidden file\n";

let home: string;
let workspace: string;
const tree = (): string => copyOf(join(home, "copies"), RUN.threadId);

beforeEach(() => {
  home = filesIn();
  workspace = join(home, "workspace");
  mkdirSync(workspace);
});

/** All that a folder has, below any name. */
const allOf = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name), "utf8"))
    .join("\n");

describe("a rule that hides files", () => {
  let proposals: WorkspaceProposals;
  const write = (path: string, text: string): void => writeFileSync(join(workspace, path), text);

  async function review(choice: ReviewChoice) {
    const { files } = (await proposals.change(RUN)) ?? { files: [] };
    const shown = Object.fromEntries(files.map(({ path, version }) => [path, version]));
    return proposals.review(RUN, choice, { id: "review_1", by: "test", shown });
  }

  beforeEach(() => {
    for (const name of ["private", "build"]) mkdirSync(join(workspace, name));
    write("build/key.pem", SECRET);
    write("private/log", SECRET);
    write("lock.json", "locked\n");
    write("a.txt", "a\n");
    write(".gitignore", "build/\n");
    const policy = new PolicyRules({ denyGlobs: ["*.pem"], denyPrefixes: ["/lock.json"] });
    const without = [join(workspace, "private")];
    proposals = new WorkspaceProposals({ dir: join(home, "copies"), without, policy, maxBytes: 1e8 });
  });

  it("holds for other names of a file in the copy, also for those that come later", async () => {
    linkSync(join(workspace, "build/key.pem"), join(workspace, "notes.txt"));
    linkSync(join(workspace, "private/log"), join(workspace, "log.txt"));
    linkSync(join(workspace, "a.txt"), join(workspace, "same.txt"));
    await proposals.open(RUN, workspace);
    const copied = [".gitignore", "a.txt", "build", "lock.json", "same.txt"];
    expect(readdirSync(tree()).toSorted()).toEqual(copied);
    linkSync(join(workspace, "build/key.pem"), join(workspace, "later.txt"));
    rmSync(join(workspace, "a.txt"));
    linkSync(join(workspace, "private/log"), join(workspace, "a.txt"));
    write("new.txt", "new\n");
    await proposals.open({ ...RUN, id: "run_2" }, workspace);
    expect(readFileSync(join(tree(), "new.txt"), "utf8")).toBe("new\n");
    rmSync(join(tree(), "build"), { recursive: true });
    expect(allOf(join(home, "copies"))).not.toContain(SECRET);
  });

  it("keeps a review from giving the agent such a file, and from showing it", async () => {
    await proposals.open(RUN, workspace);
    writeFileSync(join(tree(), "a.txt"), "agent\n");
    rmSync(join(workspace, "a.txt"));
    linkSync(join(workspace, "build/key.pem"), join(workspace, "a.txt"));
    expect(JSON.stringify(await proposals.change(RUN))).not.toContain(SECRET.trim());
    expect(await review({ apply: {}, fit: ["a.txt"] })).toMatchObject({ kind: "moved" });
    expect(await review({ apply: { "a.txt": "all" }, over: ["a.txt"] })).not.toMatchObject({ kind: "done" });
    expect(readFileSync(join(tree(), "a.txt"), "utf8")).toBe("agent\n");
    expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe(SECRET);
  });

  it("applies nothing to another name of a file that may not be changed", async () => {
    linkSync(join(workspace, "lock.json"), join(workspace, "open.json"));
    await proposals.open(RUN, workspace);
    writeFileSync(join(tree(), "open.json"), "agent\n");
    expect(await review({ apply: { "open.json": "all" } })).toMatchObject({ kind: "failed" });
    expect(readFileSync(join(workspace, "lock.json"), "utf8")).toBe("locked\n");
  });
});

it("follows no link out of the folder that takes the place of a file or folder", async () => {
  mkdirSync(join(home, "outside"));
  writeFileSync(join(home, "outside/f.txt"), SECRET);
  for (let number = 0; number < 40; number += 1) {
    mkdirSync(join(workspace, `d${number}`));
    writeFileSync(join(workspace, `d${number}/f.txt`), "plain\n");
  }
  const swap = `const fs = require("fs"); for (let n = 0; ; n = (n + 1) % 40) {
    const at = ${JSON.stringify(workspace)} + "/d" + n;
    fs.renameSync(at, at + "x"); fs.symlinkSync(${JSON.stringify(join(home, "outside"))}, at);
    fs.unlinkSync(at); fs.renameSync(at + "x", at);
    if (n === 0) process.stdout.write(".");
  }`;
  const child = spawn(process.execPath, ["-e", swap], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  const proposals = new WorkspaceProposals({ dir: join(home, "copies"), without: [], maxBytes: 1e8 });
  for (let number = 0; number < 10; number += 1) {
    await proposals.open({ id: `run_${number}`, threadId: `thr_${number}` }, workspace);
    expect(allOf(join(home, "copies")).includes(SECRET)).toBe(false);
  }
});

it("is made while a build creates and removes folders", { tags: ["long"] }, async () => {
  for (let number = 0; number < 60; number += 1) {
    mkdirSync(join(workspace, `d${number}`));
    writeFileSync(join(workspace, `d${number}/f.txt`), "plain\n");
  }
  const build = `const fs = require("fs"), top = ${JSON.stringify(workspace)} + "/build-";
    const each = (work) => { for (let n = 0; n < 40; n += 1) work(top + n); };
    for (;;) {
      each((at) => { fs.mkdirSync(at + "/below", { recursive: true }); fs.writeFileSync(at + "/below/.gitignore", "x"); });
      each((at) => fs.rmSync(at, { recursive: true }));
      process.stdout.write(".");
    }`;
  const child = spawn(process.execPath, ["-e", build], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  const proposals = new WorkspaceProposals({ dir: join(home, "copies"), without: [], maxBytes: 1e8 });
  for (let number = 0; number < 10; number += 1) {
    const run = { id: `run_${number}`, threadId: `thr_${number}`, task: "Do it" };
    await proposals.open(run, workspace);
    appendFileSync(join(workspace, "d0/f.txt"), "more\n");
    await proposals.open({ ...run, id: "next" }, workspace);
    const copy = copyOf(join(home, "copies"), run.threadId);
    expect(readFileSync(join(copy, "d0/f.txt"), "utf8")).toContain("more");
    expect(existsSync(join(copy, "d59/f.txt"))).toBe(true);
    writeFileSync(join(copy, "d59/f.txt"), "changed\n");
    const { files } = (await proposals.change(run)) ?? { files: [] };
    expect(files.map(({ path }) => path)).toContain("d59/f.txt");
  }
});

it("a process that was stopped finds out that its successor removed the copy", async () => {
  writeFileSync(join(workspace, "a.txt"), "a\n");
  const proposals = new WorkspaceProposals({ dir: join(home, "copies"), without: [], maxBytes: 1e8 });
  await proposals.open(RUN, workspace);
  writeFileSync(join(tree(), "a.txt"), "b\n");
  // What the successor removes first, while this process lists the files.
  rmSync(join(tree(), "../reviews"), { recursive: true });
  const lost = new LeaseLostError(RUN.id);
  const fence = { id: "first", check: () => Promise.reject(lost) };
  await expect(proposals.change(RUN, { fence })).rejects.toBe(lost);
});
