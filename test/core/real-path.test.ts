import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { realPath } from "../../src/core/real-path.ts";
import { filesIn } from "../support/files-in.ts";

let root: string;
beforeEach(() => {
  root = filesIn();
});

it.each([
  ["a missing file", {}, "a/b", "a/b"],
  ["a link to a missing file", { a: "b" }, "a", "b"],
  ["a link below a link to a missing folder", { a: "b/c" }, "a/d", "b/c/d"],
  ["a chain of links", { a: "b", b: "c", c: "d/e" }, "a", "d/e"],
  ["a link in an existing folder", { "there/a": "../b" }, "there/a/c", "b/c"],
  ["a link to itself", { a: "a" }, "a/b", "a/b"],
])("follows %s", (_name, links: Record<string, string>, path, expected) => {
  mkdirSync(join(root, "there"));
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(root, name));
  expect(realPath(join(root, path))).toBe(join(root, expected));
});

it("ends for links that grow without end", () => {
  symlinkSync("a/x", join(root, "a"));
  symlinkSync("c/x", join(root, "b"));
  symlinkSync("b/x", join(root, "c"));
  expect(realPath(join(root, "a"))).toMatch(/a/);
  expect(realPath(join(root, "b"))).toMatch(/[bc]/);
});
