import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { gitIdentity } from "../../src/backends/sandbox/git-view.ts";
import { isRepository, makeBranch } from "../../src/proposals/branch.ts";
import type { Content } from "../../src/proposals/content.ts";
import { filesIn } from "../support/files-in.ts";

/** A repository whose files and settings somebody else chose. */
interface Repository {
  work: string;
  /** The path of a program that leaves a mark and fails. */
  program: string;
  set: (name: string, value: string) => void;
  write: (path: string, text: string) => void;
  git: (...args: string[]) => string;
}

/** Prepares a program, and is a command of Git that would run it. */
type Trap = (repository: Repository) => readonly string[];

const attribute =
  (line: string, settings: Readonly<Record<string, string>>, ...command: string[]): Trap =>
  ({ set, write, program }) => {
    write(".gitattributes", `${line}\n`);
    for (const [name, value] of Object.entries(settings)) set(name, value.replace("PROGRAM", program));
    return command;
  };
const setting =
  (name: string, ...command: string[]): Trap =>
  ({ set, program }) => {
    set(name, program);
    return command;
  };
const hook =
  (name: string, ...command: string[]): Trap =>
  ({ program, work }) => {
    symlinkSync(program, join(work, ".git/hooks", name));
    return command;
  };
const remote =
  (url: string, settings: Readonly<Record<string, string>>, ...command: string[]): Trap =>
  ({ set, program, work }) => {
    set("remote.origin.url", url.replace("WORK", work).replace("PROGRAM", program));
    set("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*");
    for (const [name, value] of Object.entries(settings)) set(name, value.replace("PROGRAM", program));
    return command.length === 0 ? ["fetch", "origin"] : command;
  };

const COMMIT = ["commit", "--allow-empty", "-m", "x"];

/**
 * What Git can be told to run by a repository: by its settings, by attributes, as a hook, or for a remote
 * (git-config(1), gitattributes(5), githooks(5), gitremote-helpers(7), gitmodules(5)). Pagers are left out, which Git
 * starts in a terminal alone, and so are programs that only commands for people start: browsers, mail, `git gui`.
 */
