/** Behaviour of every backend when files are written, whatever their names. */
import { errors } from "../src/backends/errors.ts";
import {
  type Bench,
  KOREAN_BYTES,
  MIXED_BYTES,
  type Suite,
  inUtf16,
  listedPaths,
  pageText,
} from "./suite.ts";

const deleteFile = async ({ backend, at }: Bench, path: string) => backend.delete?.(at(path));

const MANY = Array.from({ length: 20 }, (_, index) => index);

/** Names that a shell, a pattern, a database or an object could take for something else. */
const UNUSUAL_NAMES = [
  "with space.txt",
  "'single' \"double\".txt",
  "a:b:1:2.txt",
  "line\nbreak.txt",
  "tab\tname.txt",
  "-rf",
  "--help",
  "...",
  "a..b",
  "..x",
  "[...slug].tsx",
  "{a,b}.txt",
  "*.txt",
  "what?.txt",
  "!important",
  "$HOME `id` $(id) ;&|<>.txt",
  "100%_%41.txt",
  "naïve-日本語-🎉.txt",
  "e\u0301.txt",
  "\u00e9\u200d\u202e.txt",
  "\ufffd.txt",
  "end.",
  "nul",
  "x".repeat(255),
  "__proto__",
  "constructor",
  "~tilde",
  ".deepagent",
  "#hash",
];

const sortNames = (names: readonly string[]): string[] =>
  [...names].sort((left, right) => (left < right ? -1 : 1));

const INVALID: [path: string, error: string][] = [
  ["", "Path must be a non-empty string"],
  ["   ", "Path must be a non-empty string"],
  ["../etc/passwd", "Path traversal not allowed: ../etc/passwd"],
  ["/a/../../etc/passwd", "Path traversal not allowed: /a/../../etc/passwd"],
  ["/a/..", "Path traversal not allowed: /a/.."],
  ["\\..\\x", "Path traversal not allowed: \\..\\x"],
  ["~/x", "Path traversal not allowed: ~/x"],
  ["/a\0b", "Path contains a NUL character"],
  ["/a\ud800b", "Path contains half of a character (a lone surrogate)"],
];

const WINDOWS: [path: string, error: string][] = [
  ["C:\\Users\\file", "Windows absolute paths are not supported: C:\\Users\\file"],
  ["\\\\server\\share", "Windows absolute paths are not supported: \\\\server\\share"],
];

