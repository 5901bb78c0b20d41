import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { buildSync } from "esbuild";
import { describe, expect, it, onTestFinished } from "vitest";
import { type BubblewrapOptions, openBubblewrap } from "../../../src/backends/sandbox/bubblewrap.ts";
import { STARTING_PLACES, startingPlaces } from "../../../src/backends/sandbox/starting-places.ts";
import { folder, until } from "./support.ts";

async function open(root = folder(), options: Partial<BubblewrapOptions> = {}) {
  const opened = await openBubblewrap({ rootDir: root, protectsStarters: true, ...options });
  if (!opened.ok) throw new Error(opened.reason);
  const { backend } = opened;
  onTestFinished(() => backend.close());
  return Object.assign(backend, { root });
}

/** Runs Git on this machine, as a person would. */
function git(cwd: string, ...args: string[]): string {
  const env = { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" };
  const identity = ["-c", "user.name=a", "-c", "user.email=a@example", "-c", "protocol.file.allow=always"];
  return execFileSync("git", [...identity, ...args], { cwd, env, encoding: "utf8", stdio: "pipe" });
}

/** A repository with one commit. */
function repository(path = folder()): string {
  git(dirname(path), "init", "-q", "-b", "main", path);
  writeFileSync(join(path, "a.txt"), "a\n");
  git(path, "add", "a.txt");
  git(path, "commit", "-qm", "first");
  return path;
}

/** All that is below a folder but the insides of repositories. */
const tree = (root: string): string[] =>
  readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((path) => !/(^|\/)\.git\/(objects|logs|refs|index|HEAD|COMMIT|ORIG)/.test(path))
    .sort();

const IDENTITY = "git -c user.name=a -c user.email=a@example";

describe("places that start programs", () => {
  it("have a name once, and their documentation", () => {
    const names = STARTING_PLACES.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const { source } of STARTING_PLACES) expect(source).toMatch(/^(https:\/\/|docs\/)/);
  });

  it("are found in the root, in nested projects, worktrees, submodules and settings of Git", () => {
    const root = repository();
    const other = repository();
    git(root, "submodule", "add", "-q", other, "libs/sub");
    git(root, "worktree", "add", "-q", join(root, "trees/two"));
    git(root, "config", "core.hooksPath", ".hooks/own");
    git(root, "config", "include.path", "../more.gitconfig");
    writeFileSync(join(root, "more.gitconfig"), "");
    mkdirSync(join(root, "packages/x/.vscode"), { recursive: true });
    mkdirSync(join(root, "packages/x/.github/hooks"), { recursive: true });
    mkdirSync(join(root, "node_modules/y/.vscode"), { recursive: true });
    writeFileSync(join(root, "x.code-workspace"), "{}");
    git(root, "init", "-q", "--bare", "bare");
    const { existing, missing, links, withoutCommonFolder } = startingPlaces(root);
    const names = (paths: readonly string[]) => paths.map((path) => path.slice(root.length + 1));
    expect(names(existing)).toEqual(
      expect.arrayContaining([
        ".git/config",
        ".git/hooks",
        ".git/modules/libs/sub/config",
        ".git/modules/libs/sub/hooks",
        ".git/worktrees/two/commondir",
        ".git/worktrees/two/gitdir",
        "bare/config",
        "bare/hooks",
        "libs/sub/.git",
        "more.gitconfig",
        "packages/x/.github/hooks",
        "packages/x/.vscode",
        "trees/two/.git",
        "x.code-workspace",
      ]),
    );
    expect(names(existing).filter((path) => path.startsWith("node_modules"))).toEqual([]);
    expect(names(missing)).toEqual(expect.arrayContaining([".hooks", ".mcp.json", ".vscode", ".envrc"]));
    expect(names(withoutCommonFolder)).toEqual([".git", ".git/modules/libs/sub", "bare"]);
    expect(links).toEqual([]);
  });

  it("are found beside what looks like a repository, and in settings of any form", () => {
    const root = repository();
    for (const name of ["objects", "refs", "packages/x/.vscode"])
      mkdirSync(join(root, name), { recursive: true });
    writeFileSync(join(root, "HEAD"), "");
    writeFileSync(join(root, ".git/config"), `${"\n".repeat(200_000)}[core]\n\tHooksPath = "my hooks"\n`);
    const { existing, missing } = startingPlaces(root);
    expect(existing).toContain(join(root, "packages/x/.vscode"));
    expect(missing).toContain(join(root, "my hooks"));
  });

  it("are read to a limit, and no pipe is waited for", () => {
    const root = folder();
    execFileSync("mkfifo", [join(root, ".git")]);
    writeFileSync(join(root, "x"), "");
    expect(startingPlaces(root).existing).toEqual([join(root, ".git")]);
  });
});

