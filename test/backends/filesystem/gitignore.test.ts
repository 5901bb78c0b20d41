import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { FilesystemBackend, type FilesystemOptions } from "../../../src/backends/filesystem/filesystem.ts";
import { attempts } from "../../support/effort.ts";
import { filesIn } from "../../support/files-in.ts";

let root: string;

beforeEach(() => {
  root = filesIn();
});

const make = (options: FilesystemOptions = {}): FilesystemBackend =>
  new FilesystemBackend({ rootDir: root, virtualMode: true, respectGitignore: true, ...options });

function plant(files: Record<string, string>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}

/** What glob gives, after both ways to grep have given the same. */
async function searched(path = "/", glob: string | null = null): Promise<string[]> {
  const paths = (await make().glob(glob === null ? "**" : `**/${glob}`, path)).files?.map(
    (file) => file.path,
  );
  for (const options of [{}, { ripgrep: false as const }]) {
    const { matches = [], skipped } = await make(options).grep("hit", path, glob);
    expect(matches.map((match) => match.path)).toEqual(paths);
    expect(skipped).toBe(0);
  }
  return paths ?? [];
}

const NESTED = {
  ".git/config": "hit",
  "src/.git": "hit",
  ".gitignore": "# hit\nnode_modules/\n*.log\n!keep.log\n/build\ndocs/*.txt\n",
  "a.log": "hit",
  "keep.log": "hit",
  "build/a.txt": "hit",
  "src/build/a.txt": "hit",
  "src/node_modules/b/index.js": "hit",
  "src/.gitignore": "hit\n!*.log\nkeep.log\n/only-here\n",
  "src/b.log": "hit",
  "src/keep.log": "hit",
  "src/only-here": "hit",
  "src/deep/only-here": "hit",
  "docs/a.txt": "hit",
  "docs/deep/a.txt": "hit",
  "node_modules/a/.gitignore": "!*",
  "node_modules/a/index.js": "hit",
};

describe("respectGitignore", () => {
  it("passes over what nested .gitignore files say, in glob and grep", async () => {
    plant(NESTED);
    writeFileSync(join(root, "build/large.txt"), "x".repeat(11 * 1024 * 1024));
    expect(await searched()).toEqual([
      "/.gitignore",
      "/docs/deep/a.txt",
      "/keep.log",
      "/src/.gitignore",
      "/src/b.log",
      "/src/build/a.txt",
      "/src/deep/only-here",
    ]);
    expect(await searched("/", "*.log")).toEqual(["/keep.log", "/src/b.log"]);
    expect(await searched("/src", "*.txt")).toEqual(["/src/build/a.txt"]);
    // Those above the directory searched count too, as far as they are in the root.
    expect(await searched("/docs", "*.txt")).toEqual(["/docs/deep/a.txt"]);
  });

  it.runIf(process.platform !== "win32")("waits for nothing that is only named .gitignore", async () => {
    plant({
      "a.txt": "hit",
      "pipe/b.txt": "hit",
      "folder/c.txt": "hit",
      "large/d.txt": "hit",
      "device/e.txt": "hit",
    });
    for (const folder of [".", "pipe"]) execFileSync("mkfifo", [join(root, folder, ".gitignore")]);
    mkdirSync(join(root, "folder/.gitignore"));
    writeFileSync(join(root, "large/.gitignore"), "*\n".repeat(1024 * 1024));
    symlinkSync("/dev/zero", join(root, "device/.gitignore"));
    expect(await searched("/", "*.txt")).toEqual([
      "/a.txt",
      "/device/e.txt",
      "/folder/c.txt",
      "/large/d.txt",
      "/pipe/b.txt",
    ]);
    expect(await make().grep("hit", "/", "*.txt")).toMatchObject({ truncated: false });
  });

  it("searches a directory that is named", async () => {
    plant(NESTED);
    expect(await searched("/build")).toEqual(["/build/a.txt"]);
    expect(await searched("/src/node_modules")).toEqual(["/src/node_modules/b/index.js"]);
    expect((await make().grep("hit", "/a.log")).matches).toHaveLength(1);
  });

  it("leaves listing, reading and changing as they are", async () => {
    plant(NESTED);
    const backend = make();
    expect((await backend.ls("/")).files?.map(({ path }) => path)).toContain("/node_modules/");
    expect((await backend.read("/a.log")).content).toBe("hit");
    expect((await backend.edit("/a.log", "hit", "miss")).error).toBeUndefined();
    expect((await make({ respectGitignore: false }).glob("**")).files).toHaveLength(
      Object.keys(NESTED).length,
    );
  });

  it("reads no rules through a link, nor above the root", async () => {
    plant({ "top/.gitignore": "*", "top/in/a.txt": "hit", rules: "*" });
    symlinkSync("../../rules", join(root, "top/in/.gitignore"));
    const inner = new FilesystemBackend({
      rootDir: join(root, "top/in"),
      virtualMode: true,
      respectGitignore: true,
    });
    expect((await inner.glob("**")).files).toEqual([{ path: "/a.txt", is_dir: false }]);
    const real = make({ virtualMode: false, containment: "none", rootDir: join(root, "top") });
    expect((await real.glob("**")).files).toEqual([]);
    expect((await real.glob("rules", root)).files).toHaveLength(1);
  });

  it("leaves out what git leaves out", async () => {
    const git = (...args: string[]): string =>
      execFileSync("git", ["-c", "core.excludesFile=", "-c", "core.quotePath=false", ...args], {
        cwd: root,
        encoding: "utf8",
      });
    git("init", "-q");
    const folders = ["", "a/", "a/b/", "a/b/c/", "b/", "a b/"];
    const names = ["a.ts", "b", "b.log", "c d", "{x}", "[c]", "!n", "#h", "ééé", "x~", "e "];
    const files = folders.flatMap((folder) => names.map((name) => folder + name));
    // `b` and `a/b` are folders.
    plant(
      Object.fromEntries(files.filter((path) => !["b", "a/b"].includes(path)).map((path) => [path, "hit"])),
    );
    const part = fc.constantFrom(
      ..."a b c * ** *.ts *.log ? ?? [ab] [!a] [^b]* [[:alpha:]] {x} {a,b} \\[c\\] \\#h ééé *~ b* [a-c]*".split(
        " ",
      ),
      "a b",
      "c d",
      "e\\ ",
    );
    const line = fc
      .tuple(
        fc.constantFrom("", "", "!", "#", "\\!"),
        fc.constantFrom("", "", "/", "**/"),
        fc.array(part, { minLength: 1, maxLength: 3 }),
        fc.constantFrom("", "", "/", "/**", "  ", "\r"),
      )
      .map(([start, anchor, parts, end]) => start + anchor + parts.join("/") + end);
    const text = fc.array(line, { maxLength: 4 }).map((lines) => lines.join("\n"));
    await fc.assert(
      fc.asyncProperty(text, text, text, async (top, a, b) => {
        plant({ ".gitignore": `hit\n${top}`, "a/.gitignore": `hit\n${a}`, "a/b/.gitignore": `hit\n${b}` });
        const expected = git("ls-files", "--others", "--exclude-standard", "-z").split("\0").filter(Boolean);
        expect((await make().glob("**")).files?.map(({ path }) => path.slice(1))).toEqual(expected.sort());
      }),
      attempts(60),
    );
  });
});