const TRAPS: Readonly<Record<string, Trap>> = {
  "filter.<driver>.clean": attribute("* filter=x", { "filter.x.clean": "PROGRAM" }, "add", "-A"),
  "filter.<driver>.smudge": ({ set, write, program, work }) => {
    write(".gitattributes", "* filter=x\n");
    set("filter.x.smudge", program);
    rmSync(join(work, "a.txt"));
    return ["checkout", "--", "a.txt"];
  },
  "filter.<driver>.process": attribute("* filter=x", { "filter.x.process": "PROGRAM" }, "add", "-A"),
  "filter in .git/info/attributes": ({ set, write, program }) => {
    write(".git/info/attributes", "* filter=x\n");
    set("filter.x.clean", program);
    return ["add", "-A"];
  },
  "core.attributesFile": ({ set, write, program, work }) => {
    write(".git/more", "* filter=x\n");
    set("core.attributesFile", join(work, ".git/more"));
    set("filter.x.clean", program);
    return ["add", "-A"];
  },
  "include.path": ({ set, write, program }) => {
    write(".gitattributes", "* filter=x\n");
    write(".git/more", `[filter "x"]\n\tclean = ${JSON.stringify(program)}\n`);
    set("include.path", "more");
    return ["add", "-A"];
  },
  "includeIf.<condition>.path": ({ set, write, program, work }) => {
    write(".gitattributes", "* filter=x\n");
    write(".git/more", `[filter "x"]\n\tclean = ${JSON.stringify(program)}\n`);
    set(`includeIf.gitdir:${work}/.path`, "more");
    return ["add", "-A"];
  },
  "config.worktree": ({ set, git, write, program }) => {
    write(".gitattributes", "* filter=x\n");
    set("extensions.worktreeConfig", "true");
    git("config", "--worktree", "filter.x.clean", program);
    return ["add", "-A"];
  },
  "diff.<driver>.textconv": attribute("* diff=x", { "diff.x.textconv": "PROGRAM" }, "log", "-p"),
  "diff.<driver>.command": attribute("* diff=x", { "diff.x.command": "PROGRAM" }, "diff", "--ext-diff"),
  "diff.external": setting("diff.external", "diff", "--ext-diff"),
  "diff.tool": ({ set, program }) => {
    set("diff.tool", "x");
    set("difftool.x.cmd", program);
    return ["difftool", "-y"];
  },
  "merge.<driver>.driver": attribute("* merge=x", { "merge.x.driver": "PROGRAM" }, "merge", "other"),
  "core.fsmonitor": setting("core.fsmonitor", "status"),
  "core.editor": setting("core.editor", ...COMMIT.slice(0, 2)),
  "sequence.editor": setting("sequence.editor", "rebase", "-i", "--autostash", "--root"),
  "core.askPass": ({ set, program }) => {
    set("core.askPass", program);
    return ["credential", "fill"];
  },
  "credential.helper": ({ set, program }) => {
    set("credential.helper", `!${program}`);
    return ["credential", "fill"];
  },
  "gpg.program": ({ set, program }) => {
    set("commit.gpgSign", "true");
    set("gpg.program", program);
    return COMMIT;
  },
  "gpg.ssh.program": ({ set, program }) => {
    set("commit.gpgSign", "true");
    set("gpg.format", "ssh");
    set("user.signingKey", "key::ssh-ed25519 AAAA");
    set("gpg.ssh.program", program);
    return COMMIT;
  },
  "gpg.ssh.defaultKeyCommand": ({ set, program }) => {
    set("commit.gpgSign", "true");
    set("gpg.format", "ssh");
    set("gpg.ssh.defaultKeyCommand", program);
    return COMMIT;
  },
  "trailer.<key>.command": ({ set, program }) => {
    set("trailer.x.key", "X");
    set("trailer.x.command", program);
    return ["interpret-trailers", "--trailer", "x=1"];
  },
  "alias.<name>": ({ set, program }) => {
    set("alias.mine", `!${program}`);
    return ["mine"];
  },
  "core.hooksPath": ({ set, program, work }) => {
    mkdirSync(join(work, ".git/more"));
    symlinkSync(program, join(work, ".git/more/pre-commit"));
    set("core.hooksPath", join(work, ".git/more"));
    return COMMIT;
  },
  "hook pre-commit": hook("pre-commit", ...COMMIT),
  "hook prepare-commit-msg": hook("prepare-commit-msg", ...COMMIT),
  "hook commit-msg": hook("commit-msg", ...COMMIT),
  "hook post-commit": hook("post-commit", ...COMMIT),
  "hook post-index-change": hook("post-index-change", "add", "-A"),
  "hook reference-transaction": hook("reference-transaction", "branch", "more"),
  "hook post-checkout": hook("post-checkout", "checkout", "-q", "-b", "more"),
  "hook fsmonitor-watchman": ({ set, program, work }) => {
    symlinkSync(program, join(work, ".git/hooks/fsmonitor-watchman"));
    set("core.fsmonitor", ".git/hooks/fsmonitor-watchman");
    return ["status"];
  },
  "core.sshCommand": remote("ssh://host.invalid/x", { "core.sshCommand": "PROGRAM" }),
  "core.gitProxy": remote("git://host.invalid/x", { "core.gitProxy": "PROGRAM" }),
  "remote.<name>.uploadpack": remote("WORK", { "remote.origin.uploadpack": "PROGRAM" }),
  "remote.<name>.receivepack": remote(
    "WORK",
    { "remote.origin.receivepack": "PROGRAM" },
    "push",
    "origin",
    "HEAD:refs/heads/more",
  ),
  "remote helper ext::": remote("ext::PROGRAM", { "protocol.ext.allow": "always" }),
  "a partial clone's remote": ({ set, git, work, program }) => {
    set("core.repositoryFormatVersion", "1");
    set("extensions.partialClone", "origin");
    set("remote.origin.url", work);
    set("remote.origin.promisor", "true");
    set("remote.origin.uploadpack", program);
    const blob = git("rev-parse", "HEAD:b.txt").trim();
    rmSync(join(work, ".git/objects", blob.slice(0, 2), blob.slice(2)));
    return ["cat-file", "-p", blob];
  },
  "submodule.<name>.update": ({ set, git, program, work }) => {
    git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "-f", work, "sub");
    git("commit", "-qm", "sub");
    set("submodule.sub.update", `!${program}`);
    set("submodule.recurse", "true");
    git("-C", "sub", "checkout", "-q", "--detach", "HEAD~1");
    return ["submodule", "update"];
  },
  "tar.<format>.command": ({ set, program }) => {
    set("tar.x.command", program);
    return ["archive", "--format=x", "HEAD"];
  },
  "core.alternateRefsCommand": ({ set, write, git, program, work }) => {
    const other = join(work, "..", "other");
    git("clone", "-q", "--bare", work, other);
    write(".git/objects/info/alternates", `${other}/objects\n`);
    set("core.alternateRefsCommand", program);
    return ["push", ".", "HEAD:refs/heads/more"];
  },
};

const changed = (text: string): Content => ({ kind: "file", bytes: Buffer.from(text), executable: false });

/** A repository with the branch `other`, which differs, and without what the person set for all repositories. */
function repository() {
  const top = filesIn();
  const [work, mark] = [join(top, "work"), join(top, "mark")];
  mkdirSync(work);
  vi.stubEnv("HOME", top);
  vi.stubEnv("GIT_CONFIG_NOSYSTEM", "1");
  onTestFinished(() => void vi.unstubAllEnvs());
  writeFileSync(join(top, ".gitconfig"), "[user]\n\tname = T\n\temail = t@example.org\n");
  const input = "protocol=https\nhost=host.invalid\nusername=x\n\n";
  // The programs fail, and with them some of the commands.
  const git = (...args: string[]): string =>
    spawnSync("git", args, { cwd: work, encoding: "utf8", input, timeout: 10_000 }).stdout;
  const program = join(top, "program");
  writeFileSync(program, `#!/bin/sh\ntouch ${mark}\nexit 1\n`, { mode: 0o755 });
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(work, path)), { recursive: true });
    writeFileSync(join(work, path), text);
  };
  git("init", "-q", "-b", "main");
  write("a.txt", "a\n");
  write("b.txt", "b\n");
  git("add", "-A");
  git("commit", "-qm", "first");
  git("checkout", "-q", "-b", "other");
  write("a.txt", "other\n");
  git("commit", "-qam", "other");
  git("checkout", "-q", "main");
  write("a.txt", "main\n");
  git("commit", "-qam", "second");
  write("b.txt", "uncommitted\n");
  const set = (name: string, value: string): void => void git("config", "--replace-all", name, value);
  return { top, mark, work, program, set, write, git };
}

