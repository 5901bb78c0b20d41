/** Makes a branch of a change, beside everything that is checked out. */
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { ProgramFailure } from "../core/child-process.ts";
import { errorMessage } from "../core/errors.ts";
import { type PlainRepository, askGit, openPlainRepository } from "../core/git.ts";
import { linkStatsAt } from "../core/stats.ts";
import { oneLine, fill } from "../core/text.ts";
import type { Content } from "./content.ts";
import texts from "./texts.json" with { type: "json" };

interface BranchRequest {
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

/** True for the root of a repository that has a commit. */
export const isRepository = (workspace: string): Promise<boolean> =>
  askGit(workspace, ["rev-parse", "--verify", "HEAD"]).then(
    () => existsSync(join(workspace, ".git")),
    () => false,
  );

/**
 * Commits the uncommitted work of the folder, if there is any, and then the change. Neither the index nor a file of
 * the folder is touched. Line ends follow attributes and settings; filters are not run.
 */
export async function makeBranch(
  request: BranchRequest,
): Promise<{ ok: true; worktree?: string } | { ok: false; message: string }> {
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
    if (existsSync(worktree)) return { ok: true, worktree };
    // Makes a working tree as `git worktree add` does, which would run hooks and filters.
    const { directory } = repository;
    if (existsSync(join(directory, "reftable"))) throw new Error(texts.refTables);
    mkdirSync(join(directory, "worktrees"), { recursive: true });
    const own = mkdtempSync(join(directory, "worktrees", `${basename(worktree)}-`));
    writeFileSync(join(own, "HEAD"), `ref: refs/heads/${name}\n`);
    writeFileSync(join(own, "commondir"), "../..\n");
    writeFileSync(join(own, "gitdir"), `${join(worktree, ".git")}\n`);
    mkdirSync(worktree);
    const env = { GIT_INDEX_FILE: join(own, "index") };
    await git(worktree, ["read-tree", "--reset", "-u", name], { env });
    writeFileSync(join(worktree, ".git"), `gitdir: ${own}\n`);
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

async function commitOf(
  { base, basePaths, files, title, id, workspace }: BranchRequest,
  { head, index, filters, git }: PlainRepository,
): Promise<string> {
  await git(base, ["read-tree", head]);
  const before = await git(base, ["write-tree"]);
  const entries = await git(base, ["ls-files", "-z", "-s"]);
  const tracked = entries.split("\0").flatMap((line) => {
    const [, mode = "", object = "", path = ""] = /^(\d+) ([\da-f]+) \d\t(.*)$/s.exec(line) ?? [];
    return path === "" ? [] : [[mode, object, path] as const];
  });
  const submodules = tracked.flatMap(([mode, , path]) => (mode === SUBMODULE ? [path] : []));
  const submoduleOf = (path: string): string | undefined =>
    submodules.find((submodule) => path.startsWith(`${submodule}/`));
  // Paths are sent on standard input, so that no name is read as an option or a pattern.
  const listOf = (paths: Iterable<string>): string => [...paths].map((path) => `${path}\0`).join("");
  const input = listOf(new Set([...basePaths, ...files.keys()]));
  const judged = (await git(base, ["check-attr", "-z", "--stdin", "filter"], { input })).split("\0");
  const filterOf = new Map(
    judged.flatMap((path, at) => (at % 3 === 0 ? [[path, judged[at + 2] ?? ""]] : [])),
  );
  const isFiltered = (path: string): boolean => filters.has(filterOf.get(path) ?? "");
  for (const [path, content] of files) {
    const submodule = submoduleOf(path);
    if (submodule !== undefined)
      throw new Error(`'${path}' is in the submodule '${submodule}'. Leave its files out of the branch.`);
    if (content === undefined || !isFiltered(path)) continue;
    // A filter that leaves a file as it is can be left out.
    const plain = await git(base, ["hash-object", "--no-filters", "--", path]).catch(() => "");
    if (!tracked.some(([, object, other]) => other === path && object === plain.trim()))
      throw new Error(fill(texts.needsFilter, path, filterOf.get(path)));
  }
  const known = new Set(basePaths);
  // A sparse checkout has a part of the files.
  const flags = await git(base, ["ls-files", "-z", "-t"], { env: { GIT_INDEX_FILE: index } });
  const left = new Set(flags.split("\0").flatMap((line) => (line.startsWith("S ") ? [line.slice(2)] : [])));
  const isDeleted = (path: string): boolean =>
    !known.has(path) && !left.has(path) && linkStatsAt(join(workspace, path)) === undefined;
  const deleted = tracked.flatMap(([mode, , path]) => (mode !== SUBMODULE && isDeleted(path) ? [path] : []));
  // Filtered files keep their content of the commit.
  const present = basePaths.filter((path) => submoduleOf(path) === undefined && !isFiltered(path));
  const update = ["update-index", "--add", "--remove", "--replace", "-z"];
  await git(base, [...update, "--stdin"], { input: listOf([...present, ...deleted]) });
  const found = await git(base, ["write-tree"]);
  const commit = async (tree: string, parent: string, message: string): Promise<string> =>
    (await git(base, ["commit-tree", tree.trim(), "-p", parent, "-F", "-"], { input: message })).trim();
  const parent = found === before ? head : await commit(found, head, "Uncommitted work of the workspace");
  const lines: string[] = [];
  for (const [path, content] of files) {
    const isLeft = content !== undefined && content.kind !== "other";
    const entry = isLeft ? await storedEntry(path, content, base, git) : `0 ${"0".repeat(head.length)}`;
    lines.push(`${entry}\t${path}\0`);
  }
  await git(base, [...update, "--index-info"], { input: lines.join("") });
  return commit(await git(base, ["write-tree"]), parent, `${title}\n\n${trailer(id)}`);
}

/** Stores a content as an object. Returns its mode and name. */
async function storedEntry(
  path: string,
  content: Exclude<Content, { kind: "other" }>,
  base: string,
  git: PlainRepository["git"],
): Promise<string> {
  const input = content.kind === "file" ? content.bytes : content.target;
  // A link has no line ends.
  const filters = content.kind === "file" ? ["--path", path] : ["--no-filters"];
  const object = await git(base, ["hash-object", "-w", "--stdin", ...filters], { input });
  const mode = content.kind === "link" ? "120000" : content.executable ? "100755" : "100644";
  return `${mode} ${object.trim()}`;
}

const SUBMODULE = "160000";
