import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import table from "../../../src/backends/sandbox/command-environment.json" with { type: "json" };
import { commandNotes } from "../../../src/backends/sandbox/command-notes.ts";
import { commandEnvironment, unattended } from "../../../src/backends/sandbox/environment.ts";
import { folder } from "./support.ts";

/** Runs lines of Bash that stop at the first failure, as a command of the agent does. */
function run(cwd: string, script: string, isolated = false): string {
  const identity = ["AUTHOR", "COMMITTER"].flatMap((role) => [
    [`GIT_${role}_NAME`, "A"],
    [`GIT_${role}_EMAIL`, "a@example"],
  ]);
  // The editor of a person, which would wait.
  const base = { PATH: process.env["PATH"] ?? "", HOME: cwd, GIT_EDITOR: "cat", GIT_SEQUENCE_EDITOR: "cat" };
  const env = unattended(base, Object.fromEntries(identity), isolated);
  const { stdout, stderr, status } = spawnSync("bash", ["-ec", script], { cwd, env, encoding: "utf8" });
  if (status !== 0) throw new Error(`${stdout}${stderr}`);
  return stdout + stderr;
}

const REPOSITORY =
  "git init -q -b main; git config core.editor 'sleep 1000; false'; git config sequence.editor 'sleep 1000; false'; echo x > a.txt; git add -A; git commit -qm one; echo y >> a.txt; git commit -qam two;";

describe("the environment of commands", () => {
  it("is a table of names, each once and with its source", () => {
    for (const rows of [table.variables, table.git]) {
      const names = rows.map(({ name }) => name.toLowerCase());
      expect(new Set(names).size).toBe(names.length);
      for (const { source } of rows) expect(source).toMatch(/^https:\/\//);
    }
  });

  it("has every row, replaces what the server has, and is replaced by the owner", () => {
    const env = unattended({ PAGER: "less", GIT_SEQUENCE_EDITOR: "vi", OTHER: "kept" }, { LESS: "-N" }, true);
    for (const { name, value } of table.variables)
      expect(env[name], name).toBe(name === "LESS" ? "-N" : (value ?? undefined));
    expect(env).toMatchObject({ OTHER: "kept", GIT_CONFIG_COUNT: String(table.git.length) });
    const connected = unattended({}, {}, false);
    expect(connected).not.toHaveProperty("npm_config_fetch_retries");
    expect(Object.values(connected)).not.toContain("commit.gpgSign");
  });

  it("adds settings of Git to those of the owner, who has the last word", () => {
    const own = { GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "core.quotePath", GIT_CONFIG_VALUE_0: "true" };
    const env = unattended({ PATH: process.env["PATH"] ?? "" }, own, false);
    const asked = spawnSync("git", ["config", "--get", "core.quotePath"], { env, encoding: "utf8" });
    expect(asked.stdout).toBe("true\n");
    expect(commandEnvironment({ env: { EDITOR: "ed" } })).toMatchObject({ EDITOR: "ed", GIT_PAGER: "cat" });
  });

  it("lets no command of Git wait for an editor", () => {
    const commands =
      "git commit --amend; git rebase -i HEAD~1; git branch side HEAD~1; git checkout -q side; git commit -q --allow-empty -m three; git merge --no-ff main; git revert --no-commit HEAD~1; git revert --abort; git tag -a v1 -m v1; git config --edit";
    expect(run(folder(), REPOSITORY + commands)).not.toMatch(/fatal|error/i);
  });

  it("leaves the editors that a command names itself", () => {
    const commands =
      "git -c sequence.editor=\"sed -i -e '1s/pick/reword/'\" rebase -i HEAD~1 >/dev/null 2>&1; GIT_EDITOR=\"sed -i -e 's/two/zwei/'\" git commit -q --amend; git log -1 --format=%s";
    expect(run(folder(), REPOSITORY + commands)).toBe("zwei\n");
  });

  it("shows file names as they are", () => {
    expect(run(folder(), "git init -q; echo > '한글 é.txt'; git add -A; git status --short")).toContain(
      "한글 é.txt",
    );
  });
});

describe("Git LFS without git-lfs", () => {
  const ATTRIBUTES =
    "git init -q -b main; echo '*.bin filter=lfs diff=lfs merge=lfs -text' > .gitattributes;";

  it("commits pointers, keeps the contents and puts them back", () => {
    const made = run(
      folder(),
      `${ATTRIBUTES} printf 'some content' > a.bin; : > empty.bin; git add -A; git commit -qm one; git show HEAD:a.bin; git status --short; rm a.bin; git checkout -q a.bin; cat a.bin; wc -c < empty.bin`,
      true,
    );
    expect(made).toBe(
      "version https://git-lfs.github.com/spec/v1\noid sha256:290f493c44f5d63d06b374d0a5abd292fae38b92cab2fae5efefe1b0e9347f56\nsize 12\nsome content0\n",
    );
  });

  it("leaves what is not on this machine a pointer, and names git-lfs", () => {
    const made = run(
      folder(),
      `${ATTRIBUTES} printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%064d\\nsize 9\\n' 1 > 'a b.bin'; git add -A; git commit -qm one; rm *.bin; git checkout -q .; git status --short; head -c 7 *.bin`,
      true,
    );
    expect(made).toMatch(/^version.*Git LFS: the content of a b\.bin .*git-lfs/s);
  });
});

describe("notes below the output", () => {
  const facts = { command: "npm install", isGuarded: false, signs: false };

  it.each([
    "npm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org",
    "fatal: unable to access 'https://example.com/': Could not resolve host: example.com",
    "WARNING: Retrying after connection broken by: [Errno -3] Temporary failure in name resolution",
    "Could not resolve 'deb.debian.org'\nTemporary failure resolving 'deb.debian.org'",
    "error: failed to lookup address information: Temporary failure in name resolution",
    "go: dial tcp: lookup proxy.golang.org on [::1]:53: read: connection refused",
  ])("say that there is no network: %s", (output) => {
    expect(commandNotes(output, facts)).toMatch(/no network/);
  });

  it("say whether commits are signed, only where a person signs", () => {
    const signs = { ...facts, signs: true };
    for (const command of ["git commit -m x", "cd a && git -C b merge c", "git -c a=b rebase --continue"])
      expect(commandNotes("", { ...signs, command })).toMatch(/not signed/);
    for (const command of ["git status", "echo commit", "git log | grep commit"])
      expect(commandNotes("", { ...signs, command })).toBeUndefined();
    expect(commandNotes("", { ...facts, command: "git commit -m x" })).toBeUndefined();
  });
});
