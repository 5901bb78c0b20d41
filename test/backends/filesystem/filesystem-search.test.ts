import { AsyncLocalStorage } from "node:async_hooks";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import type { GrepOptions, GrepResult } from "../../../src/backends/backend.ts";
import { FilesystemBackend, type FilesystemOptions } from "../../../src/backends/filesystem/filesystem.ts";
import { compileGlob } from "../../../src/backends/glob.ts";
import { findRipgrep } from "../../../src/backends/filesystem/ripgrep.ts";
import { attempts } from "../../support/effort.ts";
import { filesIn } from "../../support/files-in.ts";

let root: string;

beforeEach(() => {
  root = filesIn();
});

const make = (options: FilesystemOptions = {}): FilesystemBackend =>
  new FilesystemBackend({ rootDir: root, virtualMode: true, ...options });

interface Search {
  glob?: string;
  path?: string;
  maxCount?: number;
  options?: GrepOptions;
  maxFileSizeMb?: number;
}

/** The same search with the binary and without it; fails when they differ. */
async function bothWays(pattern: string, search: Search = {}): Promise<GrepResult> {
  const size = search.maxFileSizeMb === undefined ? {} : { maxFileSizeMb: search.maxFileSizeMb };
  const run = (options: FilesystemOptions) =>
    make({ ...size, ...options }).grep(pattern, search.path, search.glob, search.maxCount, search.options);
  const [fast, plain] = [await run({}), await run({ ripgrep: false })];
  expect(fast).toEqual(plain);
  return fast;
}

function plant(files: Record<string, string | Uint8Array>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}

const found = (result: GrepResult): string[] | undefined =>
  result.matches?.map(({ path, line }) => `${path}:${line}`);

