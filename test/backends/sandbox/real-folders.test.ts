import { expect, it } from "vitest";
import { readableTops, withRealFolders } from "../../../src/backends/sandbox/environment.ts";

const mounts = [
  { folder: "/home/me/.claude/skills", at: "/skills/~claude" },
  { folder: "/home/me/other pdf", at: "/skills/~claude/pdf" },
  { folder: "/opt/tool", at: "/opt/tool" },
];

it.each([
  ["bash /skills/~claude/a/x.sh", "bash /home/me/.claude/skills/a/x.sh"],
  ["cd '/skills/~claude' && ls", "cd '/home/me/.claude/skills' && ls"],
  ["sh /skills/~claude/pdf/x.sh;ls", "sh /home/me/other\\ pdf/x.sh;ls"],
  ["ls /skills/~claude-2 /mnt/skills/~claude", "ls /skills/~claude-2 /mnt/skills/~claude"],
  ["ls /opt/tool $& $1", "ls /opt/tool $& $1"],
])("folders take the place of their paths in the file tree: %s", (command, expected) => {
  expect(withRealFolders(command, mounts)).toBe(expected);
});

it("tells the model which folders commands read", () => {
  expect(readableTops(mounts)).toEqual({ readable: ["/skills"] });
  expect(readableTops(mounts.slice(2))).toEqual({});
});
