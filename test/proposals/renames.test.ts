import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { WorkspaceProposals } from "../../src/proposals/proposals.ts";
import { copyOf } from "../../src/proposals/workspace-copy.ts";
import type { ProposedFile, ReviewOutcome } from "../../src/runs/proposals.ts";
import type { ReviewChoice } from "../../src/tools/request.ts";
import { filesIn } from "../support/files-in.ts";

const RUN = { id: "run_1", threadId: "thr_1", task: "Do it" };
const LINES = Array.from({ length: 40 }, (_, index) => `line ${index + 1}`);
const edited = (...changes: [number, string][]): string => {
  const lines = [...LINES];
  for (const [line, text] of changes) lines[line - 1] = text;
  return `${lines.join("\n")}\n`;
};
const BYTES = Buffer.from(Array.from({ length: 2000 }, (_, index) => index % 251));

let home: string;
let workspace: string;
let proposals: WorkspaceProposals;
let count = 0;

const tree = (): string => copyOf(join(home, "copies"), RUN.threadId);
const write = (root: string, path: string, text: string | Uint8Array): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};
/** Moves a file of the copy, with another text if one is given. */
const move = (from: string, to: string, text?: string): void => {
  mkdirSync(dirname(join(tree(), to)), { recursive: true });
  renameSync(join(tree(), from), join(tree(), to));
  if (text !== undefined) write(tree(), to, text);
};
const textOf = (path: string): string | undefined =>
  existsSync(join(workspace, path)) ? readFileSync(join(workspace, path), "utf8") : undefined;

beforeEach(() => {
  home = filesIn();
  workspace = join(home, "workspace");
  write(workspace, "src/old.txt", edited());
  write(workspace, "b.txt", "b\n");
  proposals = new WorkspaceProposals({ dir: join(home, "copies"), without: [], maxBytes: 1e8 });
});

const files = async (): Promise<readonly ProposedFile[]> => (await proposals.change(RUN))?.files ?? [];
/** Each file with what becomes of it. */
const changes = async () => (await files()).map(({ path, change, from }) => [path, change, from]);
async function review(choice: ReviewChoice, seen?: readonly ProposedFile[]): Promise<ReviewOutcome> {
  const shown = Object.fromEntries((seen ?? (await files())).map(({ path, version }) => [path, version]));
  return proposals.review(RUN, choice, { id: `review_${(count += 1)}`, by: "test", shown });
}
const applyAll = async (): Promise<ReviewOutcome> =>
  review({ apply: Object.fromEntries((await files()).map(({ path }) => [path, "all" as const])) });

