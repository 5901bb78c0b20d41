import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { WorkspaceProposals } from "../../src/proposals/proposals.ts";
import { copyOf } from "../../src/proposals/workspace-copy.ts";
import { attempts } from "../support/effort.ts";
import { reviewProgram, startReview } from "./review-program.ts";
import { filesIn } from "../support/files-in.ts";

const RUN = { id: "run_1", threadId: "thr_1", task: "Do it" };
const FILES = Array.from({ length: 34 }, (_, index) => `f${index}.txt`);
const MOVED = Array.from({ length: 6 }, (_, index) => `m${index}.txt`);

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
/** The right to the copy that this process has once it has taken it from another one. */
const FENCE = { id: "second", check: () => Promise.resolve() };

test("a process that is killed while it applies leaves all or nothing behind", async () => {
  const program = reviewProgram();
  for (let attempt = 0; attempt < attempts(24).numRuns; attempt += 1) {
    const { home, workspace, proposals } = await proposed();
    const { child, says, ended } = startReview(program, home, RUN.threadId);
    await says("begins");
    await delay(Math.random() * 120);
    child.kill("SIGKILL");
    await ended;
    const change = await proposals.change(RUN, { fence: FENCE });
    const found = applied(workspace);
    expect([0, ALL]).toContain(found);
    expect(change === undefined).toBe(found === ALL);
  }
});

/** Some files of each kind of change, so that there are few steps. */
async function fewProposed() {
  const home = filesIn();
  const workspace = join(home, "workspace");
  mkdirSync(workspace);
  for (const name of ["a.txt", "b.txt", "gone.txt", "was.txt"])
    writeFileSync(join(workspace, name), movedText(name, "before"));
  writeFileSync(join(workspace, "run.sh"), "true\n");
  symlinkSync("a.txt", join(workspace, "link"));
  const proposals = new WorkspaceProposals({ dir: join(home, "copies"), without: [], maxBytes: 1e8 });
  await proposals.open(RUN, workspace);
  const tree = copyOf(join(home, "copies"), RUN.threadId);
  for (const name of ["a.txt", "b.txt"]) writeFileSync(join(tree, name), movedText(name, "after"));
  rmSync(join(tree, "gone.txt"));
  renameSync(join(tree, "was.txt"), join(tree, "is.txt"));
  writeFileSync(join(tree, "new.txt"), "new\n");
  chmodSync(join(tree, "run.sh"), 0o755);
  rmSync(join(tree, "link"));
  symlinkSync("b.txt", join(tree, "link"));
  return { home, workspace, proposals };
}

/** The contents of the folder, links with their targets and programs with a mark. */
const contents = (folder: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(folder).map((name) => {
      const path = join(folder, name);
      if (lstatSync(path).isSymbolicLink()) return [name, `-> ${readlinkSync(path)}`];
      return [name, `${statSync(path).mode & 0o100 ? "x " : ""}${readFileSync(path, "utf8")}`];
    }),
  );

const AFTER = {
  "a.txt": movedText("a.txt", "after"),
  "b.txt": movedText("b.txt", "after"),
  "is.txt": movedText("was.txt", "before"),
  link: "-> b.txt",
  "new.txt": "new\n",
  "run.sh": "x true\n",
};
/** What a person writes at a moment when the process is paused. */
const EDIT = "edit of a person\n";

test.each(["SIGKILL", "SIGSTOP"])(
  "whoever follows a process that got %s before any step completes the review, and nobody loses an edit",
  async (signal) => {
    const program = reviewProgram();
    for (let step = 1; ; step += 1) {
      const { home, workspace, proposals } = await fewProposed();
      const before = contents(workspace);
      const first = startReview(program, home, RUN.threadId, String(step), signal);
      if (!(await first.says("stops"))) {
        expect(first.text()).toContain("done after");
        expect(step).toBeGreaterThan(16);
        return;
      }
      if (signal === "SIGKILL") await first.ended;
      // Whoever only looks sees the change as it was before, and changes nothing.
      const half = contents(workspace);
      const looked = (await proposals.change(RUN))?.files ?? [];
      expect(looked).toHaveLength(7);
      expect(contents(workspace)).toEqual(half);
      // A file that is applied already is edited; what a plan wants of it is done.
      const isApplied = half["a.txt"] === AFTER["a.txt"] && half["b.txt"] === AFTER["b.txt"];
      if (isApplied) appendFileSync(join(workspace, "a.txt"), EDIT);
      writeFileSync(join(home, "fence"), "second");
      const wasPlanned = await proposals.change(RUN, { fence: FENCE }).then((change) => change === undefined);
      expect(contents(workspace)).toEqual(
        wasPlanned ? { ...AFTER, ...(isApplied ? { "a.txt": AFTER["a.txt"] + EDIT } : {}) } : before,
      );
      // Now the folder belongs to the person again.
      writeFileSync(join(workspace, "b.txt"), EDIT);
      writeFileSync(join(workspace, "gone.txt"), EDIT);
      const last = contents(workspace);
      first.child.kill("SIGCONT");
      await first.ended;
      if (signal === "SIGSTOP") expect(first.text()).toMatch(/LeaseLostError|StorageError/);
      expect(contents(workspace)).toEqual(last);
      expect(readdirSync(join(home, "copies", RUN.threadId)).toSorted()).toEqual([
        "base",
        "manifest.json",
        "reviews",
        "tree",
      ]);
    }
  },
);

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
