import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { folderMark } from "../../../src/app/settings.ts";

let root: string;
let folder: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "deepagent-mark-"));
  folder = join(root, "work");
  mkdirSync(folder);
});
afterEach(() => {
  chmodSync(folder, 0o700);
  rmSync(root, { recursive: true });
});

it("is the same at every call, also after the folder was moved", () => {
  const mark = folderMark(folder);
  expect(mark).toMatch(/^\d+\/[\w-]{36}$/);
  expect(folderMark(folder)).toBe(mark);
  const moved = join(root, "moved");
  renameSync(folder, moved);
  expect(folderMark(moved)).toBe(mark);
  renameSync(moved, folder);
});

it("tells a copy and an empty folder from the folder", () => {
  const mark = folderMark(folder);
  const copy = join(root, "copy");
  cpSync(folder, copy, { recursive: true });
  const empty = join(root, "empty");
  mkdirSync(empty);
  expect(new Set([mark, folderMark(copy), folderMark(empty)]).size).toBe(3);
});

it("is the number of a folder in which no file can be made", () => {
  // Whoever may write everywhere, as root, is kept out by a file in the place of the folder.
  const file = "/proc/self";
  expect(folderMark(file)).toMatch(/^\d+\/$/);
  chmodSync(folder, 0o500);
  expect(folderMark(folder)).toBe(folderMark(folder));
});

it.each([
  ["folder", ".deepagent", "elsewhere"],
  ["file", ".deepagent/folder-id", "elsewhere/folder-id"],
])("is the number of a folder with a link in the place of its %s, and nothing is made there", (_, at, to) => {
  mkdirSync(join(root, "elsewhere"));
  if (at.includes("/")) mkdirSync(join(folder, ".deepagent"));
  symlinkSync(join(root, to), join(folder, at));
  expect(folderMark(folder)).toMatch(/^\d+\/$/);
  expect(readdirSync(join(root, "elsewhere"))).toEqual([]);
});
