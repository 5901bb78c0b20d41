import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { execFileSync } from "node:child_process";
import { beforeEach, describe, expect, it } from "vitest";
import { WorkspaceProposals } from "../../src/proposals/proposals.ts";
import { copyOf } from "../../src/proposals/workspace-copy.ts";
import type { ProposedChange, ReviewOutcome } from "../../src/runs/proposals.ts";
import type { ReviewChoice } from "../../src/tools/request.ts";
import { filesIn } from "../support/files-in.ts";

const RUN = { id: "run_1", threadId: "thr_1", task: "Do it" };
const LINES = Array.from({ length: 40 }, (_, index) => `line ${index + 1}`);

let home: string;
let workspace: string;
let proposals: WorkspaceProposals;
let count = 0;

const write = (root: string, path: string, text: string): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};
const inFolder = (path: string): string => readFileSync(join(workspace, path), "utf8");
const tree = (): string => copyOf(join(home, "copies"), RUN.threadId);
const edited = (...changes: [number, string][]): string => {
  const lines = [...LINES];
  for (const [line, text] of changes) lines[line - 1] = text;
  return `${lines.join("\n")}\n`;
};

beforeEach(() => {
  home = filesIn();
  workspace = join(home, "workspace");
  mkdirSync(workspace);
  write(workspace, "a.txt", edited());
  write(workspace, "src/b.txt", "b\n");
  write(workspace, "gone.txt", "gone\n");
  write(workspace, ".gitignore", "node_modules/\n*.log\n");
  write(workspace, "node_modules/x/index.js", "x\n");
  proposals = new WorkspaceProposals({ dir: join(home, "copies"), without: [], maxBytes: 1e8 });
});
async function change(): Promise<ProposedChange> {
  const found = await proposals.change(RUN);
  if (found === undefined) throw new Error("Nothing is proposed.");
  return found;
}

async function review(choice: ReviewChoice): Promise<ReviewOutcome> {
  const shown = Object.fromEntries((await change()).files.map(({ path, version }) => [path, version]));
  return proposals.review(RUN, choice, { id: `review_${(count += 1)}`, by: "test", shown });
}

