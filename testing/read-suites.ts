import type { GrepOptions } from "../src/backends/backend.ts";
import { errors } from "../src/backends/errors.ts";
import {
  type Bench,
  KOREAN,
  KOREAN_BYTES,
  MIXED_BYTES,
  type Suite,
  inUtf16,
  listedPaths,
  pageText,
} from "./suite.ts";

const TREE = ["/.env", "/a.md", "/b.ts", "/src/.hidden/x.ts", "/src/a-b.ts", "/src/a/c.ts", "/src/d.md"];

async function plant({ put }: Bench): Promise<void> {
  for (const path of TREE) await put(path, path);
}

async function expectFound(bench: Bench, pattern: string, path: string, expected: string[]): Promise<void> {
  const result = await bench.backend.glob(pattern, bench.at(path));
  bench.expect(listedPaths(result), pattern).toEqual(expected.map((found) => bench.at(found)));
}

interface Search extends GrepOptions {
  path?: string;
  glob?: string;
  maxCount?: number;
}

async function grep({ backend, at }: Bench, pattern: string, search: Search = {}) {
  const { path = "/", glob, maxCount, ...options } = search;
  return backend.grep(pattern, at(path), glob, maxCount, options);
}

/** Expects matches as `path:line:text`. */
async function expectLines(bench: Bench, pattern: string, expected: string[], search: Search = {}) {
  const result = await grep(bench, pattern, search);
  bench.expect(result.error).toBeUndefined();
  const lines = result.matches?.map(({ path, line, text }) => `${path}:${line}:${text}`);
  bench.expect(lines).toEqual(expected.map((line) => bench.at(line)));
}

