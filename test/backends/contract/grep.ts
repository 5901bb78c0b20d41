import { expect } from "vitest";
import type { GrepOptions } from "../../../src/backends/backend.ts";
import { emptySearch, pathNotFound } from "../../../src/backends/errors.ts";
import type { Bench, Suite } from "./contract.ts";

interface Search {
  path?: string;
  glob?: string | null;
  maxCount?: number | null;
  options?: GrepOptions;
}

async function grep({ backend, at }: Bench, pattern: string, search: Search = {}) {
  return backend.grep(pattern, at(search.path ?? "/"), search.glob, search.maxCount, search.options);
}

/** Matches as `path:line:text`. */
async function linesOf(bench: Bench, pattern: string, search: Search = {}): Promise<string[] | undefined> {
  const result = await grep(bench, pattern, search);
  expect(result.error).toBeUndefined();
  const prefix = bench.at("/").replace(/\/$/, "");
  return result.matches?.map(({ path, line, text }) => {
    expect(path.startsWith(prefix)).toBe(true);
    return `${path.slice(prefix.length)}:${line}:${text}`;
  });
}

export const grepSuite: Suite = {
  subject: "grep",
  cases: {
    "finds lines in path order, counted from 1": async (bench) => {
      await bench.put("/b.txt", "x\nneedle one\n\nneedle two");
      await bench.put("/a/c.txt", "needle three\n");
      await bench.put("/a-b.txt", "needle four\n");
      expect(await linesOf(bench, "needle")).toEqual([
        "/a-b.txt:1:needle four",
        "/a/c.txt:1:needle three",
        "/b.txt:2:needle one",
        "/b.txt:4:needle two",
      ]);
      expect(await grep(bench, "needle")).toMatchObject({ truncated: false, skipped: 0 });
    },
    "a pattern is literal unless it is said to be an expression": async (bench) => {
      await bench.put("/a.txt", "a.c\nabc\n$HOME (x) [y] \\d\n");
      expect(await linesOf(bench, "a.c")).toEqual(["/a.txt:1:a.c"]);
      expect(await linesOf(bench, "$HOME (x) [y] \\d")).toEqual(["/a.txt:3:$HOME (x) [y] \\d"]);
      expect(await linesOf(bench, "a.c", { options: { regex: true } })).toEqual([
        "/a.txt:1:a.c",
        "/a.txt:2:abc",
      ]);
    },
    "expressions see one line at a time, whatever its end": async (bench) => {
      await bench.put("/a.txt", "foo\r\nfoo bar\r\nbar foo");
      expect(await linesOf(bench, "^foo$", { options: { regex: true } })).toEqual(["/a.txt:1:foo"]);
      expect(await linesOf(bench, "foo$", { options: { regex: true } })).toEqual([
        "/a.txt:1:foo",
        "/a.txt:3:bar foo",
      ]);
      expect(await linesOf(bench, "o\\s+b", { options: { regex: true } })).toEqual(["/a.txt:2:foo bar"]);
    },
    "letter case can be ignored": async (bench) => {
      await bench.put("/a.txt", "Straße\nÄPFEL\n");
      const options = { caseSensitive: false };
      expect(await linesOf(bench, "äpfel", { options })).toEqual(["/a.txt:2:ÄPFEL"]);
      expect(await linesOf(bench, "äPF.L", { options: { ...options, regex: true } })).toEqual([
        "/a.txt:2:ÄPFEL",
      ]);
      expect(await linesOf(bench, "äpfel")).toEqual([]);
    },
    "gives the lines around a match": async (bench) => {
      await bench.put("/a.txt", "1\n2\n3 hit\n4\n5 hit\n");
      const { matches } = await grep(bench, "hit", { options: { contextLines: 2 } });
      expect(matches).toMatchObject([
        { line: 3, before: ["1", "2"], after: ["4", "5 hit"] },
        { line: 5, before: ["3 hit", "4"], after: [] },
      ]);
    },
    "stops at the cap with the first matches in path order": async (bench) => {
      for (const name of ["c", "a", "b"]) await bench.put(`/${name}.txt`, "hit\nhit\n");
      expect(await linesOf(bench, "hit", { maxCount: 3 })).toEqual([
        "/a.txt:1:hit",
        "/a.txt:2:hit",
        "/b.txt:1:hit",
      ]);
      expect((await grep(bench, "hit", { maxCount: 3 })).truncated).toBe(true);
      expect((await grep(bench, "hit", { maxCount: 6 })).truncated).toBe(false);
    },
    "a cap per file leaves room for other files": async (bench) => {
      await bench.put("/a.txt", "hit\nhit\n");
      await bench.put("/b.txt", "hit\nhit\n");
      expect(await linesOf(bench, "hit", { options: { maxPerFile: 1 } })).toEqual([
        "/a.txt:1:hit",
        "/b.txt:1:hit",
      ]);
    },
    "a filter without slash is about the name at any depth": async (bench) => {
      await bench.put("/a.ts", "hit");
      await bench.put("/b.md", "hit");
      await bench.put("/src/c.ts", "hit");
      await bench.put("/src/deep/d.ts", "hit");
      expect(await linesOf(bench, "hit", { glob: "*.ts" })).toEqual([
        "/a.ts:1:hit",
        "/src/c.ts:1:hit",
        "/src/deep/d.ts:1:hit",
      ]);
      expect(await linesOf(bench, "hit", { glob: "src/*.ts" })).toEqual(["/src/c.ts:1:hit"]);
      expect(await linesOf(bench, "hit", { glob: "!*.ts" })).toEqual(["/b.md:1:hit"]);
      expect(await linesOf(bench, "hit", { glob: "deep/*", path: "/src" })).toEqual(["/src/deep/d.ts:1:hit"]);
      expect(await linesOf(bench, "hit", { glob: "{a,c}.ts" })).toEqual(["/a.ts:1:hit", "/src/c.ts:1:hit"]);
    },
    "the path of a file searches that file only": async (bench) => {
      await bench.put("/a.txt", "hit");
      await bench.put("/a.txt.bak", "hit");
      await bench.put("/b/a.txt", "hit");
      expect(await linesOf(bench, "hit", { path: "/a.txt" })).toEqual(["/a.txt:1:hit"]);
    },
    "hidden files are searched, binary files are not": async (bench) => {
      await bench.put("/.env", "hit");
      await bench.put("/.git/config", "hit");
      await bench.put("/a.bin", Uint8Array.from([104, 105, 116, 0]));
      await bench.put("/a.png", "hit");
      expect(await linesOf(bench, "hit")).toEqual(["/.env:1:hit", "/.git/config:1:hit"]);
    },
    "a line counts once, a byte order mark not at all": async (bench) => {
      await bench.put("/a.txt", "\ufeffhit hit\n");
      expect(await linesOf(bench, "^hit", { options: { regex: true } })).toEqual(["/a.txt:1:hit hit"]);
      expect(await linesOf(bench, "hit")).toEqual(["/a.txt:1:hit hit"]);
    },
    "of a long line the part around the match is given": async (bench) => {
      await bench.put("/a.txt", `${"x".repeat(50_000)}needle${"y".repeat(50_000)}\n`);
      const [match] = (await grep(bench, "needle")).matches ?? [];
      expect(match?.text).toMatch(/^…x+needley+…$/);
      expect(match?.text.length).toBeLessThan(1100);
    },
    "text in another encoding is searched as far as it can be read": async (bench) => {
      await bench.put("/a.txt", Uint8Array.from([...Buffer.from("hit caf"), 0xe9, 10]));
      expect(await linesOf(bench, "hit")).toEqual(["/a.txt:1:hit caf\ufffd"]);
    },
    "a wrong pattern is an error value": async (bench) => {
      await bench.put("/a.txt", "a");
      expect(await grep(bench, "(", { options: { regex: true } })).toMatchObject({
        code: "invalid_pattern",
        error: expect.stringMatching(/^Invalid regex pattern: /),
      });
      expect(await grep(bench, "")).toEqual(emptySearch());
      expect(await grep(bench, "a\nb")).toMatchObject({ code: "invalid_pattern" });
      expect(await grep(bench, "a", { glob: "[" })).toMatchObject({ code: "invalid_pattern" });
    },
    "a missing path is told": async (bench) => {
      expect(await grep(bench, "a", { path: "/nowhere" })).toEqual(pathNotFound(bench.at("/nowhere")));
    },
    "an aborted search says so": async (bench) => {
      await bench.put("/a.txt", "a");
      const result = await grep(bench, "a", { options: { signal: AbortSignal.abort() } });
      expect(result.code).toBe("aborted");
    },
  },
};
