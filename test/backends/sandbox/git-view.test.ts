import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type BubblewrapOptions, openBubblewrap } from "../../../src/backends/sandbox/bubblewrap.ts";
import { gitIdentity, gitView } from "../../../src/backends/sandbox/git-view.ts";
import { folder } from "./support.ts";

const NOBODY = { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" };

const git = (cwd: string, ...args: string[]): string =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], {
    cwd,
    env: { ...process.env, ...NOBODY },
    encoding: "utf8",
    stdio: "pipe",
  });

/** A repository with one commit, and a worktree beside it. */
function repository(): { root: string; worktree: string } {
  const root = join(folder(), "repository");
  mkdirSync(join(root, "part"), { recursive: true });
  writeFileSync(join(root, "part/a.txt"), "a\n");
  writeFileSync(join(root, "b.txt"), "b\n");
  git(root, "init", "-q", "-b", "main");
  git(root, "add", "-A");
  git(root, "commit", "-qm", "first");
  const worktree = join(dirname(root), "worktree");
  git(root, "worktree", "add", "-q", worktree, "-b", "side");
  return { root, worktree };
}

async function open(rootDir: string, options: Partial<BubblewrapOptions> = {}) {
  const env = {
    GIT_AUTHOR_NAME: "p",
    GIT_AUTHOR_EMAIL: "p@q",
    GIT_COMMITTER_NAME: "p",
    GIT_COMMITTER_EMAIL: "p@q",
  };
  const opened = await openBubblewrap({ rootDir, repository: true, protectsStarters: true, env, ...options });
  if (!opened.ok) throw new Error(opened.reason);
  onTestFinished(() => opened.backend.close());
  return opened.backend;
}

describe("Git in the sandbox", { tags: "bwrap" }, () => {
  it("commits in a worktree, as the person", async () => {
    const { root, worktree } = repository();
    const { output } = await (
      await open(worktree)
    ).execute(
      "echo c > c.txt && git add c.txt && git commit -qm second && git status --short && git log -1 --format='%s %an %ce'",
    );
    expect(output).toBe("second p p@q\n");
    expect(git(root, "log", "--format=%s", "side")).toBe("second\nfirst\n");
  });

  it.each([true, undefined])("cannot change the repository's settings (approved: %s)", async (approved) => {
    const { root, worktree } = repository();
    const before = readFileSync(join(root, ".git/config"), "utf8");
    const sandbox = await open(worktree);
    const common = "$(git rev-parse --git-common-dir)";
    const { output } = await sandbox.execute(
      `for f in hooks/post-commit config worktrees/worktree/commondir commondir; do echo x > ${common}/$f; done; mv ${common}/hooks ${common}/h; git config core.fsmonitor evil; true`,
      { approved },
    );
    expect(output).toMatch(/read-only|busy/i);
    expect(readFileSync(join(root, ".git/config"), "utf8")).toBe(before);
    expect(existsSync(join(root, ".git/hooks/post-commit"))).toBe(false);
    expect(readFileSync(join(root, ".git/worktrees/worktree/commondir"), "utf8")).toBe("../..\n");
    await sandbox.close();
    expect(existsSync(join(root, ".git/commondir"))).toBe(false);
  });

  it("reads the history in a folder of a repository, and changes nothing of it", async () => {
    const { root } = repository();
    const sandbox = await open(join(root, "part"));
    const read = await sandbox.execute(
      "pwd; git log --format=%s; echo b >> a.txt; git diff --stat -- . | tail -1; ls ../../repository",
    );
    expect(read.output).toBe("/workspace\nfirst\n 1 file changed, 1 insertion(+)\npart\n");
    const changed = await sandbox.execute("git add -A; git commit -qm gone");
    expect(changed.output).toMatch(/read-only/i);
    expect(git(root, "log", "--format=%s")).toBe("first\n");
    expect(readdirSync(join(root, "part"))).toEqual(["a.txt"]);
  });

  it("reads the history in a folder of a worktree", async () => {
    const { worktree } = repository();
    const { output } = await (await open(join(worktree, "part"))).execute("git log --format='%s %D'");
    expect(output).toBe("first HEAD -> side, main\n");
  });

  it("sees no repository unless it may", async () => {
    const { worktree } = repository();
    const sandbox = await open(worktree, { repository: false });
    expect((await sandbox.execute("git log")).output).toContain("not a git repository");
  });
});

it("gitView follows no file of an agent to a folder that does not name the worktree", () => {
  const { root, worktree } = repository();
  const forged = folder();
  writeFileSync(join(forged, ".git"), readFileSync(join(worktree, ".git")));
  expect(gitView(forged, "/workspace")).toEqual({ writable: [], readOnly: [] });
  writeFileSync(join(forged, ".git"), `gitdir: ${root}/.git\n`);
  expect(gitView(forged, "/workspace")).toEqual({ writable: [], readOnly: [] });
  expect(gitView(root, "/workspace")).toEqual({ writable: [], readOnly: [] });
  expect(gitView(folder(), "/workspace")).toEqual({ writable: [], readOnly: [] });
});

it("the identity of a person is the one that Git uses in the folder", async () => {
  const { root } = repository();
  git(root, "config", "user.name", "Own Name");
  git(root, "config", "user.email", "own@example");
  // As a hook of another repository has it.
  vi.stubEnv("GIT_DIR", join(repository().root, ".git"));
  onTestFinished(() => void vi.unstubAllEnvs());
  const env = {
    GIT_AUTHOR_NAME: "Own Name",
    GIT_COMMITTER_NAME: "Own Name",
    GIT_AUTHOR_EMAIL: "own@example",
    GIT_COMMITTER_EMAIL: "own@example",
  };
  expect(await gitIdentity(root)).toEqual({ env, signs: false });
  git(root, "config", "-f", join(root, ".git/config"), "commit.gpgSign", "yes");
  expect(await gitIdentity(root)).toEqual({ env, signs: true });
});
