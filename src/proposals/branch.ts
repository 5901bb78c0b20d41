/** Makes a branch of a change, beside everything that is checked out. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { ProgramFailure } from "../core/child-process.ts";
import { errorMessage } from "../core/errors.ts";
import { type PlainRepository, askGit, openPlainRepository } from "../core/git.ts";
import { linkStatsAt } from "../core/stats.ts";
import { oneLine } from "../core/text.ts";
import type { Content } from "./content.ts";

export interface BranchRequest {
  /** Root of a repository. */
  workspace: string;
  name: string;
  /** All files as they were when the workspace was copied: a folder. */
  base: string;
  /** Files of that folder that Git does not ignore. */
  basePaths: readonly string[];
  /** Contents of the changed files; `undefined` deletes. */
  files: ReadonlyMap<string, Content | undefined>;
  title: string;
  /** Found again in the commit, so that the same review makes no second branch. */
  id: string;
  hasWorktree: boolean;
}

export type BranchOutcome = { ok: true; worktree?: string } | { ok: false; message: string };

/** True for the root of a repository that has a commit. */
export const isRepository = (workspace: string): Promise<boolean> =>
  existsSync(join(workspace, ".git"))
    ? askGit(workspace, ["rev-parse", "--verify", "HEAD"]).then(
        () => true,
        () => false,
      )
    : Promise.resolve(false);

/**
 * Commits what the folder had uncommitted, if it had, and then the change. Neither the index nor a file of the folder
 * is touched. Line ends become what attributes and settings say; filters are not run.
 */
export async function makeBranch(request: BranchRequest): Promise<BranchOutcome> {
  const { workspace, base, name, id, hasWorktree } = request;
  let repository: PlainRepository | undefined;
  try {
    const { git } = (repository = await openPlainRepository(workspace));
    const tryGit = (...args: string[]) => git(base, args).catch(() => undefined);
    const isValid = (await tryGit("check-ref-format", `refs/heads/${name}`)) !== undefined;
    if (!isValid || name.startsWith("-"))
      return { ok: false, message: `'${oneLine(name, 80)}' cannot name a branch. Choose another name.` };
    const known = await tryGit("cat-file", "commit", `refs/heads/${name}`);
    if (known !== undefined && !known.includes(trailer(id)))
      return { ok: false, message: `There is a branch '${oneLine(name, 80)}' already. Choose another name.` };
    if (known === undefined)
      await git(base, ["update-ref", `refs/heads/${name}`, await commitOf(request, repository), ""]);
    if (!hasWorktree) return { ok: true };
    const worktree = join(dirname(workspace), `${basename(workspace)}-${name.replaceAll(/[^\w.-]+/g, "-")}`);
    if (!existsSync(worktree)) await addWorktree(worktree, name, repository);
    return { ok: true, worktree };
  } catch (thrown) {
    const said =
      thrown instanceof ProgramFailure ? thrown.message.trim().split("\n").at(-1) : errorMessage(thrown);
    return { ok: false, message: `Git could not make the branch: ${oneLine(said ?? "unknown", 300)}` };
  } finally {
    repository?.close();
  }
}

const trailer = (id: string): string => `Review: ${id}`;

/** Makes a working tree as `git worktree add` does, which would run hooks and filters. */
async function addWorktree(
  worktree: string,
  branch: string,
  { directory, git }: PlainRepository,
): Promise<void> {
  if (existsSync(join(directory, "reftable")))
    throw new Error("This repository keeps its refs in tables. Make the branch without a folder of its own.");
  mkdirSync(join(directory, "worktrees"), { recursive: true });
  const own = mkdtempSync(join(directory, "worktrees", `${basename(worktree)}-`));
  writeFileSync(join(own, "HEAD"), `ref: refs/heads/${branch}\n`);
  writeFileSync(join(own, "commondir"), "../..\n");
  writeFileSync(join(own, "gitdir"), `${join(worktree, ".git")}\n`);
  mkdirSync(worktree);
  await git(worktree, ["read-tree", "--reset", "-u", branch], {
    env: { GIT_INDEX_FILE: join(own, "index") },
  });
  writeFileSync(join(worktree, ".git"), `gitdir: ${own}\n`);
}