describe("a renamed file", () => {
  beforeEach(() => proposals.open(RUN, workspace));

  it("is one change without lines, and is applied whole", async () => {
    move("src/old.txt", "lib/new.txt");
    expect(await files()).toMatchObject([
      {
        path: "lib/new.txt",
        from: "src/old.txt",
        change: "renamed",
        places: [],
        added: 0,
        removed: 0,
        notes: [],
      },
    ]);
    expect(await applyAll()).toMatchObject({
      kind: "done",
      record: { applied: ["lib/new.txt"], unapplied: 0 },
    });
    expect([textOf("lib/new.txt"), existsSync(join(workspace, "src"))]).toEqual([edited(), false]);
    expect(await files()).toEqual([]);
  });

  it("has the places of its new text", async () => {
    move("src/old.txt", "src/new.txt", edited([3, "three"], [30, "thirty"]));
    const [file] = await files();
    expect(file).toMatchObject({ change: "renamed", added: 2, removed: 2 });
    expect(file?.places.map(({ diff }) => diff.split("\n").slice(0, 2))).toEqual([
      ["--- src/old.txt", "+++ src/new.txt"],
      ["--- src/old.txt", "+++ src/new.txt"],
    ]);
    const outcome = await review({ apply: { "src/new.txt": [1] } });
    expect(outcome).toMatchObject({ record: { partly: ["src/new.txt"], unapplied: 1 } });
    expect([textOf("src/old.txt"), textOf("src/new.txt")]).toEqual([undefined, edited([30, "thirty"])]);
    // The rest is an edit of the file at its new path, and remembered as left out.
    const [rest] = await files();
    expect(rest).toMatchObject({ path: "src/new.txt", change: "edited", decided: { how: "left" } });
    expect(rest?.from).toBeUndefined();
    await applyAll();
    expect(textOf("src/new.txt")).toBe(edited([3, "three"], [30, "thirty"]));
    expect(await files()).toEqual([]);
  });

  // Such systems take both names for the same file.
  const ignoresCase = existsSync(import.meta.filename.toUpperCase());
  it.skipIf(ignoresCase)("may be bytes whose name changes in case only", async () => {
    write(workspace, "IMAGE.png", BYTES);
    await proposals.open({ ...RUN, id: "run_2" }, workspace);
    move("IMAGE.png", "image.png");
    expect(await files()).toMatchObject([
      { path: "image.png", from: "IMAGE.png", change: "renamed", places: [], notes: [] },
    ]);
    await applyAll();
    expect(readFileSync(join(workspace, "image.png")).equals(BYTES)).toBe(true);
    expect(existsSync(join(workspace, "IMAGE.png"))).toBe(false);
  });

  it("of bytes is in the way as a whole, once the folder changed them", async () => {
    write(workspace, "image.png", BYTES);
    await proposals.open({ ...RUN, id: "run_2" }, workspace);
    move("image.png", "picture.png");
    write(workspace, "image.png", BYTES.subarray(1));
    expect(await files()).toMatchObject([
      { path: "picture.png", conflict: "The file was changed in the folder since the copy was made." },
    ]);
    expect(await applyAll()).toEqual({ kind: "moved", paths: ["picture.png"] });
    await review({ apply: { "picture.png": "all" }, over: ["picture.png"] });
    expect(readFileSync(join(workspace, "picture.png")).equals(BYTES)).toBe(true);
    expect(existsSync(join(workspace, "image.png"))).toBe(false);
  });

  it("may become a file where its folder was, and the other way round", async () => {
    renameSync(join(tree(), "src/old.txt"), join(tree(), "kept"));
    rmSync(join(tree(), "src"), { recursive: true });
    renameSync(join(tree(), "kept"), join(tree(), "src"));
    move("b.txt", "b.txt.was");
    mkdirSync(join(tree(), "b.txt"));
    move("b.txt.was", "b.txt/b.txt");
    expect(await changes()).toEqual([
      ["b.txt/b.txt", "renamed", "b.txt"],
      ["src", "renamed", "src/old.txt"],
    ]);
    expect(await applyAll()).toMatchObject({ kind: "done" });
    expect([textOf("src"), textOf("b.txt/b.txt")]).toEqual([edited(), "b\n"]);
  });

  it("is remembered as refused until it is another one", async () => {
    move("src/old.txt", "new.txt");
    await review({ apply: {}, refused: { "new.txt": "Keep it." } });
    expect(await files()).toMatchObject([
      { path: "new.txt", decided: { how: "refused", message: "Keep it." } },
    ]);
    expect(textOf("src/old.txt")).toBe(edited());
    move("new.txt", "newer.txt");
    expect((await files())[0]?.decided).toBeUndefined();
  });
});

