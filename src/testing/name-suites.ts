import { type Suite, pathsOf, textOf } from "./suite.ts";

/** Names that a shell, a pattern, a database or an object could take for something else. */
const NAMES = [
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

const inOrder = (names: readonly string[]): string[] =>
  [...names].sort((left, right) => (left < right ? -1 : 1));

export const namesSuite: Suite = {
  subject: "names",
  cases: {
    "any name works in every method": async ({ backend, at, put, expect }) => {
      for (const name of NAMES) {
        expect((await backend.write(at(`/d/${name}`), "one needle\n")).error, name).toBeUndefined();
      }
      const expected = inOrder(NAMES.map((name) => at(`/d/${name}`)));
      expect(pathsOf(await backend.ls(at("/d")))).toEqual(expected);
      expect(pathsOf(await backend.glob("**", at("/")))).toEqual(expected);
      const found = await backend.grep("needle", at("/"));
      expect(found.matches?.map(({ path }) => path)).toEqual(expected);
      for (const name of NAMES) {
        const path = at(`/d/${name}`);
        expect((await backend.grep("needle", path)).matches?.map((match) => match.path)).toEqual([path]);
        expect((await backend.edit(path, "one", "two")).error, name).toBeUndefined();
        expect(textOf(await backend.read(path)), name).toBe("two needle\n");
        expect((await backend.delete?.(path))?.error, name).toBeUndefined();
      }
      await put("/end.txt", "");
      expect(pathsOf(await backend.glob("**", at("/")))).toEqual([at("/end.txt")]);
    },
    "any name works for a directory": async ({ backend, at, expect }) => {
      for (const name of NAMES) {
        expect((await backend.write(at(`/${name}/x.txt`), name)).error, name).toBeUndefined();
        expect(pathsOf(await backend.ls(at(`/${name}`))), name).toEqual([at(`/${name}/x.txt`)]);
      }
      expect(pathsOf(await backend.ls(at("/")))).toEqual(inOrder(NAMES.map((name) => at(`/${name}/`))));
    },
    "names that differ in case or form are different files": async ({ backend, at, put, expect }) => {
      await put("/é.txt", "composed");
      await put("/e\u0301.txt", "decomposed");
      expect(textOf(await backend.read(at("/é.txt")))).toBe("composed");
      expect(textOf(await backend.read(at("/e\u0301.txt")))).toBe("decomposed");
    },
  },
};

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

export const pathsSuite: Suite = {
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
};
