import { execFileSync } from "node:child_process";
import { cpSync, existsSync, lstatSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { makeBranch } from "../../src/proposals/branch.ts";
import type { Content } from "../../src/proposals/content.ts";
import { filesIn } from "../support/files-in.ts";

const write = (folder: string, path: string, text: string): void => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
};

function folders() {
  const top = filesIn();
  const git = (folder: string, ...args: string[]): string =>
    execFileSync("git", args, { cwd: join(top, folder), encoding: "utf8" });
  const init = (folder: string, ...options: string[]): void => {
    mkdirSync(join(top, folder), { recursive: true });
    git(folder, "init", "-q", "-b", "main", ...options);
    git(folder, "config", "user.name", "T");
    git(folder, "config", "user.email", "t@example.org");
  };
  const commit = (folder: string): void => {
    git(folder, "add", "-A");
    git(folder, "commit", "-qm", "first");
  };
  return { top, work: join(top, "work"), git, init, commit };
}

type Made = ReturnType<typeof folders>;

const changed = (text: string): Content => ({ kind: "file", bytes: Buffer.from(text), executable: false });
const FILES = new Map([
  ["a.txt", changed("changed\n")],
  ["gone.txt", undefined],
]);

/** Makes a branch of a change of `work`. */
async function branchOf({ top, work }: Made, files: ReadonlyMap<string, Content | undefined> = FILES) {
  const base = join(top, "base");
  cpSync(work, base, { recursive: true, filter: (path) => !path.endsWith("/.git") });
  const paths = readdirSync(base, { recursive: true, encoding: "utf8" });
  const basePaths = paths.filter((path) => lstatSync(join(base, path)).isFile());
  return makeBranch({
    workspace: work,
    name: "agent/x",
    base,
    basePaths,
    files,
    title: "T",
    id: "1",
    hasWorktree: false,
  });
}

const started = (made: Made, ...options: string[]): void => {
  made.init("work", ...options);
  write(made.work, "a.txt", "a\n");
  write(made.work, "gone.txt", "gone\n");
};

/** Its submodule is `sub`, with the file `x.txt`. */
const startedWithSubmodule = (made: Made): void => {
  const library = join(made.top, "library");
  made.init("library");
  write(library, "x.txt", "x\n");
  made.commit("library");
  started(made);
  made.git("work", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library, "sub");
};

it.each<[source: string, what: string, make: (made: Made) => void, files: string[]]>([
  [
    "entireio/cli#1133",
    "objects named by SHA-256",
    (made) => {
      started(made, "--object-format=sha256");
      made.commit("work");
    },
    ["a.txt"],
  ],
  [
    "hoangsonww/Claude-Code-Agent-Monitor#322",
    "the variables of a hook of another repository",
    (made) => {
      started(made);
      made.commit("work");
      made.init("other");
      vi.stubEnv("GIT_DIR", join(made.top, "other/.git"));
      vi.stubEnv("GIT_INDEX_FILE", ".git/index");
      onTestFinished(() => void vi.unstubAllEnvs());
    },
    ["a.txt"],
  ],
  [
    "ours",
    "a submodule with changes",
    (made) => {
      startedWithSubmodule(made);
      made.commit("work");
      write(made.work, "sub/x.txt", "changed\n");
    },
    [".gitmodules", "a.txt", "sub"],
  ],
  [
    "ours",
    "a sparse checkout",
    (made) => {
      started(made);
      write(made.work, "far/x.txt", "x\n");
      made.commit("work");
      made.git("work", "sparse-checkout", "set", "near");
    },
    ["a.txt", "far/x.txt"],
  ],
  [
    "ours",
    "a folder that became a file, and a file that became a folder",
    (made) => {
      started(made);
      write(made.work, "folder/x.txt", "x\n");
      write(made.work, "file", "x\n");
      made.commit("work");
      for (const path of ["folder", "file"]) rmSync(join(made.work, path), { recursive: true });
      write(made.work, "folder", "now a file\n");
      write(made.work, "file/x.txt", "x\n");
    },
    ["a.txt", "file/x.txt", "folder"],
  ],
  [
    "ours",
    "line ends of both kinds",
    (made) => {
      started(made);
      made.git("work", "config", "core.autocrlf", "true");
      made.git("work", "config", "core.safecrlf", "true");
      made.git("work", "-c", "core.safecrlf=false", "add", "-A");
      made.git("work", "commit", "-qm", "first");
      write(made.work, "mixed.txt", "a\r\nb\n");
    },
    ["a.txt", "mixed.txt"],
  ],
])("%s: %s is no obstacle", async (_source, _what, make, files) => {
  const made = folders();
  make(made);
  const outcome = await branchOf(made);
  vi.unstubAllEnvs();
  expect(outcome).toEqual({ ok: true });
  expect(made.git("work", "ls-tree", "-r", "--name-only", "agent/x").trim().split("\n")).toEqual(files);
  expect(made.git("work", "show", "agent/x:a.txt")).toBe("changed\n");
  if (existsSync(join(made.top, "other"))) expect(made.git("other", "branch", "--list")).toBe("");
});

it("files of a submodule are left out of no branch in silence", async () => {
  const made = folders();
  startedWithSubmodule(made);
  made.commit("work");
  expect(await branchOf(made, new Map([["sub/x.txt", changed("x")]]))).toEqual({
    ok: false,
    message:
      "Git could not make the branch: 'sub/x.txt' is in the submodule 'sub'. Leave its files out of the branch.",
  });
});