describe("no rename", () => {
  beforeEach(() => proposals.open(RUN, workspace));

  it("is a swap, an empty file, a file that became executable, or one with little in common", async () => {
    write(workspace, "a.txt", edited([1, "a"]));
    write(workspace, "empty.txt", "");
    write(workspace, "run.sh", edited([2, "run"]));
    write(workspace, "other.txt", edited([3, "other"]));
    await proposals.open({ ...RUN, id: "run_2" }, workspace);
    move("a.txt", "swap");
    move("src/old.txt", "a.txt");
    move("swap", "src/old.txt");
    move("empty.txt", "void.txt");
    move("run.sh", "go.sh");
    chmodSync(join(tree(), "go.sh"), 0o755);
    move("other.txt", "another.txt", `${LINES.slice(0, 15).join("\n")}\n${"new\n".repeat(60)}`);
    expect(await changes()).toEqual([
      ["a.txt", "edited", undefined],
      ["another.txt", "added", undefined],
      ["empty.txt", "deleted", undefined],
      ["go.sh", "added", undefined],
      ["other.txt", "deleted", undefined],
      ["run.sh", "deleted", undefined],
      ["src/old.txt", "edited", undefined],
      ["void.txt", "added", undefined],
    ]);
  });

  it("is a copy, and the more similar one of two new files is the renamed one", async () => {
    write(tree(), "copy.txt", edited());
    expect(await changes()).toEqual([["copy.txt", "added", undefined]]);
    rmSync(join(tree(), "src/old.txt"));
    write(tree(), "copy.txt", edited([3, "three"], [9, "nine"]));
    write(tree(), "zz.txt", edited([3, "three"]));
    expect(await changes()).toEqual([
      ["copy.txt", "added", undefined],
      ["zz.txt", "renamed", "src/old.txt"],
    ]);
    await applyAll();
    expect(textOf("copy.txt")).toBe(edited([3, "three"], [9, "nine"]));
    expect([textOf("zz.txt"), textOf("src/old.txt")]).toEqual([edited([3, "three"]), undefined]);
  });

  it("is a file that Git ignores only under one of the paths", async () => {
    write(workspace, ".gitignore", "*.log\n");
    write(workspace, "one.log", "one log\n");
    write(workspace, "two.log", "two log\n");
    await proposals.open({ ...RUN, id: "run_2", threadId: "thr_2" }, workspace);
    const other = { ...RUN, threadId: "thr_2" };
    const copy = copyOf(join(home, "copies"), "thr_2");
    renameSync(join(copy, "one.log"), join(copy, "one.txt"));
    renameSync(join(copy, "two.log"), join(copy, "2.log"));
    const found = (await proposals.change(other))?.files ?? [];
    expect(found.map(({ path, change, ignored }) => [path, change, ignored])).toEqual([
      ["2.log", "renamed", true],
      ["one.log", "deleted", true],
      ["one.txt", "added", undefined],
    ]);
  });
});

describe("a renamed file whose folder moves meanwhile", () => {
  beforeEach(async () => {
    await proposals.open(RUN, workspace);
    move("src/old.txt", "src/new.txt", edited([3, "three"]));
  });

  it("has the lines that the folder changed in the old file", async () => {
    write(workspace, "src/old.txt", edited([20, "twenty"]));
    expect((await files())[0]?.places).toMatchObject([{ added: 1 }]);
    await applyAll();
    expect(textOf("src/new.txt")).toBe(edited([3, "three"], [20, "twenty"]));
    expect(textOf("src/old.txt")).toBeUndefined();
    expect(await files()).toEqual([]);
  });

  it("has a conflict where the folder changed the same lines", async () => {
    write(workspace, "src/old.txt", edited([3, "drei"], [20, "twenty"]));
    expect((await files())[0]?.places[0]?.conflict).toBe("drei");
    expect(await applyAll()).toEqual({ kind: "moved", paths: ["src/new.txt"] });
    expect([textOf("src/old.txt"), textOf("src/new.txt")]).toEqual([
      edited([3, "drei"], [20, "twenty"]),
      undefined,
    ]);
    await review({ apply: { "src/new.txt": "all" }, over: ["src/new.txt"] });
    expect(textOf("src/new.txt")).toBe(edited([3, "three"], [20, "twenty"]));
    expect(textOf("src/old.txt")).toBeUndefined();
  });

  it("is left to the agent, which has the file of the folder at its old path then", async () => {
    write(workspace, "src/old.txt", edited([3, "drei"]));
    const outcome = await review({ apply: {}, fit: ["src/new.txt"] });
    expect(outcome).toMatchObject({ record: { unapplied: 0 } });
    const { "src/old.txt": told } = (outcome.kind === "done" && outcome.record.fitted) || {};
    expect(told).toMatch(/^rename from src\/old\.txt\nrename to src\/new\.txt\n[^]*\+three/);
    expect(readFileSync(join(tree(), "src/old.txt"), "utf8")).toBe(edited([3, "drei"]));
    expect(existsSync(join(tree(), "src/new.txt"))).toBe(false);
    expect(await files()).toEqual([]);
  });

  it("is a new and a deleted file once something else is at its old path", async () => {
    rmSync(join(workspace, "src/old.txt"));
    symlinkSync("../b.txt", join(workspace, "src/old.txt"));
    expect(await changes()).toEqual([
      ["src/new.txt", "added", undefined],
      ["src/old.txt", "deleted", undefined],
    ]);
  });

  it("is only a new file once the folder deleted the old one", async () => {
    const seen = await files();
    rmSync(join(workspace, "src/old.txt"));
    expect(await review({ apply: { "src/new.txt": "all" } }, seen)).toEqual({
      kind: "moved",
      paths: ["src/new.txt"],
    });
    expect(await changes()).toEqual([["src/new.txt", "added", undefined]]);
  });

  it("is a new and a deleted file once something is at its new path", async () => {
    const seen = await files();
    write(workspace, "src/new.txt", "mine\n");
    expect(await review({ apply: { "src/new.txt": "all" } }, seen)).toEqual({
      kind: "moved",
      paths: ["src/new.txt"],
    });
    expect([textOf("src/new.txt"), textOf("src/old.txt")]).toEqual(["mine\n", edited()]);
    const separate = await files();
    expect(separate).toMatchObject([
      { path: "src/new.txt", change: "added", conflict: expect.any(String) },
      { path: "src/old.txt", change: "deleted" },
    ]);
    // A person who chose the deletion alone is asked again as well, once the two are one.
    rmSync(join(workspace, "src/new.txt"));
    expect(await review({ apply: { "src/old.txt": "all" } }, separate)).toEqual({
      kind: "moved",
      paths: ["src/old.txt"],
    });
    expect(textOf("src/old.txt")).toBe(edited());
  });
});

