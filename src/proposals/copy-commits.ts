/** Finds the commits that an agent made in its copy of the workspace. Only files are applied, so a review names them. */
import { readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { gitFolders } from "../backends/sandbox/starting-places.ts";
import { orElse } from "../core/errors.ts";
import { askGit, openPlainRepository } from "../core/git.ts";
import { oneLine } from "../core/text.ts";
import { realPath } from "../core/real-path.ts";

/**
 * Names the commits in the repositories of `tree`, a copy of `workspace`, which the workspace does not have, such as
 * `1a2b3c4 Fix the parser (feature)`. Those of a repository inside begin with its path.
 */
export async function copyCommits(tree: string, workspace: string): Promise<string[]> {
  const [root, original] = [realPath(tree), realPath(workspace)];
  const found: string[] = [];
  for (const folder of gitFolders(root)) {
    // A copy begins without any objects of its own.
    const objects = orElse(
      () => readdirSync(join(folder, "objects"), { recursive: true, encoding: "utf8" }),
      [],
    );
    if (!objects.some((name) => /^[0-9a-f]{2}\/|^pack\//.test(name))) continue;
    const path = relative(root, folder);
    const commits = await newCommits(folder, join(original, path)).catch(() => []);
    const inner = path.replace(/(?:^|\/)\.git(?:\/modules)?(?=\/|$)/, "").replace(/^\//, "");
    found.push(...commits.map((line) => oneLine(inner === "" ? line : `${inner}: ${line}`, 200)));
  }
  return found.slice(0, 50);
}

async function newCommits(folder: string, original: string): Promise<string[]> {
  const refs = ["for-each-ref", "--format=^%(objectname)"];
  const head = askGit(original, ["rev-parse", "--verify", "HEAD"]).then(
    (commit) => `^${commit.trim()}`,
    () => "",
  );
  const known = [await askGit(original, refs), await head].join("\n").split("\n");
  const { git, close } = await openPlainRepository(folder);
  try {
    const input = known.filter((line) => line !== "").join("\n");
    const format = ["--ignore-missing", "--no-show-signature", "--format=%h %s (%S)", `-n50`];
    const lines = await git(folder, ["log", ...format, "--all", "HEAD", "--stdin", "--"], {
      input: `${input}\n`,
    });
    return lines.split("\n").flatMap((line) => (line === "" ? [] : [line.replace("(refs/heads/", "(")]));
  } finally {
    close();
  }
}