describe("without respectGitignore", () => {
  const all = async (options: FilesystemOptions = {}) => make({ respectGitignore: false, ...options });
  const paths = (found: { path: string }[] | undefined) => found?.map(({ path }) => path);

  it("what git ignores comes last, whatever its path, and fills no cap", async () => {
    plant({
      ".gitignore": "a_modules\n",
      "zoo/.gitignore": "*.gen.ts\n",
      "zoo/a.gen.ts": "hit",
      "zoo/b.ts": "hit",
    });
    for (let index = 0; index < 30; index += 1) plant({ [`a_modules/x/${index}.ts`]: "hit" });
    for (const ripgrep of [undefined, false as const]) {
      const backend = await all(ripgrep === undefined ? {} : { ripgrep });
      const { matches, truncated } = await backend.grep("hit", "/", "*.ts", 3);
      expect(paths(matches)).toEqual(["/zoo/b.ts", "/a_modules/x/0.ts", "/a_modules/x/1.ts"]);
      expect(truncated).toBe(true);
      expect(matches?.map(({ ignored = false }) => ignored)).toEqual([false, true, true]);
      expect(paths((await backend.grep("hit", "/", "*.ts")).matches)).toHaveLength(32);
    }
    const { files } = await (await all()).glob("**/*.ts");
    expect(files).toHaveLength(32);
    expect([files?.[0]?.path, files?.at(-1)?.path]).toEqual(["/zoo/b.ts", "/zoo/a.gen.ts"]);
    const tree = new CompositeBackend(await all(), { "/a/": await all(), "/z/": await all() });
    expect(paths((await tree.glob("*/zoo/*.ts")).files)).toEqual([
      "/a/zoo/b.ts",
      "/z/zoo/b.ts",
      "/a/zoo/a.gen.ts",
      "/z/zoo/a.gen.ts",
    ]);
    expect(paths((await tree.grep("hit", "/", "*.ts", 2)).matches)).toEqual(["/a/zoo/b.ts", "/z/zoo/b.ts"]);
    // The directory that is asked for is not ignored.
    expect((await (await all()).glob("**", "/a_modules")).files?.[0]?.ignored).toBeUndefined();
  });

  it("the excludes of a repository and of the user count, behind .gitignore", async () => {
    plant({
      ".git/info/exclude": "a.txt\nb.txt\n",
      ".gitignore": "!b.txt\n",
      "a.txt": "hit",
      "b.txt": "hit",
      "c.txt": "hit",
      "d.txt": "hit",
      "home/config/git/ignore": "c.txt\n",
      "home/.gitconfig": '[user]\n\tname = x\n[core]\n\tpager = less\n\texcludesFile = "~/my ignores"\n',
      "home/my ignores": "d.txt\n",
    });
    const home = join(root, "home");
    vi.stubEnv("HOME", home);
    vi.stubEnv("XDG_CONFIG_HOME", join(home, "config"));
    onTestFinished(() => void vi.unstubAllEnvs());
    const wanted = ["/b.txt", "/c.txt"];
    expect(paths((await make().glob("*.txt")).files)).toEqual(wanted);
    expect(paths((await (await all()).grep("hit", "/", "?.txt")).matches)).toEqual([
      ...wanted,
      "/a.txt",
      "/d.txt",
    ]);
    rmSync(join(home, ".gitconfig"));
    expect(paths((await make().glob("*.txt")).files)).toEqual(["/b.txt", "/d.txt"]);
  });
});