describe("a copy of a workspace", () => {
  beforeEach(() => proposals.open(RUN, workspace));

  it("has every file, ignored folders too, and proposes nothing at first", async () => {
    expect(readFileSync(join(tree(), "node_modules/x/index.js"), "utf8")).toBe("x\n");
    expect(await proposals.change(RUN)).toBeUndefined();
  });

  it("applies no file for whose diff there was no room beside those before it", async () => {
    const long = `${"long ".repeat(2000)}\n`.repeat(39);
    const names = Array.from({ length: 23 }, (_, index) => `long-${String(index).padStart(2, "0")}.txt`);
    for (const name of names) write(tree(), name, long);
    const unshown = (await change()).files.flatMap(({ path, unshown: what }) => (what ? [path] : []));
    const [last = ""] = unshown;
    expect(unshown).not.toContain(names[0]);
    expect(names).toContain(last);
    const refused = { kind: "failed", message: `${last} was not shown to its end` };
    expect(await review({ apply: { [last]: "all" } })).toEqual(refused);
    expect(await review({ apply: { [names[0] ?? ""]: "all", [last]: "all" } })).toEqual(refused);
    expect((await review({ apply: { [last]: "all" }, read: [last] })).kind).toBe("done");
    expect(inFolder(last)).toBe(long);
  });

  it("proposes new, edited and deleted files, and nothing of ignored folders", async () => {
    write(tree(), "a.txt", edited([3, "three"], [30, "thirty"]));
    write(tree(), "new/deep.txt", "new\n");
    write(tree(), "node_modules/y/index.js", "y\n");
    write(tree(), "debug.log", "log\n");
    rmSync(join(tree(), "gone.txt"));
    const { files } = await change();
    expect(
      files.map(({ path, change, added, removed, ignored }) => [path, change, added, removed, ignored]),
    ).toEqual([
      ["a.txt", "edited", 2, 2, undefined],
      ["debug.log", "added", 1, 0, true],
      ["gone.txt", "deleted", 0, 1, undefined],
      ["new/deep.txt", "added", 1, 0, undefined],
    ]);
    expect(files[0]?.places).toHaveLength(2);
    expect(files[0]?.places[1]?.diff).toContain("-line 30\n+thirty");
    expect(inFolder("a.txt")).toBe(edited());
  });

  it("applies all at once, and has nothing left then", async () => {
    write(tree(), "a.txt", edited([3, "three"]));
    write(tree(), "new/deep.txt", "new\n");
    chmodSync(join(tree(), "new/deep.txt"), 0o755);
    rmSync(join(tree(), "gone.txt"));
    const outcome = await review({ apply: { "a.txt": "all", "new/deep.txt": "all", "gone.txt": "all" } });
    expect(outcome).toMatchObject({
      kind: "done",
      record: { unapplied: 0, applied: ["a.txt", "gone.txt", "new/deep.txt"] },
    });
    expect(inFolder("a.txt")).toBe(edited([3, "three"]));
    expect(statSync(join(workspace, "new/deep.txt")).mode & 0o111).toBe(0o111);
    expect(existsSync(join(workspace, "gone.txt"))).toBe(false);
    expect(await proposals.change(RUN)).toBeUndefined();
  });

  it("applies one place, keeps the other, and remembers that it was left out", async () => {
    write(tree(), "a.txt", edited([3, "three"], [30, "thirty"]));
    await review({ apply: { "a.txt": [1] } });
    expect(inFolder("a.txt")).toBe(edited([30, "thirty"]));
    const { files, reviews } = await change();
    expect(files).toMatchObject([{ path: "a.txt", decided: { how: "left" }, places: [{ added: 1 }] }]);
    expect(reviews).toMatchObject([{ partly: ["a.txt"], applied: [], unapplied: 1 }]);
    await review({ apply: { "a.txt": "all" } });
    expect(inFolder("a.txt")).toBe(edited([3, "three"], [30, "thirty"]));
  });

  it("remembers a refusal until the file is another one", async () => {
    write(tree(), "src/b.txt", "c\n");
    await review({ apply: {}, refused: { "src/b.txt": "hourly on purpose" } });
    expect((await change()).files[0]?.decided).toEqual({ how: "refused", message: "hourly on purpose" });
    write(tree(), "src/b.txt", "d\n");
    expect((await change()).files[0]?.decided).toBeUndefined();
  });
});