export const WRITE_SUITES: readonly Suite[] = [
  {
    subject: "write",
    cases: {
      "makes a file with its directories, readable at once": async ({ backend, at, expect }) => {
        const result = await backend.write(at("/a/b/c.txt"), "text\n");
        expect(result).toMatchObject({ path: at("/a/b/c.txt") });
        expect(result.error).toBeUndefined();
        expect(pageText(await backend.read(at("/a/b/c.txt")))).toBe("text\n");
        expect((await backend.read(at("/a/b/c.txt"))).version).toBe(result.version);
      },
      "says what the text was and became, or nothing": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "one two\n");
        const changes: [string, string][] = [];
        const onChange = (before: string, after: string) => void changes.push([before, after]);
        await backend.edit(at("/a.txt"), "two", "2", false, { onChange });
        expect(changes.at(-1) ?? "nothing").toEqual(
          changes.length === 0 ? "nothing" : ["one two\n", "one 2\n"],
        );
      },
      "returns the change only when files are in state": async ({
        backend,
        at,
        keepsFilesInState,
        expect,
      }) => {
        const { filesUpdate } = await backend.write(at("/a.txt"), "text");
        if (!keepsFilesInState) expect(filesUpdate).toBeNull();
        else
          expect(filesUpdate).toMatchObject({ [at("/a.txt")]: { content: "text", mimeType: "text/plain" } });
      },
      "does not touch an existing file": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "old");
        expect(await backend.write(at("/a.txt"), "new")).toEqual(errors.alreadyExists(at("/a.txt")));
        expect(pageText(await backend.read(at("/a.txt")))).toBe("old");
      },
      "overwrites when asked to": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "old and longer");
        expect((await backend.write(at("/a.txt"), "new", { mode: "overwrite" })).error).toBeUndefined();
        expect((await backend.write(at("/b.txt"), "new", { mode: "overwrite" })).error).toBeUndefined();
        expect(pageText(await backend.read(at("/a.txt")))).toBe("new");
        expect(pageText(await backend.read(at("/b.txt")))).toBe("new");
      },
      "stores a text in the encoding asked for": async ({ backend, at, expect }) => {
        const [[little, bytes] = ["", undefined], [big, swapped] = ["", undefined]] = inUtf16("ä\n");
        await backend.write(at(little), "\ufeffä\n", { encoding: "utf-16le" });
        await backend.write(at(big), "\ufeffä\n", { encoding: "utf-16be" });
        expect((await backend.readRaw(at(little))).data?.content).toEqual(bytes);
        expect((await backend.readRaw(at(big))).data?.content).toEqual(swapped);
      },
      "overwrites only the expected version": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "one");
        const { version = "" } = await backend.read(at("/a.txt"));
        await put("/a.txt", "two");
        const stale = { mode: "overwrite", expectedVersion: version } as const;
        expect(await backend.write(at("/a.txt"), "three", stale)).toEqual(
          errors.changedSinceRead(at("/a.txt")),
        );
        expect(pageText(await backend.read(at("/a.txt")))).toBe("two");
        const fresh = (await backend.read(at("/a.txt"))).version ?? "";
        const done = await backend.write(at("/a.txt"), "three", {
          mode: "overwrite",
          expectedVersion: fresh,
        });
        expect(done.error).toBeUndefined();
      },
      "an empty file can be made": async ({ backend, at, expect }) => {
        expect((await backend.write(at("/a.txt"), "")).error).toBeUndefined();
        expect(await backend.read(at("/a.txt"))).toMatchObject({ content: "" });
      },
      "a directory is not replaced": async ({ backend, at, put, expect }) => {
        await put("/a/b.txt", "b");
        expect(await backend.write(at("/a"), "x")).toEqual(errors.isDirectory(at("/a")));
        expect(await backend.write(at("/a"), "x", { mode: "overwrite" })).toEqual(
          errors.isDirectory(at("/a")),
        );
        expect(pageText(await backend.read(at("/a/b.txt")))).toBe("b");
      },
      "a file is not a directory": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "a");
        expect(await backend.write(at("/a.txt/b.txt"), "x")).toEqual(errors.parentIsFile(at("/a.txt/b.txt")));
        expect(pageText(await backend.read(at("/a.txt")))).toBe("a");
      },
      "the root is a directory": async ({ backend, at, expect }) => {
        expect(await backend.write(at("/"), "x")).toEqual(errors.isDirectory(at("/")));
      },
      "content of a binary type is base64": async ({ backend, at, expect }) => {
        const bytes = Uint8Array.from([0x89, 0x50, 0, 255]);
        const written = await backend.write(at("/a.png"), Buffer.from(bytes).toString("base64"));
        expect(written.error).toBeUndefined();
        expect((await backend.read(at("/a.png"))).content).toEqual(bytes);
        expect(await backend.write(at("/b.png"), "not base64!")).toEqual(
          errors.invalidBase64(at("/b.png"), "image/png"),
        );
        expect((await backend.read(at("/b.png"))).code).toBe("not_found");
      },
    },
  },
  {
    subject: "edit",
    cases: {
      "replaces the one occurrence": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "one two three\n");
        const result = await backend.edit(at("/a.txt"), "two", "2");
        expect(result).toMatchObject({ path: at("/a.txt"), occurrences: 1 });
        expect(pageText(await backend.read(at("/a.txt")))).toBe("one 2 three\n");
        expect((await backend.read(at("/a.txt"))).version).toBe(result.version);
      },
      "returns the change only when files are in state": async ({
        backend,
        at,
        put,
        keepsFilesInState,
        expect,
      }) => {
        await put("/a.txt", "one");
        const { filesUpdate } = await backend.edit(at("/a.txt"), "one", "two");
        if (!keepsFilesInState) expect(filesUpdate).toBeNull();
        else expect(filesUpdate).toMatchObject({ [at("/a.txt")]: { content: "two" } });
      },
      "needs to know which of several is meant": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "ab ab ab");
        expect(await backend.edit(at("/a.txt"), "ab", "x")).toEqual(errors.stringAmbiguous("ab", 3));
        expect(await backend.edit(at("/a.txt"), "ab", "x", true)).toMatchObject({ occurrences: 3 });
        expect(pageText(await backend.read(at("/a.txt")))).toBe("x x x");
      },
      "says when nothing matches": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "one");
        expect(await backend.edit(at("/a.txt"), "two", "x")).toEqual(errors.stringNotFound("two"));
        // The text may look like the path; it is still the text that is quoted.
        expect(await backend.edit(at("/a.txt"), "/a.txt", "x")).toEqual(errors.stringNotFound("/a.txt"));
      },
      "both strings are literal": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "a.c $1 abc");
        await backend.edit(at("/a.txt"), "a.c", "$& $1 \\n {}%s");
        expect(pageText(await backend.read(at("/a.txt")))).toBe("$& $1 \\n {}%s $1 abc");
      },
      "text with LF edits lines with CRLF, which stay": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "one\r\ntwo\r\nthree\r\n");
        expect(await backend.edit(at("/a.txt"), "one\ntwo\n", "1\n2\n")).toMatchObject({ occurrences: 1 });
        expect(pageText(await backend.read(at("/a.txt")))).toBe("1\r\n2\r\nthree\r\n");
      },
      "a byte order mark stays": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "\ufeffone\n");
        await backend.edit(at("/a.txt"), "one", "two");
        expect((await backend.readRaw(at("/a.txt"))).data?.content).toBe("\ufefftwo\n");
      },
      "an empty string stands for an empty file only": async ({ backend, at, put, expect }) => {
        await put("/empty.txt", "");
        await put("/full.txt", "x");
        expect((await backend.edit(at("/empty.txt"), "", "text")).error).toBeUndefined();
        expect(pageText(await backend.read(at("/empty.txt")))).toBe("text");
        expect(await backend.edit(at("/full.txt"), "", "text")).toEqual(errors.emptyOldString());
      },
      "equal strings change nothing": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "one");
        expect(await backend.edit(at("/a.txt"), "one", "one")).toEqual(errors.identicalStrings());
      },
      "a missing file and a directory are told apart": async ({ backend, at, put, expect }) => {
        await put("/a/b.txt", "b");
        expect(await backend.edit(at("/c.txt"), "a", "b")).toEqual(errors.fileNotFound(at("/c.txt")));
        expect(await backend.edit(at("/a"), "a", "b")).toEqual(errors.isDirectory(at("/a")));
      },
      "a binary file is not edited": async ({ backend, at, put, expect }) => {
        await put("/a.bin", Uint8Array.from([97, 0, 98]));
        expect(await backend.edit(at("/a.bin"), "a", "b")).toEqual(errors.binaryEdit(at("/a.bin")));
        await put("/a.png", "text");
        expect(await backend.edit(at("/a.png"), "text", "b")).toEqual(errors.binaryEdit(at("/a.png")));
      },
      "text in UTF-16 stays in it": async ({ backend, at, put, expect }) => {
        const after = new Map(inUtf16("one\r\n2\r\nthree 😀"));
        for (const [name, bytes] of inUtf16("one\r\ntwo\r\nthree 😀")) {
          await put(name, bytes);
          expect(await backend.edit(at(name), "two\nthree", "2\nthree")).toMatchObject({ occurrences: 1 });
          expect((await backend.readRaw(at(name))).data?.content).toEqual(after.get(name));
        }
      },
      "text in an older encoding stays in it, if that is certain": async ({ backend, at, put, expect }) => {
        await put("/a.txt", KOREAN_BYTES);
        expect(await backend.edit(at("/a.txt"), "load", "읽기")).toMatchObject({ occurrences: 1 });
        const changed = Buffer.from(KOREAN_BYTES).toString("latin1").replace("load", "\xc0\xd0\xb1\xe2");
        expect((await backend.readRaw(at("/a.txt"))).data?.content).toEqual(
          Uint8Array.from(Buffer.from(changed, "latin1")),
        );
        expect(await backend.edit(at("/a.txt"), "int", "é")).toEqual(
          errors.notInEncoding(at("/a.txt"), "é", "cp949"),
        );
        await put("/a.txt", MIXED_BYTES);
        expect((await backend.edit(at("/a.txt"), "c", "b")).code).toBe("encoding");
      },
      "edits only the expected version": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "one");
        const { version = "" } = await backend.read(at("/a.txt"));
        const stale = { expectedVersion: version };
        expect((await backend.edit(at("/a.txt"), "one", "two", false, stale)).error).toBeUndefined();
        expect(await backend.edit(at("/a.txt"), "two", "three", false, stale)).toEqual(
          errors.changedSinceRead(at("/a.txt")),
        );
        expect(pageText(await backend.read(at("/a.txt")))).toBe("two");
      },
    },
  },
  {
    subject: "delete",
    cases: {
      "removes one file": async (bench) => {
        const { backend, at, put, keepsFilesInState } = bench;
        await put("/a.txt", "a");
        await put("/a.txt.bak", "b");
        const update = keepsFilesInState ? { [at("/a.txt")]: null } : null;
        bench.expect(await deleteFile(bench, "/a.txt")).toEqual({ path: at("/a.txt"), filesUpdate: update });
        bench.expect(await backend.read(at("/a.txt"))).toEqual(errors.fileNotFound(at("/a.txt")));
        bench.expect(listedPaths(await backend.ls(at("/")))).toEqual([at("/a.txt.bak")]);
      },
      "removes a directory with everything in it": async (bench) => {
        const { backend, at, put } = bench;
        await put("/a/one.txt", "1");
        await put("/a/b/two.txt", "2");
        await put("/ab.txt", "3");
        bench.expect((await deleteFile(bench, "/a"))?.error).toBeUndefined();
        bench.expect(listedPaths(await backend.glob("**", at("/")))).toEqual([at("/ab.txt")]);
      },
      "a file can be made again after it was removed": async (bench) => {
        const { backend, at, put } = bench;
        await put("/a.txt", "a");
        await deleteFile(bench, "/a.txt");
        bench.expect((await backend.write(at("/a.txt"), "b")).error).toBeUndefined();
      },
      "says when nothing is there": async (bench) => {
        await bench.put("/ab.txt", "x");
        bench.expect(await deleteFile(bench, "/a")).toEqual(errors.fileNotFound(bench.at("/a")));
      },
      "refuses the root": async (bench) => {
        await bench.put("/a.txt", "a");
        bench.expect(await deleteFile(bench, "/")).toEqual(errors.refusedToDelete(bench.at("/")));
        bench.expect((await bench.backend.read(bench.at("/a.txt"))).error).toBeUndefined();
      },
    },
  },
  {
    subject: "uploadFiles",
    cases: {
      "puts and replaces files, and answers in order": async ({ backend, at, expect }) => {
        const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
        const first = await backend.uploadFiles?.([
          [at("/b/x.txt"), bytes("one")],
          [at("/a.txt"), bytes("two")],
        ]);
        expect(first).toMatchObject([
          { path: at("/b/x.txt"), error: null },
          { path: at("/a.txt"), error: null },
        ]);
        await backend.uploadFiles?.([[at("/a.txt"), bytes("three")]]);
        expect((await backend.read(at("/a.txt"))).content).toBe("three");
      },
      "returns the change only when files are in state": async ({
        backend,
        at,
        keepsFilesInState,
        expect,
      }) => {
        const [answer] = (await backend.uploadFiles?.([[at("/a.txt"), Uint8Array.from([97])]])) ?? [];
        if (keepsFilesInState)
          expect(answer?.filesUpdate).toMatchObject({ [at("/a.txt")]: { content: "a" } });
        else expect(answer?.filesUpdate ?? null).toBeNull();
      },
      "one bad file does not stop the others": async ({ backend, at, expect }) => {
        const answers = await backend.uploadFiles?.([
          ["", Uint8Array.from([97])],
          [at("/a.txt"), Uint8Array.from([97])],
          [at("/"), Uint8Array.from([97])],
        ]);
        expect(answers?.map(({ error }) => error)).toEqual(["invalid_path", null, "is_directory"]);
      },
      "a later change of the caller's buffer changes no file": async ({ backend, at, expect }) => {
        const bytes = Uint8Array.from([1, 0, 2]);
        await backend.uploadFiles?.([[at("/a.bin"), bytes]]);
        bytes.fill(9);
        expect((await backend.read(at("/a.bin"))).content).toEqual(Uint8Array.from([1, 0, 2]));
      },
    },
  },
  {
    subject: "concurrency",
    cases: {
      "one of many parallel creates wins, the others are told": async ({ backend, at, expect }) => {
        const results = await Promise.all(
          MANY.map(async (index) => backend.write(at("/a/a.txt"), `writer ${index}`)),
        );
        const winners = results.flatMap((result, index) => (result.error === undefined ? [index] : []));
        expect(winners).toHaveLength(1);
        expect(results.filter((result) => result.code === "exists")).toHaveLength(MANY.length - 1);
        expect(pageText(await backend.read(at("/a/a.txt")))).toBe(`writer ${winners[0]}`);
      },
      "every one of many parallel edits lands": async ({ backend, at, put, expect }) => {
        await put("/a.txt", MANY.map((index) => `<${index}>`).join("\n"));
        const results = await Promise.all(
          MANY.map(async (index) => backend.edit(at("/a.txt"), `<${index}>`, `[${index}]`)),
        );
        expect(results.map((result) => result.error)).toEqual(MANY.map(() => undefined));
        expect(pageText(await backend.read(at("/a.txt")))).toBe(MANY.map((index) => `[${index}]`).join("\n"));
      },
      "one of many edits of the same version lands": async ({ backend, at, put, expect }) => {
        await put("/a.txt", "value 0");
        const { version = "" } = await backend.read(at("/a.txt"));
        const results = await Promise.all(
          MANY.map(async (index) =>
            backend.edit(at("/a.txt"), "value", `value${index}`, false, { expectedVersion: version }),
          ),
        );
        expect(results.filter((result) => result.error === undefined)).toHaveLength(1);
        expect(results.filter((result) => result.code === "conflict")).toHaveLength(MANY.length - 1);
      },
      "a reader sees the old content or the new": async ({ backend, at, put, expect }) => {
        const contents = ["a".repeat(300_000), "b".repeat(200_000)];
        await put("/a.txt", contents[0] ?? "");
        const seen = await Promise.all(
          MANY.map(async (index) => {
            if (index % 2 === 0) {
              await backend.write(at("/a.txt"), contents[(index / 2) % 2] ?? "", { mode: "overwrite" });
            }
            return pageText(await backend.read(at("/a.txt")));
          }),
        );
        expect(seen.every((content) => contents.includes(content))).toBe(true);
      },
    },
  },
  {
    subject: "names",
    cases: {
      "any name works in every method": async ({ backend, at, put, expect }) => {
        for (const name of UNUSUAL_NAMES) {
          expect((await backend.write(at(`/d/${name}`), "one needle\n")).error, name).toBeUndefined();
        }
        const expected = sortNames(UNUSUAL_NAMES.map((name) => at(`/d/${name}`)));
        expect(listedPaths(await backend.ls(at("/d")))).toEqual(expected);
        expect(listedPaths(await backend.glob("**", at("/")))).toEqual(expected);
        const found = await backend.grep("needle", at("/"));
        expect(found.matches?.map(({ path }) => path)).toEqual(expected);
        for (const name of UNUSUAL_NAMES) {
          const path = at(`/d/${name}`);
          expect((await backend.grep("needle", path)).matches?.map((match) => match.path)).toEqual([path]);
          expect((await backend.edit(path, "one", "two")).error, name).toBeUndefined();
          expect(pageText(await backend.read(path)), name).toBe("two needle\n");
          expect((await backend.delete?.(path))?.error, name).toBeUndefined();
        }
        await put("/end.txt", "");
        expect(listedPaths(await backend.glob("**", at("/")))).toEqual([at("/end.txt")]);
      },
      "any name works for a directory": async ({ backend, at, expect }) => {
        for (const name of UNUSUAL_NAMES) {
          expect((await backend.write(at(`/${name}/x.txt`), name)).error, name).toBeUndefined();
          expect(listedPaths(await backend.ls(at(`/${name}`))), name).toEqual([at(`/${name}/x.txt`)]);
        }
        expect(listedPaths(await backend.ls(at("/")))).toEqual(
          sortNames(UNUSUAL_NAMES.map((name) => at(`/${name}/`))),
        );
      },
      "names that differ in case or form are different files": async ({ backend, at, put, expect }) => {
        await put("/é.txt", "composed");
        await put("/e\u0301.txt", "decomposed");
        expect(pageText(await backend.read(at("/é.txt")))).toBe("composed");
        expect(pageText(await backend.read(at("/e\u0301.txt")))).toBe("decomposed");
      },
    },
  },
  {
    subject: "paths",
    cases: {
      "an invalid path is refused by every method, with one text": async ({ backend, expect }) => {
        for (const [path, error] of [...INVALID, ...WINDOWS]) {
          const failure = { code: "invalid_path", error };
          expect(await backend.ls(path)).toEqual(failure);
          expect(await backend.read(path)).toEqual(failure);
          expect(await backend.readRaw(path)).toEqual(failure);
          expect(await backend.grep("x", path)).toEqual(failure);
          expect(await backend.glob("*", path)).toEqual(failure);
          expect(await backend.write(path, "x")).toEqual(failure);
          expect(await backend.write(path, "x", { mode: "overwrite" })).toEqual(failure);
          expect(await backend.edit(path, "x", "y")).toEqual(failure);
          expect(await backend.delete?.(path)).toEqual(failure);
        }
      },
      "spellings of one path are one file": async ({ backend, at, put, expect }) => {
        await put("/a/b.txt", "text");
        for (const spelling of ["/a//b.txt", "/./a/./b.txt", "/a\\b.txt", "//a/b.txt"]) {
          const path = at("/") === "/" ? spelling : at(spelling);
          expect((await backend.read(path)).content, spelling).toBe("text");
        }
      },
      "nothing is decoded": async ({ backend, at, put, expect }) => {
        await put("/a/b.txt", "text");
        for (const path of ["/a%2fb.txt", "/%2e%2e/a/b.txt", "/a/b.txt%00", "/a/．．/b.txt"]) {
          expect((await backend.read(at(path))).code, path).toBe("not_found");
        }
      },
    },
  },
];