describe("searching with and without ripgrep", () => {
  it("has the binary to compare with", async () => {
    expect(await findRipgrep()).toBeDefined();
  });

  it("finds the same in hidden, ignored, linked, binary and odd files", async () => {
    plant({
      ".gitignore": "ignored/\n*.log\nhit",
      ".ignore": "*.txt",
      ".rgignore": "*",
      ".git/config": "hit",
      "ignored/a.txt": "hit",
      "b.log": "hit",
      "late-nul.txt": `hit\n${"x".repeat(200_000)}\0`,
      "utf16.txt": Buffer.from("\ufeffhit\n", "utf16le"),
      "bom.txt": "\ufeffhit",
      "latin1.txt": Uint8Array.from([0xe9, 0x20, 0x68, 0x69, 0x74, 0x0a]),
      "image.png": "hit",
      "crlf.txt": "hit\r\n",
      "cr.txt": "a\rhit\rb",
      "new\nline.txt": "hit",
      "-e.txt": "hit",
      "empty.txt": "",
      "node_modules/x/index.js": "hit",
    });
    symlinkSync("b.log", join(root, "link.txt"));
    symlinkSync("ignored", join(root, "linked"));
    symlinkSync(".", join(root, "loop"));
    expect(found(await bothWays("hit"))).toEqual([
      "/-e.txt:1",
      "/.gitignore:3",
      "/bom.txt:1",
      "/cr.txt:1",
      "/crlf.txt:1",
      "/latin1.txt:1",
      "/new\nline.txt:1",
      "/node_modules/x/index.js:1",
      "/utf16.txt:1",
      "/.git/config:1",
      "/b.log:1",
      "/ignored/a.txt:1",
    ]);
    await bothWays("^hit$", { options: { regex: true } });
    await bothWays("HIT", { options: { caseSensitive: false } });
    await bothWays("hit", { glob: "*.txt" });
    await bothWays("hit", { path: "/ignored" });
    await bothWays("hit", { path: "/linked" });
  });

  it("counts files over the size limit, as far as the filter asks for them", async () => {
    const big = "hit ".repeat(400_000);
    plant({ "a.txt": "hit", "big one.txt": big, "big.md": big, "big.png": big });
    expect(await bothWays("hit", { maxFileSizeMb: 1 })).toMatchObject({ skipped: 2, truncated: false });
    expect(await bothWays("hit", { maxFileSizeMb: 1, glob: "*.txt" })).toMatchObject({ skipped: 1 });
    expect(await bothWays("nothing", { maxFileSizeMb: 1, glob: "*.ts" })).toMatchObject({ skipped: 0 });
  });

  it("tells of a large file that a filter asks for when it may match", async () => {
    plant({ "big.txt": "other ".repeat(400_000), "a.txt": "hit" });
    const large = make({ maxFileSizeMb: 1 });
    expect(await large.grep("other", "/", "*.txt")).toMatchObject({ matches: [], skipped: 1 });
    expect(await large.grep("hit", "/", "*.txt")).toMatchObject({
      matches: [{ path: "/a.txt" }],
      skipped: 0,
    });
  });

  it("finds the same for any filter", async () => {
    const folders = ["", "a/", "a/b/", "é/", "x.ts/", ".h/", "c d/", "[d]/", "!d/"];
    const names = ["a.ts", "é.ts", "éa", "-a", "a b", "a{b}", "b.tsx", ".ts", "!a", "#a", "a ", "𝒳", "[ab]"];
    plant(Object.fromEntries(folders.flatMap((folder) => names.map((name) => [folder + name, "hit"]))));
    const token = fc.constantFrom(
      ..."a b é . ts * ? ** / / [ab] [!a] [a-c] [é] [,-.] {a,b} {ts,*} \\* \\[ \\{ ! #".split(" "),
      " ",
    );
    const glob = fc
      .array(token, { minLength: 1, maxLength: 6 })
      .map((tokens) => tokens.join(""))
      .filter((text) => compileGlob(text, { nameAtAnyDepth: true }).ok);
    await fc.assert(
      fc.asyncProperty(glob, async (filter) => {
        await bothWays("hit", { glob: filter });
      }),
      attempts(200),
    );
  });

  it("caps alike, also when nearly every file matches", async () => {
    for (let index = 0; index < 1300; index += 1) plant({ [`d${index % 7}/f${index}.txt`]: "hit\n" });
    const few = await bothWays("hit", { maxCount: 5 });
    expect(found(few)).toEqual([
      "/d0/f0.txt:1",
      "/d0/f1001.txt:1",
      "/d0/f1008.txt:1",
      "/d0/f1015.txt:1",
      "/d0/f1022.txt:1",
    ]);
    expect(few.truncated).toBe(true);
    expect(await bothWays("hit", { maxCount: 1300 })).toMatchObject({ truncated: false });
  });

  it("finds every line of many files, whether their matches begin early or late", async () => {
    const names = Array.from({ length: 300 }, (_, index) => `file-${String(index).padStart(3, "0")}.ts`);
    for (const beginsAt of [0, 40, 250]) {
      plant(
        Object.fromEntries(
          names.map((name, index) => {
            // Of different sizes, also above those that are read in one piece.
            const filler = `${"x".repeat(index * 331)}\n`;
            return [name, index < beginsAt ? filler : `hit ${index}\n${filler}hit again\n`];
          }),
        ),
      );
      const expected = names.slice(beginsAt).flatMap((name) => [`/${name}:1`, `/${name}:3`]);
      expect(found(await bothWays("hit", { maxCount: 10_000 }))).toEqual(expected);
    }
  });

  it("searches that run at the same time read their own files", async () => {
    const words = ["alpha", "beta", "gamma", "delta"];
    for (let index = 0; index < 200; index += 1)
      plant(
        Object.fromEntries(words.map((word) => [`${word}/${index}.txt`, `${word} ${index}\n`.repeat(3)])),
      );
    const results = await Promise.all(
      words.map((word) => make().grep("[a-z]+ \\d+", `/${word}`, null, 10_000, { regex: true })),
    );
    for (const [index, { matches }] of results.entries())
      expect(new Set(matches?.map(({ text }) => text.split(" ")[0]))).toEqual(new Set([words[index]]));
  });

  it("finds the same for any expression", async () => {
    plant({
      "a.txt":
        "foo bar\nFoo-Bar_9 [x] {y} (z)\n\ttab  two\nürgröße ſ K\nx&&y~z^-a\\b$\n\n.*+?|\n<b> 'q' \"r\"\r\nfoo\r\n",
      "b.txt": "0123\nabc\nab\nc\u2028d\n٣ é\n_word_\n",
    });
    const atom = fc.constantFrom(
      ..."a b f o x 0 _ é . \\d \\D \\w \\W \\s \\S \\b \\B ^ $ \\A \\z \\. \\$ \\\\ \\[ \\< \\> \\- \\& \\~ \\' \\t \\x41 \\x{e9} \\141 \\pL \\PL \\p{Lu} \\p{^Lu} \\p{Greek} \\QA.b\\E \\Q[\\E [a-f] [^a-f] [\\w-] [\\d_] [^\\s] [^\\W] [[] []a] [a&&b] [a~~b] [x--y] [[:alpha:]] [^[:digit:]] [-a] [a-] [\\]] (?i) (?m) (?s) (?U) (?i:foo) (?P<n>o) (?<m>b)".split(
        " ",
      ),
    );
    const repeat = fc.constantFrom("", "", "", "*", "+", "?", "{2}", "{1,2}", "*?");
    const piece = fc.tuple(atom, repeat).map(([text, count]) => text + count);
    const sequence = fc.array(piece, { minLength: 1, maxLength: 4 }).map((parts) => parts.join(""));
    const expression = fc.oneof(
      sequence,
      fc.tuple(sequence, sequence).map(([left, right]) => `(${left}|${right})`),
    );
    await fc.assert(
      fc.asyncProperty(expression, fc.boolean(), async (pattern, caseSensitive) => {
        await bothWays(pattern, { options: { regex: true, caseSensitive } });
      }),
      attempts(250),
    );
  });

  it("finds the same for any text", async () => {
    plant({ "a.txt": "a-b $x (y) [z] \\d .* é\tß\n--flag\nſK\n", "b.txt": "-e\n{}\n" });
    const text = fc.string({
      unit: fc.constantFrom(...Array.from("ab-$x()[]\\d.* éß{}kK")),
      minLength: 1,
      maxLength: 4,
    });
    await fc.assert(
      fc.asyncProperty(text, fc.boolean(), async (pattern, caseSensitive) => {
        await bothWays(pattern, { options: { caseSensitive } });
      }),
      attempts(60),
    );
  });

  it("searches without a binary that is not there or does not work", async () => {
    plant({ "a.txt": "hit", "b.txt": "hit" });
    const crashing = join(root, "rg");
    writeFileSync(
      crashing,
      `#!/bin/sh\nprintf './a.txt\\0'\necho 'rg: ./c: denied (os error 13)' >&2\nkill -ABRT $$\n`,
    );
    chmodSync(crashing, 0o755);
    for (const ripgrep of ["/nowhere/rg", process.execPath, crashing]) {
      const result = await make({ ripgrep }).grep("hit", "/", "*.txt");
      expect(found(result), ripgrep).toEqual(["/a.txt:1", "/b.txt:1"]);
      expect(result.skipped).toBe(0);
    }
  });

  it("ends with the signal", async () => {
    plant({ "a.txt": "hit" });
    const controller = new AbortController();
    const searches = [make(), make({ ripgrep: false })].map((backend) =>
      backend.grep("hit", "/", null, null, { signal: controller.signal }),
    );
    controller.abort();
    for (const result of await Promise.all(searches)) expect(result.code).toBe("aborted");
  });

  it("is not led astray by the environment", async () => {
    plant({ "a.txt": "hit", config: "--invert-match\n" });
    process.env["RIPGREP_CONFIG_PATH"] = join(root, "config");
    try {
      expect(found(await make().grep("hit"))).toEqual(["/a.txt:1"]);
    } finally {
      delete process.env["RIPGREP_CONFIG_PATH"];
    }
  });
});