describe("a folder that moves meanwhile", () => {
  beforeEach(() => proposals.open(RUN, workspace));

  it("keeps both changes where they do not touch", async () => {
    write(tree(), "a.txt", edited([3, "three"]));
    write(workspace, "a.txt", edited([20, "twenty"]));
    const { files } = await change();
    expect(files[0]?.places[0]?.conflict).toBeUndefined();
    await review({ apply: { "a.txt": "all" } });
    expect(inFolder("a.txt")).toBe(edited([3, "three"], [20, "twenty"]));
  });

  it("shows a conflict, and applies nothing of the choice before a person decided about it", async () => {
    write(tree(), "a.txt", edited([3, "three"]));
    write(tree(), "src/b.txt", "c\n");
    write(workspace, "a.txt", edited([3, "drei"]));
    expect((await change()).files[0]?.places[0]?.conflict).toBe("drei");
    expect(await review({ apply: { "a.txt": "all", "src/b.txt": "all" } })).toEqual({
      kind: "moved",
      paths: ["a.txt"],
    });
    expect(inFolder("src/b.txt")).toBe("b\n");
    await review({ apply: { "a.txt": "all", "src/b.txt": "all" }, over: ["a.txt"] });
    expect(inFolder("a.txt")).toBe(edited([3, "three"]));
    expect(inFolder("src/b.txt")).toBe("c\n");
  });

  it("replaces no lines of the folder that the person did not see", async () => {
    write(tree(), "a.txt", edited([3, "three"]));
    write(workspace, "a.txt", edited([3, "drei"]));
    const shown = { "a.txt": (await change()).files[0]?.version ?? "" };
    write(workspace, "a.txt", edited([3, "trois"]));
    const choice = { apply: { "a.txt": "all" as const }, over: ["a.txt"] };
    const outcome = await proposals.review(RUN, choice, { id: "review_y", by: "test", shown });
    expect(outcome).toEqual({ kind: "moved", paths: ["a.txt"] });
    expect(inFolder("a.txt")).toBe(edited([3, "trois"]));
  });

  it.each([
    [
      "at other lines: the edit stays alone",
      [30, "mine"],
      edited([30, "mine"]),
      { kind: "moved", paths: ["src/b.txt"] },
    ],
    [
      "at the same lines: the edit stays, and the file is named",
      [3, "mine"],
      edited([3, "mine"]),
      { kind: "failed", message: expect.stringContaining("only a.txt has the change") },
    ],
  ] as const)(
    "is taken back where somebody edits a file while the next one is applied, %s",
    async (_name, edit, text, expected) => {
      write(tree(), "a.txt", edited([3, "three"]));
      write(tree(), "src/b.txt", "c\n");
      const shown = Object.fromEntries((await change()).files.map(({ path, version }) => [path, version]));
      // A process may be paused before any step. Each begins with a check.
      const check = async (): Promise<void> => {
        if (inFolder("a.txt") !== edited([3, "three"]) || inFolder("src/b.txt") !== "b\n") return;
        write(workspace, "a.txt", edited([3, "three"], [...edit]));
        write(workspace, "src/b.txt", "b, which somebody edited\n");
      };
      const choice = { apply: { "a.txt": "all" as const, "src/b.txt": "all" as const } };
      const about = { id: "review_z", by: "test", shown };
      const outcome = await proposals.review(RUN, choice, about, { id: "run_1 1", check });
      expect(outcome).toEqual(expected);
      expect(inFolder("a.txt")).toBe(text);
      expect(inFolder("src/b.txt")).toBe("b, which somebody edited\n");
    },
  );

  it("gives the agent the file of the folder when it is to fit its change to it", async () => {
    write(tree(), "a.txt", edited([3, "three"]));
    write(workspace, "a.txt", edited([3, "drei"]));
    const outcome = await review({ apply: {}, fit: ["a.txt"] });
    expect(outcome).toMatchObject({
      record: { unapplied: 0, fitted: { "a.txt": expect.stringContaining("+three") } },
    });
    expect(readFileSync(join(tree(), "a.txt"), "utf8")).toBe(edited([3, "drei"]));
    expect(await proposals.change(RUN)).toBeUndefined();
  });

  it("refuses what is not as it was shown", async () => {
    write(tree(), "src/b.txt", "c\n");
    const shown = { "src/b.txt": (await change()).files[0]?.version ?? "" };
    write(tree(), "src/b.txt", "d\n");
    const about = { id: "review_x", by: "test", shown };
    expect(await proposals.review(RUN, { apply: { "src/b.txt": "all" } }, about)).toEqual({
      kind: "moved",
      paths: ["src/b.txt"],
    });
    expect(inFolder("src/b.txt")).toBe("b\n");
  });

  it("takes it over for another run of the thread, but for the files that the agent changed", async () => {
    write(tree(), "a.txt", edited([3, "three"]));
    write(workspace, "src/b.txt", "newer\n");
    write(workspace, "fresh.txt", "fresh\n");
    rmSync(join(workspace, "gone.txt"));
    await proposals.open({ ...RUN, id: "run_2" }, workspace);
    expect(readFileSync(join(tree(), "src/b.txt"), "utf8")).toBe("newer\n");
    expect(readFileSync(join(tree(), "fresh.txt"), "utf8")).toBe("fresh\n");
    expect(existsSync(join(tree(), "gone.txt"))).toBe(false);
    expect((await change()).files.map(({ path }) => path)).toEqual(["a.txt"]);
  });
});

it("never has the places that no agent gets to see", async () => {
  write(workspace, "own/key.txt", "secret\n");
  const without = [join(workspace, "own")];
  proposals = new WorkspaceProposals({ dir: join(home, "copies"), without, maxBytes: 1e8 });
  await proposals.open(RUN, workspace);
  expect(existsSync(join(tree(), "own"))).toBe(false);
  write(workspace, "own/other.txt", "secret too\n");
  await proposals.open({ ...RUN, id: "run_2" }, workspace);
  expect(existsSync(join(tree(), "own"))).toBe(false);
  expect(await proposals.change(RUN)).toBeUndefined();
});