describe("a command that nobody approved", { tags: "bwrap" }, () => {
  it.each([
    ["a hook", "echo x > .git/hooks/pre-commit"],
    ["a hook by a copy", "cp /bin/true .git/hooks/post-checkout"],
    ["a hook by renaming", "echo x > h; mv h .git/hooks/pre-commit"],
    ["settings of Git", "git config core.fsmonitor 'touch x'"],
    ["settings of Git directly", "printf '[core]\\nfsmonitor=x\\n' >> .git/config"],
    [
      "settings in a new file",
      "mkdir -p c; git config -f .git/config.new a.b c; mv .git/config.new .git/config",
    ],
    ["another place of the settings", "mkdir -p evil; echo ../evil > .git/commondir"],
    ["another repository", "mv .git old; cp -r old .git; echo x > .git/hooks/pre-commit"],
    ["another repository, the first removed", "rm -rf .git; git init -q; echo x > .git/hooks/pre-commit"],
    ["a link to a repository", "git init -q evil; ln -sfn evil/.git .git; ln -s evil/.git/hooks .git/hooks"],
    ["another link to the settings", "ln .git/config c && printf '[core]\\nfsmonitor=x\\n' >> c"],
    ["a folder of hooks by its settings", "git config core.hooksPath h; mkdir -p h; echo x > h/pre-commit"],
    ["tasks of an editor", "mkdir -p .vscode; echo {} > .vscode/tasks.json"],
    ["tasks of an editor by renaming", "mkdir v; echo {} > v/tasks.json; mv v .vscode; mv -T v .vscode"],
    [
      "tasks of an editor by a link",
      "mkdir v; ln -s v .vscode; ln -sfn v .vscode; rmdir .vscode; ln -s v .vscode",
    ],
    ["MCP servers", "echo {} > .mcp.json; rm -rf .mcp.json; echo {} > .mcp.json"],
    [
      "all others",
      "for f in .claude .codex .gemini .cursor .idea .zed .envrc .devcontainer .deepagent .opencode opencode.json; do echo x > $f; mkdir -p $f; echo x > $f/x; done",
    ],
  ])("cannot change %s", async (_name, command) => {
    const sandbox = await open(repository());
    const before = {
      tree: tree(sandbox.root),
      config: readFileSync(join(sandbox.root, ".git/config"), "utf8"),
    };
    const { output } = await sandbox.execute(command);
    expect(readFileSync(join(sandbox.root, ".git/config"), "utf8")).toBe(before.config);
    const made = tree(sandbox.root).filter((path) => !before.tree.includes(path));
    // A command may make further files in the repository, which Git does not look at.
    const names = /^(\.(?!git\b)|opencode|\.git\/(hooks|commondir$|config$|deepagent))/;
    expect(made.filter((path) => names.test(path))).toEqual([]);
    expect(lstatSync(join(sandbox.root, ".git")).isDirectory()).toBe(true);
    if (!command.startsWith("ln "))
      expect(output).toContain("[Some files start programs outside the sandbox:");
  });

  it("cannot change the places of worktrees, submodules and nested projects", async () => {
    const root = repository();
    git(root, "submodule", "add", "-q", repository(), "libs/sub");
    git(root, "worktree", "add", "-q", join(root, "trees/two"));
    mkdirSync(join(root, "packages/x/.vscode"), { recursive: true });
    const before = tree(root);
    const sandbox = await open(root);
    await sandbox.execute(
      [
        "echo x > .git/modules/libs/sub/hooks/pre-commit",
        "echo ../evil > .git/modules/libs/sub/commondir",
        "echo x > libs/sub/.git",
        "rm -f libs/sub/.git; mkdir libs/sub/.git",
        "mv libs libs2; mv .git/modules .git/modules2; mv .git/worktrees .git/w2",
        "echo /evil > .git/worktrees/two/commondir",
        "echo {} > packages/x/.vscode/tasks.json; mv packages p2; rm -rf packages",
      ].join("\n"),
    );
    expect(tree(root)).toEqual(before);
    expect(git(join(root, "trees/two"), "status", "--short")).toBe("");
    expect(git(join(root, "libs/sub"), "status", "--short")).toBe("");
  });

  it("cannot hide a place behind more folders than are looked into", async () => {
    const root = repository();
    mkdirSync(join(root, "z/.vscode"), { recursive: true });
    const sandbox = await open(root);
    await sandbox.execute("for i in $(seq 1200); do mkdir a$i; done");
    await sandbox.execute("echo {} > z/.vscode/tasks.json; mv z y");
    expect(readdirSync(join(root, "z/.vscode"))).toEqual([]);
  });

  it("works with Git as usual, and leaves nothing behind", async () => {
    const sandbox = await open(repository());
    const { output, exitCode } = await sandbox.execute(
      [
        "set -e",
        "git status --short",
        "echo b > b.txt; git add -A; git status --short",
        `${IDENTITY} commit -qm second`,
        "git checkout -q -b side; echo c > c.txt; git add c.txt",
        `${IDENTITY} commit -qm third; git checkout -q main; ${IDENTITY} merge -q side`,
        `echo d >> b.txt; git stash -q; git stash pop -q; git diff --stat | cat; git restore b.txt`,
        `git tag one; git gc -q; git fsck; git log --format=%s; git worktree list | wc -l`,
        "cp -a . /tmp/copy; test ! -f .mcp.json",
      ].join("\n"),
    );
    expect({ exitCode, output }).toMatchObject({
      exitCode: 0,
      output: expect.stringContaining("third\nsecond\nfirst"),
    });
    expect(output).not.toMatch(/\?\?|deepagent|\[Some files/);
    expect(git(sandbox.root, "log", "--format=%s")).toBe("third\nsecond\nfirst\n");
    expect(git(sandbox.root, "status", "--short")).toBe("");
    expect(readdirSync(sandbox.root).sort()).toEqual([".git", "a.txt", "b.txt", "c.txt"]);
    expect(existsSync(join(sandbox.root, ".git/commondir"))).toBe(false);
  });

  it("may change all of it once a person approved it", async () => {
    const sandbox = await open(repository());
    const { output } = await sandbox.execute(
      "git config core.editor x; echo x > .git/hooks/pre-commit; mkdir .vscode; echo {} > .vscode/tasks.json; echo {} > .mcp.json",
      { approved: true },
    );
    expect(output).toBe("");
    expect(readdirSync(sandbox.root).sort()).toEqual([".git", ".mcp.json", ".vscode", "a.txt"]);
  });

  it("stays in its bounds when it outlives its time, and so do those beside it", async () => {
    const sandbox = await open(repository());
    const plant =
      "while :; do (echo {} > .mcp.json; rmdir .mcp.json; mkdir -p .vscode; echo x > .vscode/t) 2>/dev/null; done";
    const loops = [0.3, 0.6, 0.9].map((timeout) => sandbox.execute(`${plant} & ${plant}`, { timeout }));
    await sandbox.jobs.start(plant, {});
    for (let count = 0; count < 20; count += 1) await sandbox.execute("true");
    await Promise.all(loops);
    expect(lstatSync(join(sandbox.root, ".mcp.json")).isDirectory()).toBe(true);
    expect(readdirSync(join(sandbox.root, ".vscode")).every((name) => name.startsWith("deepagent-"))).toBe(
      true,
    );
    await sandbox.close();
    await until(() => readdirSync(sandbox.root).length === 2);
    expect(readdirSync(sandbox.root).sort()).toEqual([".git", "a.txt"]);
  });

  it("is protected from by each of two servers, whichever ends first", async () => {
    const root = repository();
    const [first, second] = [await open(root), await open(root)];
    const planting = first.execute("sleep 1; echo {} > .mcp.json; echo ../evil > .git/commondir");
    await second.execute("true");
    await second.close();
    await planting;
    expect(readdirSync(root).sort()).toEqual([".git", "a.txt"]);
    expect(readdirSync(join(root, ".git"))).not.toContain("commondir");
  });

  it("leaves the folders of a person alone, also empty ones", async () => {
    const root = repository();
    mkdirSync(join(root, ".vscode"));
    mkdirSync(join(root, ".cursor"));
    writeFileSync(join(root, ".cursor/mcp.json"), "{}");
    const sandbox = await open(root);
    const { output } = await sandbox.execute("cat .cursor/mcp.json; rmdir .vscode; rm -r .cursor");
    expect(output).toContain("{}");
    expect(readdirSync(root).sort()).toEqual([".cursor", ".git", ".vscode", "a.txt"]);
    expect(readFileSync(join(root, ".cursor/mcp.json"), "utf8")).toBe("{}");
  });

  it("is not run where a place is a link, until a person approves it", async () => {
    const root = repository();
    mkdirSync(join(root, "shared"));
    symlinkSync("shared", join(root, ".claude"));
    const sandbox = await open(root);
    expect(sandbox.approvalReason()).toMatch(
      /^\.claude can start programs .* A person must approve each command/,
    );
    expect((await sandbox.execute("touch x")).output).toMatch(/^Error: The command was not run: \.claude/);
    expect(await sandbox.execute("touch x", { approved: true })).toMatchObject({ exitCode: 0 });
    expect(readdirSync(root).sort()).toEqual([".claude", ".git", "a.txt", "shared", "x"]);
  });

  it("is the usual one without the option", async () => {
    const sandbox = await open(repository(), { protectsStarters: false });
    expect(sandbox.approvalReason()).toBeUndefined();
    expect((await sandbox.execute("echo x > .git/hooks/pre-commit; echo {} > .mcp.json")).output).toBe("");
  });

  it("keeps hidden files hidden below a protected folder", async () => {
    const root = repository();
    mkdirSync(join(root, ".deepagent/data"), { recursive: true });
    writeFileSync(join(root, ".deepagent/data/key"), "secret");
    writeFileSync(join(root, ".deepagent/notes"), "seen");
    const sandbox = await open(root, { hidden: [join(root, ".deepagent/data")] });
    const { output } = await sandbox.execute(
      "cat .deepagent/notes; cat .deepagent/data/key; echo x > .deepagent/notes",
    );
    expect(output).toMatch(/seen/);
    expect(output).not.toContain("secret");
    expect(readFileSync(join(root, ".deepagent/notes"), "utf8")).toBe("seen");
  });
});

describe("a server that is killed", { tags: "bwrap" }, () => {
  /** Runs code with `hold`, which holds two names in the folder, and kills the process then. */
  async function holdAndDie(root: string, begins: string): Promise<void> {
    const program = join(folder(), "program.mjs");
    const sources = join(import.meta.dirname, "../../../src/backends/sandbox");
    const contents = `import { Placeholders } from "./placeholders.ts";
      import { StarterGuards } from "./starter-guard.ts";
      const root = ${JSON.stringify(root)};
      ${begins};
      setTimeout(() => process.kill(process.pid, "SIGKILL"), 100);`;
    const stdin = { contents, resolveDir: sources };
    buildSync({ stdin, outfile: program, bundle: true, format: "esm", platform: "node", target: "node20" });
    const child = spawn(process.execPath, [program], { stdio: "ignore" });
    await until(() => existsSync(join(root, ".mcp.json")));
    await once(child, "exit");
  }

  it("leaves nothing in the folder", async () => {
    const root = repository();
    await holdAndDie(root, "new StarterGuards(root).begin()");
    await until(() => readdirSync(root).length === 2);
    expect(readdirSync(root).sort()).toEqual([".git", "a.txt"]);
    await until(() => !existsSync(join(root, ".git/commondir")));
  });

  it("and whose watcher is killed, too: the next command removes what it left", async () => {
    const root = repository();
    await holdAndDie(root, 'Placeholders.hold([root + "/.mcp.json"], [root + "/.git"])');
    expect(readdirSync(root).sort()).toEqual([".git", ".mcp.json", "a.txt"]);
    expect(git(root, "status", "--short")).toBe("");
    const sandbox = await open(root);
    await sandbox.execute("true");
    expect(readdirSync(root).sort()).toEqual([".git", "a.txt"]);
    expect(readdirSync(join(root, ".git"))).not.toContain("commondir");
  });
});