/** The folder as it is when it is copied, and what Git knows of it. */
function copied({ top, work, mark }: ReturnType<typeof repository>) {
  const base = join(top, "base");
  mkdirSync(base);
  const basePaths = ["a.txt", "b.txt", ".gitattributes"].filter((path) => existsSync(join(work, path)));
  for (const path of basePaths) writeFileSync(join(base, path), readFileSync(join(work, path)));
  const files = new Map([["a.txt", changed("changed\n")]]);
  const rest = { title: "T", id: "1", hasWorktree: true };
  rmSync(mark, { force: true });
  return { workspace: work, name: "agent/x", base, basePaths, files, ...rest };
}

it.each(Object.entries(TRAPS))("%s is not run for a branch", async (_name, trap) => {
  const proof = repository();
  const command = trap(proof);
  rmSync(proof.mark, { force: true });
  proof.git(...command);
  // A trap that does not work would prove nothing.
  expect(existsSync(proof.mark)).toBe(true);
  const made = repository();
  trap(made);
  const request = copied(made);
  expect(await isRepository(made.work)).toBe(true);
  expect(await gitIdentity(made.work)).toMatchObject({ env: { GIT_AUTHOR_NAME: "T" } });
  expect(await makeBranch(request)).toEqual({ ok: true, worktree: `${made.work}-agent-x` });
  expect(existsSync(made.mark)).toBe(false);
  expect(made.git("show", "agent/x:a.txt")).toBe("changed\n");
  expect(readFileSync(join(made.top, "work-agent-x/a.txt"), "utf8")).toBe("changed\n");
});

it("leaves what a filter made of a file as it is, and refuses to change such a file", async () => {
  const made = repository();
  made.git("checkout", "-q", "--", "b.txt");
  made.set("filter.x.clean", "tr a-z A-Z");
  made.write(".gitattributes", "*.txt filter=x\n");
  made.git("add", "-A");
  made.git("commit", "-qm", "filtered");
  const request = { ...copied(made), files: new Map([[".gitattributes", changed("# none\n")]]) };
  expect(await makeBranch(request)).toMatchObject({ ok: true });
  expect(made.git("show", "agent/x:a.txt")).toBe("MAIN\n");
  for (const path of ["a.txt", "new.txt"]) {
    const outcome = await makeBranch({
      ...request,
      name: "agent/y",
      files: new Map([[path, changed("x\n")]]),
    });
    expect(outcome).toEqual({
      ok: false,
      message: expect.stringContaining(`'${path}' needs the filter 'x'`),
    });
  }
});

it("keeps the line ends that attributes and settings ask for", async () => {
  const made = repository();
  made.write(".gitattributes", "*.txt text\n*.bin -text\n");
  made.set("core.autocrlf", "true");
  const files = new Map(["a.txt", "c.md", "d.bin"].map((path) => [path, changed("x\r\ny\r\n")]));
  expect(await makeBranch({ ...copied(made), files })).toMatchObject({ ok: true });
  expect(["a.txt", "c.md", "d.bin"].map((path) => made.git("show", `agent/x:${path}`))).toEqual([
    "x\ny\n",
    "x\ny\n",
    "x\r\ny\r\n",
  ]);
  expect(made.git("-C", "../work-agent-x", "status", "--porcelain")).toBe("");
  expect(made.git("worktree", "list")).toContain("[agent/x]");
  expect(made.git("fsck", "--strict")).toBe("");
  made.git("worktree", "remove", "../work-agent-x");
  expect(existsSync(join(made.top, "work-agent-x"))).toBe(false);
});

it("makes a branch of a linked working tree, of packed refs and of a split index", async () => {
  const made = repository();
  made.git("pack-refs", "--all");
  made.git("worktree", "add", "-q", "../linked", "other");
  const work = join(made.top, "linked");
  made.git("-C", work, "update-index", "--split-index");
  const request = copied({ ...made, work });
  expect(await makeBranch(request)).toEqual({ ok: true, worktree: `${work}-agent-x` });
  expect(made.git("show", "agent/x:a.txt")).toBe("changed\n");
  expect(made.git("log", "--format=%s", "agent/x")).toBe("T\nother\nfirst\n");
  expect(await makeBranch(request)).toEqual({ ok: true, worktree: `${work}-agent-x` });
  expect(await makeBranch({ ...request, id: "2" })).toMatchObject({ ok: false });
});