export const READ_SUITES: readonly Suite[] = [
  {
    subject: "ls",
    cases: {
      "an empty root has no entries": async ({ backend, at, expect }) => {
        const result = await backend.ls(at("/"));
        expect(result.error).toBeUndefined();
        expect(result.files).toEqual([]);
      },
      "entries are sorted by path, directories end in a slash": async ({ backend, at, put, expect }) => {
        await put("/b.txt", "b");
        await put("/a/one.txt", "1");
        await put("/a/deep/two.txt", "2");
        await put("/a-b.txt", "-");
        const result = await backend.ls(at("/"));
        expect(listedPaths(result)).toEqual([at("/a-b.txt"), at("/a/"), at("/b.txt")]);
        expect(result.files?.map((file) => file.is_dir === true)).toEqual([false, true, false]);
        expect(listedPaths(await backend.ls(at("/a")))).toEqual([at("/a/deep/"), at("/a/one.txt")]);
      },
      "a trailing slash makes no difference": async ({ backend, at, put, expect }) => {
        await put("/a/one.txt", "1");
        expect(await backend.ls(`${at("/a")}/`)).toEqual(await backend.ls(at("/a")));
      },
      "a file has its size in bytes and the time of its change": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "äöü\n");
        const [file] = (await backend.ls(at("/"))).files ?? [];
        expect(file).toMatchObject({ path: at("/a.txt"), size: 7 });
        expect(new Date(file?.modified_at ?? "").toISOString()).toBe(file?.modified_at);
      },
      "the path of a file lists that file": async ({ backend, at, put, expect }) => {
        await put("/a/one.txt", "one");
        await put("/a/one.txt.bak", "two");
        expect((await backend.ls(at("/a/one.txt"))).files).toMatchObject([
          { path: at("/a/one.txt"), size: 3 },
        ]);
      },
      "a missing directory is told": async ({ backend, at, put, expect }) => {
        await put("/ab/x.txt", "x");
        expect(await backend.ls(at("/a"))).toEqual(errors.directoryNotFound(at("/a")));
      },
    },
  },
  {
    subject: "read",
    cases: {
      "gives the text as it is, and where it is": async ({ backend, at, put, expect }) => {
        await put("/a.md", "one\ntwo\nthree");
        expect(await backend.read(at("/a.md"))).toMatchObject({
          content: "one\ntwo\nthree",
          mimeType: "text/markdown",
          startLine: 0,
          endLine: 3,
          totalLines: 3,
        });
        expect((await backend.read(at("/a.md"))).nextOffset).toBeUndefined();
      },
      "a page ends where the next one starts": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "0\n1\n2\n3\n4\n");
        const page = await backend.read(at("/a.txt"), 1, 2);
        expect(page).toMatchObject({ content: "1\n2\n", startLine: 1, endLine: 3, nextOffset: 3 });
        const last = await backend.read(at("/a.txt"), 3, 2);
        expect(last).toMatchObject({ content: "3\n4\n", endLine: 5, totalLines: 5 });
        expect(last.nextOffset).toBeUndefined();
      },
      "pages put together are the file": async ({ backend, at, put, expect }) => {
        const content = "a\r\n\n\nb\nc\r\n  \nlast";
        await put("/a.txt", content);
        let together = "";
        let offset: number | undefined = 0;
        while (offset !== undefined) {
          const page: Awaited<ReturnType<typeof backend.read>> = await backend.read(at("/a.txt"), offset, 2);
          together += pageText(page);
          offset = page.nextOffset;
        }
        expect(together).toBe(content);
      },
      "a byte order mark is not part of the text": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "\ufeffone\n");
        expect(pageText(await backend.read(at("/a.txt")))).toBe("one\n");
      },
      "an empty file is not a missing one": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "");
        expect(await backend.read(at("/a.txt"))).toMatchObject({ content: "", totalLines: 0 });
      },
      "a file of blanks is shown as it is": async ({ backend, at, put, expect }) => {
        await put("/a.txt", " \n\n");
        expect(await backend.read(at("/a.txt"))).toMatchObject({ content: " \n\n", totalLines: 2 });
      },
      "an offset past the end names the number of lines": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "0\n1\n");
        expect(await backend.read(at("/a.txt"), 2)).toEqual(errors.offsetPastEnd(2, 2));
        expect(await backend.read(at("/a.txt"), 99, 5)).toEqual(errors.offsetPastEnd(99, 2));
      },
      "a negative offset is the beginning": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "0\n1\n");
        expect(await backend.read(at("/a.txt"), -5, 1)).toMatchObject({ content: "0\n", startLine: 0 });
      },
      "a missing file and a directory are told apart": async ({ backend, at, put, expect }) => {
        await put("/a/b.txt", "b");
        expect(await backend.read(at("/a/c.txt"))).toEqual(errors.fileNotFound(at("/a/c.txt")));
        expect(await backend.read(at("/a"))).toEqual(errors.isDirectory(at("/a")));
      },
      "nothing lies below a file": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "a");
        expect(await backend.read(at("/a.txt/b"))).toEqual(errors.fileNotFound(at("/a.txt/b")));
      },
      "a binary file is given as bytes, by its type": async ({ backend, at, put, expect }) => {
        const bytes = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0, 255]);
        await put("/a.png", bytes);
        expect(await backend.read(at("/a.png"))).toMatchObject({ content: bytes, mimeType: "image/png" });
      },
      "a binary file is given as bytes, by its content": async ({ backend, at, put, expect }) => {
        const bytes = Uint8Array.from([97, 10, 0, 98]);
        await put("/a.txt", bytes);
        expect(await backend.read(at("/a.txt"))).toMatchObject({
          content: bytes,
          mimeType: "application/octet-stream",
        });
      },
      "UTF-16 with a byte order mark is text": async ({ backend, at, put, expect }) => {
        for (const [name, bytes] of inUtf16("one\r\nzwei ä 😀\r\n")) {
          await put(name, bytes);
          expect(await backend.read(at(name))).toMatchObject({
            content: "one\r\nzwei ä 😀\r\n",
            mimeType: "text/plain",
            totalLines: 2,
          });
          expect(pageText(await backend.read(at(name), 1, 1))).toBe("zwei ä 😀\r\n");
          expect((await backend.readRaw(at(name))).data?.content).toEqual(bytes);
        }
      },
      "bytes after the mark of UTF-16 that are not text are binary": async ({ backend, at, put, expect }) => {
        for (const bytes of [
          [0xff, 0xfe, 0, 0, 97, 0, 0, 0],
          [0xff, 0xfe, 97, 0, 0],
        ]) {
          await put("/a.txt", Uint8Array.from(bytes));
          const { content, mimeType } = await backend.read(at("/a.txt"));
          expect({ content, mimeType }).toEqual({
            content: Uint8Array.from(bytes),
            mimeType: "application/octet-stream",
          });
        }
      },
      "text in an older encoding is read, and the encoding named": async ({ backend, at, put, expect }) => {
        await put("/a.txt", KOREAN_BYTES);
        expect(await backend.read(at("/a.txt"))).toMatchObject({ content: KOREAN, encoding: "cp949" });
        expect((await backend.readRaw(at("/a.txt"))).data?.content).toEqual(KOREAN_BYTES);
        await put("/a.txt", MIXED_BYTES);
        const { content, doubt } = await backend.read(at("/a.txt"));
        expect([content, doubt]).toEqual(["café\n\ufffd\n", "some of its bytes are not UTF-8"]);
      },
      "the version changes with the content": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "one");
        const { version } = await backend.read(at("/a.txt"));
        expect(version).toBeTruthy();
        expect((await backend.read(at("/a.txt"))).version).toBe(version);
        await put("/a.txt", "two");
        expect((await backend.read(at("/a.txt"))).version === version).toBe(false);
      },
    },
  },
  {
    subject: "readRaw",
    cases: {
      "gives the whole text with its type and times": async ({ backend, at, put, expect }) => {
        await put("/a.md", "\ufeffone\r\ntwo");
        const { data, version } = await backend.readRaw(at("/a.md"));
        expect(data).toMatchObject({ content: "\ufeffone\r\ntwo", mimeType: "text/markdown" });
        for (const time of [data?.created_at, data?.modified_at]) {
          expect(new Date(time ?? "").toISOString()).toBe(time);
        }
        expect(version).toBe((await backend.read(at("/a.md"))).version);
      },
      "gives bytes of what is not text": async ({ backend, at, put, expect }) => {
        await put("/a.bin", Uint8Array.from([1, 0, 2]));
        const { data } = await backend.readRaw(at("/a.bin"));
        expect(data?.content).toEqual(Uint8Array.from([1, 0, 2]));
      },
      "keeps the time of creation when a file is edited": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "one");
        const before = await backend.readRaw(at("/a.txt"));
        await backend.edit(at("/a.txt"), "one", "two");
        const after = await backend.readRaw(at("/a.txt"));
        expect(after.data?.created_at).toBe(before.data?.created_at);
      },
      "a missing file and a directory are told apart": async ({ backend, at, put, expect }) => {
        await put("/a/b.txt", "b");
        expect(await backend.readRaw(at("/c.txt"))).toEqual(errors.fileNotFound(at("/c.txt")));
        expect(await backend.readRaw(at("/a"))).toEqual(errors.isDirectory(at("/a")));
      },
    },
  },
  {
    subject: "downloadFiles",
    cases: {
      "gives the bytes that were put, in order": async ({ backend, at, put, expect }) => {
        const all = Uint8Array.from({ length: 256 }, (_, index) => index);
        await put("/all.bin", all);
        await put("/all.txt", all);
        await put("/text.txt", "\ufeffa\r\nb");
        const answers = await backend.downloadFiles?.([at("/text.txt"), at("/all.bin"), at("/all.txt")]);
        expect(answers).toEqual([
          { path: at("/text.txt"), content: new TextEncoder().encode("\ufeffa\r\nb"), error: null },
          { path: at("/all.bin"), content: all, error: null },
          { path: at("/all.txt"), content: all, error: null },
        ]);
      },
      "says for each file what is wrong": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "a");
        const answers = await backend.downloadFiles?.([at("/missing.txt"), "", at("/a.txt")]);
        expect(answers?.map(({ error }) => error)).toEqual(["file_not_found", "invalid_path", null]);
        expect(answers?.map(({ content }) => content === null)).toEqual([true, true, false]);
      },
    },
  },
  {
    subject: "glob",
    cases: {
      "a pattern without slash matches in the directory itself": async (bench) => {
        await plant(bench);
        await expectFound(bench, "*.ts", "/", ["/b.ts"]);
        await expectFound(bench, "*", "/", ["/.env", "/a.md", "/b.ts"]);
        await expectFound(bench, "*.ts", "/src", ["/src/a-b.ts"]);
      },
      "two stars match at any depth, sorted by path": async (bench) => {
        await plant(bench);
        await expectFound(bench, "**", "/", TREE);
        await expectFound(bench, "**/*.ts", "/", [
          "/b.ts",
          "/src/.hidden/x.ts",
          "/src/a-b.ts",
          "/src/a/c.ts",
        ]);
        await expectFound(bench, "src/**/*.ts", "/", ["/src/.hidden/x.ts", "/src/a-b.ts", "/src/a/c.ts"]);
        await expectFound(bench, "**/a/*", "/", ["/src/a/c.ts"]);
      },
      "sets, alternatives, single characters and negation": async (bench) => {
        await plant(bench);
        await expectFound(bench, "[ab].{md,ts}", "/", ["/a.md", "/b.ts"]);
        await expectFound(bench, "[!a].*", "/", ["/b.ts"]);
        await expectFound(bench, "?.md", "/src", ["/src/d.md"]);
        await expectFound(bench, "{src/*.md,*.md}", "/", ["/a.md", "/src/d.md"]);
        await expectFound(bench, "!**/*.ts", "/", ["/.env", "/a.md", "/src/d.md"]);
      },
      "gives files, never directories": async (bench) => {
        await plant(bench);
        await expectFound(bench, "src", "/", []);
        const all = (await bench.backend.glob("**", bench.at("/"))).files ?? [];
        bench.expect(all.every((file) => file.is_dir !== true && !file.path.endsWith("/"))).toBe(true);
      },
      "nothing matching is an empty result": async (bench) => {
        await plant(bench);
        await expectFound(bench, "*.py", "/", []);
      },
      "a wrong pattern is an error value": async (bench) => {
        for (const pattern of ["", "[a", "{a", "a\\", "x".repeat(2000), "{a,b}".repeat(20)]) {
          bench
            .expect(await bench.backend.glob(pattern, bench.at("/")), pattern)
            .toMatchObject({ code: "invalid_pattern" });
        }
      },
      "a climbing pattern is refused, and an absolute one too or taken from the root": async (bench) => {
        for (const pattern of ["../x", "a/../../x", "{..,a}/x", "~/x"]) {
          bench
            .expect(await bench.backend.glob(pattern, bench.at("/")))
            .toEqual(errors.climbingGlob(pattern));
        }
        const { code, files = [] } = await bench.backend.glob("/etc/*", bench.at("/"));
        bench.expect([undefined, "invalid_pattern"]).toContain(code);
        bench.expect(files).toEqual([]);
      },
      "a missing directory and a file are told": async (bench) => {
        await plant(bench);
        const { backend, at } = bench;
        bench
          .expect(await backend.glob("*", at("/nowhere")))
          .toEqual(errors.directoryNotFound(at("/nowhere")));
        bench.expect(await backend.glob("*", at("/a.md"))).toEqual(errors.notDirectory(at("/a.md")));
      },
    },
  },
  {
    subject: "grep",
    cases: {
      "finds lines in path order, counted from 1": async (bench) => {
        await bench.put("/b.txt", "x\nneedle one\n\nneedle two");
        await bench.put("/a/c.txt", "needle three\n");
        await bench.put("/a-b.txt", "needle four\n");
        await expectLines(bench, "needle", [
          "/a-b.txt:1:needle four",
          "/a/c.txt:1:needle three",
          "/b.txt:2:needle one",
          "/b.txt:4:needle two",
        ]);
        bench.expect(await grep(bench, "needle")).toMatchObject({ truncated: false, skipped: 0 });
      },
      "finds lines in UTF-16": async (bench) => {
        for (const [name, bytes] of inUtf16("needle 1\r\nÄhre\r\n")) await bench.put(name, bytes);
        const wanted = (line: string): string[] => [`/big.log:${line}`, `/little.log:${line}`];
        await expectLines(bench, "needle", wanted("1:needle 1"));
        await expectLines(bench, "Ähre", wanted("2:Ähre"));
        await expectLines(bench, "^need.*1$", wanted("1:needle 1"), { regex: true });
      },
      "a pattern is literal unless it is said to be an expression": async (bench) => {
        await bench.put("/a.txt", "a.c\nabc\n$HOME (x) [y] \\d\n");
        await expectLines(bench, "a.c", ["/a.txt:1:a.c"]);
        await expectLines(bench, "$HOME (x) [y] \\d", ["/a.txt:3:$HOME (x) [y] \\d"]);
        await expectLines(bench, "a.c", ["/a.txt:1:a.c", "/a.txt:2:abc"], { regex: true });
      },
      "expressions see one line at a time, whatever its end": async (bench) => {
        await bench.put("/a.txt", "foo\r\nfoo bar\r\nbar foo");
        await expectLines(bench, "^foo$", ["/a.txt:1:foo"], { regex: true });
        await expectLines(bench, "foo$", ["/a.txt:1:foo", "/a.txt:3:bar foo"], { regex: true });
        await expectLines(bench, "o\\s+b", ["/a.txt:2:foo bar"], { regex: true });
      },
      "letter case can be ignored": async (bench) => {
        await bench.put("/a.txt", "Straße\nÄPFEL\n");
        const options = { caseSensitive: false };
        await expectLines(bench, "äpfel", ["/a.txt:2:ÄPFEL"], options);
        await expectLines(bench, "äPF.L", ["/a.txt:2:ÄPFEL"], { ...options, regex: true });
        await expectLines(bench, "äpfel", []);
      },
      "gives the lines around a match": async (bench) => {
        await bench.put("/a.txt", "1\n2\n3 hit\n4\n5 hit\n");
        const { matches } = await grep(bench, "hit", { contextLines: 2 });
        bench.expect(matches).toMatchObject([
          { line: 3, before: ["1", "2"], after: ["4", "5 hit"] },
          { line: 5, before: ["3 hit", "4"], after: [] },
        ]);
      },
      "stops at the cap with the first matches in path order": async (bench) => {
        for (const name of ["c", "a", "b"]) await bench.put(`/${name}.txt`, "hit\nhit\n");
        await expectLines(bench, "hit", ["/a.txt:1:hit", "/a.txt:2:hit", "/b.txt:1:hit"], { maxCount: 3 });
        bench.expect((await grep(bench, "hit", { maxCount: 3 })).truncated).toBe(true);
        bench.expect((await grep(bench, "hit", { maxCount: 6 })).truncated).toBe(false);
      },
      "a cap per file leaves room for other files": async (bench) => {
        await bench.put("/a.txt", "hit\nhit\n");
        await bench.put("/b.txt", "hit\nhit\n");
        await expectLines(bench, "hit", ["/a.txt:1:hit", "/b.txt:1:hit"], { maxPerFile: 1 });
      },
      "a filter without slash is about the name at any depth": async (bench) => {
        await bench.put("/a.ts", "hit");
        await bench.put("/b.md", "hit");
        await bench.put("/src/c.ts", "hit");
        await bench.put("/src/deep/d.ts", "hit");
        await expectLines(bench, "hit", ["/a.ts:1:hit", "/src/c.ts:1:hit", "/src/deep/d.ts:1:hit"], {
          glob: "*.ts",
        });
        await expectLines(bench, "hit", ["/src/c.ts:1:hit"], { glob: "src/*.ts" });
        await expectLines(bench, "hit", ["/b.md:1:hit"], { glob: "!*.ts" });
        await expectLines(bench, "hit", ["/src/deep/d.ts:1:hit"], { glob: "deep/*", path: "/src" });
        await expectLines(bench, "hit", ["/a.ts:1:hit", "/src/c.ts:1:hit"], { glob: "{a,c}.ts" });
      },
      "the path of a file searches that file only": async (bench) => {
        await bench.put("/a.txt", "hit");
        await bench.put("/a.txt.bak", "hit");
        await bench.put("/b/a.txt", "hit");
        await expectLines(bench, "hit", ["/a.txt:1:hit"], { path: "/a.txt" });
      },
      "hidden files are searched, binary files are not": async (bench) => {
        await bench.put("/.env", "hit");
        await bench.put("/.git/config", "hit");
        await bench.put("/a.bin", Uint8Array.from([104, 105, 116, 0]));
        await bench.put("/a.png", "hit");
        await expectLines(bench, "hit", ["/.env:1:hit", "/.git/config:1:hit"]);
      },
      "a line counts once, a byte order mark not at all": async (bench) => {
        await bench.put("/a.txt", "\ufeffhit hit\n");
        await expectLines(bench, "^hit", ["/a.txt:1:hit hit"], { regex: true });
        await expectLines(bench, "hit", ["/a.txt:1:hit hit"]);
      },
      "of a long line the part around the match is given": async (bench) => {
        await bench.put("/a.txt", `${"x".repeat(50_000)}needle${"y".repeat(50_000)}\n`);
        const [match] = (await grep(bench, "needle")).matches ?? [];
        bench.expect(match?.text).toMatch(/^…x+needley+…$/);
        bench.expect(match?.text.length).toBeLessThan(1100);
      },
      "text in an older encoding is searched": async (bench) => {
        await bench.put("/a.txt", KOREAN_BYTES);
        const [first = "", second = ""] = KOREAN.split("\n");
        await expectLines(bench, "목록", [`/a.txt:1:${first}`]);
        await expectLines(bench, "목.을", [`/a.txt:1:${first}`], { regex: true });
        await expectLines(bench, "LOAD", [`/a.txt:2:${second}`], { caseSensitive: false });
      },
      "a wrong pattern is an error value": async (bench) => {
        await bench.put("/a.txt", "a");
        const refused = await grep(bench, "(", { regex: true });
        bench.expect(refused.code).toBe("invalid_pattern");
        bench.expect(refused.error).toMatch(/^Invalid regex pattern: /);
        bench.expect(await grep(bench, "")).toEqual(errors.emptySearch());
        bench.expect(await grep(bench, "a\nb")).toMatchObject({ code: "invalid_pattern" });
        bench.expect(await grep(bench, "a", { glob: "[" })).toMatchObject({ code: "invalid_pattern" });
      },
      "a missing path is told": async (bench) => {
        bench
          .expect(await grep(bench, "a", { path: "/nowhere" }))
          .toEqual(errors.pathNotFound(bench.at("/nowhere")));
      },
      "an aborted search says so": async (bench) => {
        await bench.put("/a.txt", "a");
        const result = await grep(bench, "a", { signal: AbortSignal.abort() });
        bench.expect(result.code).toBe("aborted");
      },
    },
  },
];