it("links do not lead an agent's file from the copy into other folders, nor a change out of the folder", async () => {
  const outside = join(home, "outside");
  write(outside, "secret.txt", "secret\n");
  await proposals.open(RUN, workspace);
  rmSync(join(tree(), "src"), { recursive: true });
  symlinkSync(outside, join(tree(), "src"));
  const { files } = await change();
  expect(JSON.stringify(files)).not.toContain("secret\n");
  expect(files.map(({ path, change }) => [path, change])).toEqual([
    ["src", "added"],
    ["src/b.txt", "deleted"],
  ]);
  expect(await review({ apply: { src: "all", "src/b.txt": "all" } })).toMatchObject({ kind: "done" });
  expect(readlinkSync(join(workspace, "src"))).toBe(outside);
  write(workspace, "late/file.txt", "late");
  await proposals.open({ ...RUN, id: "run_2" }, workspace);
  expect(readFileSync(join(outside, "secret.txt"), "utf8")).toBe("secret\n");
});

describe("a branch", () => {
  const git = (...args: string[]): string =>
    execFileSync("git", ["-c", "user.name=T", "-c", "user.email=t@example.org", ...args], {
      cwd: workspace,
      encoding: "utf8",
    });

  beforeEach(async () => {
    write(workspace, "old.txt", "old\n");
    git("init", "-q", "-b", "main");
    git("config", "user.name", "T");
    git("config", "user.email", "t@example.org");
    git("add", "-A");
    git("commit", "-qm", "first");
    write(workspace, "src/b.txt", "uncommitted\n");
    write(workspace, "secret.log", "ignored by Git\n");
    rmSync(join(workspace, "old.txt"));
    await proposals.open(RUN, workspace);
  });

  it("has the uncommitted work and the change as commits, and leaves the folder as it is", async () => {
    write(tree(), "a.txt", edited([3, "three"]));
    rmSync(join(tree(), "gone.txt"));
    expect((await change()).isRepository).toBe(true);
    const outcome = await review({ apply: { "a.txt": "all", "gone.txt": "all" }, branch: "agent/three" });
    expect(outcome).toMatchObject({ kind: "done", record: { branch: "agent/three", unapplied: 0 } });
    expect(inFolder("a.txt")).toBe(edited());
    expect(git("status", "--porcelain")).toBe(" D old.txt\n M src/b.txt\n");
    expect(git("log", "--format=%s", "agent/three")).toBe(
      "Do it\nUncommitted work of the workspace\nfirst\n",
    );
    expect(git("show", "agent/three:src/b.txt")).toBe("uncommitted\n");
    const files = git("ls-tree", "-r", "--name-only", "agent/three").trim().split("\n");
    expect(files).toEqual([".gitignore", "a.txt", "src/b.txt"]);
    expect(git("show", "--stat", "--format=", "agent/three")).toContain("gone.txt");
    expect(await proposals.change(RUN)).toBeUndefined();
  });

  it("of some places leaves the others to be applied", async () => {
    write(tree(), "a.txt", edited([3, "three"], [30, "thirty"]));
    const outcome = await review({ apply: { "a.txt": [0] }, branch: "agent/part" });
    expect(outcome).toMatchObject({ kind: "done", record: { partly: ["a.txt"], unapplied: 1 } });
    expect(git("show", "agent/part:a.txt")).toBe(edited([3, "three"]));
    expect((await change()).files).toMatchObject([{ path: "a.txt", decided: { how: "left" } }]);
    await review({ apply: { "a.txt": [1] } });
    expect(inFolder("a.txt")).toBe(edited([30, "thirty"]));
  });

  it("can stand in a folder of its own", async () => {
    write(tree(), "a.txt", edited([3, "three"]));
    const outcome = await review({ apply: { "a.txt": "all" }, branch: "agent/tree", worktree: true });
    const worktree = `${workspace}-agent-tree`;
    expect(outcome).toMatchObject({ record: { worktree } });
    expect(readFileSync(join(worktree, "a.txt"), "utf8")).toBe(edited([3, "three"]));
  });

  it("is refused under a name that is taken or none", async () => {
    write(tree(), "a.txt", edited([3, "three"]));
    for (const branch of ["main", "a..b", "-x"]) {
      expect(await review({ apply: { "a.txt": "all" }, branch })).toMatchObject({ kind: "failed" });
    }
    expect(inFolder("a.txt")).toBe(edited());
  });
});