/** A process that may read everything is given another user for the time of a test. */
async function asNobody(run: () => Promise<void>): Promise<void> {
  const isRoot = process.getuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  try {
    await run();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

describe.skipIf(process.platform === "win32")("what may not be read", () => {
  it("is counted, not passed over in silence", async () => {
    plant({ "open.txt": "hit", "closed.txt": "hit", "closed/a.txt": "hit", "closed.md": "hit" });
    chmodSync(root, 0o755);
    for (const path of ["closed.txt", "closed", "closed.md"]) chmodSync(join(root, path), 0);
    await asNobody(async () => {
      const all = await bothWays("hit");
      expect(found(all)).toEqual(["/open.txt:1"]);
      expect(all.skipped).toBe(3);
      expect((await bothWays("hit", { glob: "*.txt" })).skipped).toBe(2);
      expect((await bothWays("hit", { glob: "other/*.txt" })).skipped).toBe(0);
      expect(await make().glob("**")).toMatchObject({ skipped: 1, files: { length: 3 } });
      expect(await make().read("/closed.txt")).toEqual({
        code: "permission_denied",
        error: "Permission denied: /closed.txt",
      });
      expect((await make().ls("/closed")).code).toBe("permission_denied");
      expect((await make().write("/closed/b.txt", "x")).code).toBe("permission_denied");
    });
    chmodSync(join(root, "closed"), 0o755);
  });

  it("is counted in a listing", async () => {
    plant({ "dir/a.txt": "x", "dir/b.txt": "x" });
    chmodSync(root, 0o755);
    chmodSync(join(root, "dir"), 0o744);
    await asNobody(async () => {
      expect(await make().ls("/dir")).toMatchObject({ files: [], skipped: 2 });
    });
  });
});

it("keeps nothing of the run that searched first", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void; // what the flag adds
  const context = new AsyncLocalStorage<object>();
  // What is loaded once for the process may keep the first of all.
  await make().grep("x");
  const backend = make();
  const searched = async (): Promise<WeakRef<object>> => {
    const run = { graph: "large" };
    await context.run(run, () => backend.grep("x"));
    return new WeakRef(run);
  };
  const held = await searched();
  for (let turn = 0; turn < 5 && held.deref() !== undefined; turn += 1) {
    await nextTurn();
    collect();
  }
  expect(held.deref()).toBeUndefined();
  expect(await backend.grep("x")).toMatchObject({ matches: [] });
});