async function commitOf(
  { base, basePaths, files, title, id, workspace }: BranchRequest,
  { head, index, filters, git }: PlainRepository,
): Promise<string> {
  await git(base, ["read-tree", head]);
  const before = await git(base, ["write-tree"]);
  const tracked = entriesOf(await git(base, ["ls-files", "-z", "-s"]));
  const submodules = tracked.flatMap(([mode, , path]) => (mode === SUBMODULE ? [path] : []));
  const inSubmodule = (path: string): string | undefined =>
    submodules.find((submodule) => path.startsWith(`${submodule}/`));
  const foreign = [...files.keys()].find((path) => inSubmodule(path) !== undefined);
  if (foreign !== undefined)
    throw new Error(
      `'${foreign}' is in the submodule '${inSubmodule(foreign)}'. Leave its files out of the branch.`,
    );
  // Paths are given on standard input, so that no name is taken for an option or a pattern.
  const listOf = (paths: Iterable<string>): string => [...paths].map((path) => `${path}\0`).join("");
  const judged = listOf(new Set([...basePaths, ...files.keys()]));
  const attributes = (await git(base, ["check-attr", "-z", "--stdin", "filter"], { input: judged })).split(
    "\0",
  );
  const filtered = new Map<string, string>();
  for (let at = 0; at + 2 < attributes.length; at += 3)
    if (filters.has(attributes[at + 2] ?? "")) filtered.set(attributes[at] ?? "", attributes[at + 2] ?? "");
  for (const path of files.keys()) {
    const filter = filtered.get(path);
    if (filter === undefined || files.get(path) === undefined) continue;
    // A filter that leaves a file as it is can be left out.
    const plain = await git(base, ["hash-object", "--no-filters", "--", path]).catch(() => "");
    if (!tracked.some(([, object, other]) => other === path && object === plain.trim()))
      throw new Error(
        `'${path}' needs the filter '${filter}', and no program that a repository chooses is run here. Leave the file out of the branch, or apply it to the folder.`,
      );
  }
  const known = new Set(basePaths);
  // A sparse checkout has a part of the files.
  const flags = await git(base, ["ls-files", "-z", "-t"], { env: { GIT_INDEX_FILE: index } });
  const left = new Set(flags.split("\0").flatMap((line) => (line.startsWith("S ") ? [line.slice(2)] : [])));
  const isDeleted = (path: string): boolean =>
    !known.has(path) && !left.has(path) && linkStatsAt(join(workspace, path)) === undefined;
  const deleted = tracked.flatMap(([mode, , path]) => (mode !== SUBMODULE && isDeleted(path) ? [path] : []));
  // What a filter made of a file is not known here, so that the commit keeps what it has.
  const present = basePaths.filter((path) => inSubmodule(path) === undefined && !filtered.has(path));
  const update = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
  await git(base, update, { input: listOf([...present, ...deleted]) });
  const found = await git(base, ["write-tree"]);
  const commit = async (tree: string, parent: string, message: string): Promise<string> =>
    (await git(base, ["commit-tree", tree.trim(), "-p", parent, "-F", "-"], { input: message })).trim();
  const parent = found === before ? head : await commit(found, head, "Uncommitted work of the workspace");
  const scratch = mkdtempSync(join(tmpdir(), "deepagent-branch-"));
  try {
    const lines: string[] = [];
    for (const [path, content] of files) {
      if (content === undefined || content.kind === "other") {
        lines.push(`0 ${"0".repeat(head.length)}\t${path}\0`);
        continue;
      }
      writeFileSync(join(scratch, "content"), content.kind === "file" ? content.bytes : content.target);
      // A link has no line ends.
      const filters = content.kind === "file" ? ["--path", path] : ["--no-filters"];
      const object = await git(base, ["hash-object", "-w", ...filters, join(scratch, "content")]);
      const mode = content.kind === "link" ? "120000" : content.executable ? "100755" : "100644";
      lines.push(`${mode} ${object.trim()}\t${path}\0`);
    }
    await git(base, ["update-index", "--replace", "-z", "--index-info"], { input: lines.join("") });
    return await commit(await git(base, ["write-tree"]), parent, `${title}\n\n${trailer(id)}`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

const SUBMODULE = "160000";

/** Mode, object and path of the entries of an index. */
const entriesOf = (listed: string): [string, string, string][] =>
  listed.split("\0").flatMap((line) => {
    const [, mode = "", object = "", path = ""] = /^(\d+) ([\da-f]+) \d\t(.*)$/s.exec(line) ?? [];
    return path === "" ? [] : [[mode, object, path]];
  });