describe("a moved folder", () => {
  it("is a rename for each of its files, also of those that are alike or were changed", async () => {
    for (const name of ["a", "b", "c"]) {
      write(workspace, `packages/${name}/index.js`, 'export * from "./main.js";\n');
      write(workspace, `packages/${name}/main.js`, edited([1, name]));
    }
    await proposals.open(RUN, workspace);
    move("packages", "lib");
    write(tree(), "lib/b/main.js", edited([1, "changed"]));
    expect(await changes()).toEqual(
      ["a", "b", "c"].flatMap((name) =>
        ["index.js", "main.js"].map((file) => [`lib/${name}/${file}`, "renamed", `packages/${name}/${file}`]),
      ),
    );
    await applyAll();
    expect(existsSync(join(workspace, "packages"))).toBe(false);
    expect(textOf("lib/b/main.js")).toBe(edited([1, "changed"]));
  });
});

it("files with the same bytes are paired by the ends of their paths", async () => {
  for (const name of ["a", "b"]) write(workspace, `old/${name}/index.js`, "export {};\n");
  await proposals.open(RUN, workspace);
  move("old/a", "z/a");
  move("old/b", "y/b");
  expect(await changes()).toEqual([
    ["y/b/index.js", "renamed", "old/b/index.js"],
    ["z/a/index.js", "renamed", "old/a/index.js"],
  ]);
});

it("many files have new names and new lines", async () => {
  const names = Array.from({ length: 60 }, (_, index) => `n${index}`);
  const textWith = (name: string, last: string): string =>
    `${LINES.slice(0, 9).join("\n")}\n${`${name}\n`.repeat(30)}${last}\n`;
  for (const name of names) write(workspace, `js/${name}.js`, textWith(name, "js"));
  await proposals.open(RUN, workspace);
  for (const name of names) move(`js/${name}.js`, `ts/${name}.ts`, textWith(name, "ts"));
  const expected = names.map((name) => [`ts/${name}.ts`, "renamed", `js/${name}.js`]);
  expect((await changes()).toSorted()).toEqual(expected.toSorted());
});

it("a branch has the file under its new path only", async () => {
  const git = (...args: string[]): string => execFileSync("git", args, { cwd: workspace, encoding: "utf8" });
  git("init", "-q", "-b", "main");
  git("config", "user.name", "T");
  git("config", "user.email", "t@example.org");
  git("add", "-A");
  git("commit", "-qm", "first");
  await proposals.open(RUN, workspace);
  move("src/old.txt", "src/new.txt", edited([3, "three"]));
  const outcome = await review({ apply: { "src/new.txt": "all" }, branch: "agent/x" });
  expect(outcome).toMatchObject({ kind: "done", record: { applied: ["src/new.txt"], unapplied: 0 } });
  expect(git("show", "-M", "--format=", "--name-status", "agent/x")).toMatch(
    /^R\d+\tsrc\/old\.txt\tsrc\/new\.txt\n$/,
  );
  expect(textOf("src/old.txt")).toBe(edited());
  expect(await files()).toEqual([]);
});
