import { mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FilesystemBackend } from "../../../src/backends/filesystem/filesystem.ts";
import { filesIn } from "../../support/files-in.ts";

const nameOf = (digit: string): string => `.deepagent-${digit.repeat(24)}.tmp`;
const [OLD, LINK, FOLDER, YOUNG, LATER] = ["0", "1", "2", "3", "4"].map(nameOf) as [
  string,
  string,
  string,
  string,
  string,
];

test("a write removes temporary files that killed processes left in its directory, and nothing else", async () => {
  const root = filesIn();
  const hourAgo = new Date(Date.now() - 3_600_000);
  const leave = (path: string): void => {
    writeFileSync(join(root, path), "half");
    utimesSync(join(root, path), hourAgo, hourAgo);
  };
  mkdirSync(join(root, "below"));
  for (const path of [OLD, "kept.txt", ".deepagent-notes.tmp", `below/${OLD}`]) leave(path);
  mkdirSync(join(root, FOLDER));
  symlinkSync("kept.txt", join(root, LINK));
  writeFileSync(join(root, YOUNG), "half");
  const backend = new FilesystemBackend({ rootDir: root, virtualMode: true });
  expect((await backend.write("/a.txt", "a")).error).toBeUndefined();
  const kept = [LINK, FOLDER, YOUNG, ".deepagent-notes.tmp", "a.txt", "below", "kept.txt"];
  expect(readdirSync(root).toSorted()).toEqual(kept.toSorted());
  expect(readdirSync(join(root, "below"))).toEqual([OLD]);
  // A large directory is not looked through by each write.
  leave(LATER);
  expect((await backend.edit("/a.txt", "a", "b")).error).toBeUndefined();
  expect(readdirSync(root)).toContain(LATER);
});
