import { expect } from "vitest";
import type { Suite } from "./contract.ts";

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
    "an invalid path is refused by every method, with one text": async ({ backend }) => {
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
    "spellings of one path are one file": async ({ backend, at, put }) => {
      await put("/a/b.txt", "text");
      for (const spelling of ["/a//b.txt", "/./a/./b.txt", "/a\\b.txt", "//a/b.txt"]) {
        const path = at("/") === "/" ? spelling : at(spelling);
        expect((await backend.read(path)).content, spelling).toBe("text");
      }
    },
    "nothing is decoded": async ({ backend, at, put }) => {
      await put("/a/b.txt", "text");
      for (const path of ["/a%2fb.txt", "/%2e%2e/a/b.txt", "/a/b.txt%00", "/a/．．/b.txt"]) {
        expect((await backend.read(at(path))).code, path).toBe("not_found");
      }
    },
  },
};
