/** Makes a branch of a change, beside everything that is checked out. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { ProgramFailure, type ProgramOptions } from "../core/child-process.ts";
import { errorMessage } from "../core/errors.ts";
import { runGit } from "../core/git.ts";
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
export async function isRepository(workspace: string): Promise<boolean> {
  return (
    existsSync(join(workspace, ".git")) &&
    (await tryGit(workspace, ["rev-parse", "--verify", "HEAD"])) !== undefined
  );
}

/**
 * Commits what the folder had uncommitted, if it had, and then the change. Neither the index nor a file of the folder
 * is touched.
 */
export async function makeBranch(request: BranchRequest): Promise<BranchOutcome> {
  const { workspace, name, id, hasWorktree } = request;
  try {
    const valid = await tryGit(workspace, ["check-ref-format", "--branch", name]);
    if (valid === undefined || name.startsWith("-"))
      return { ok: false, message: `'${oneLine(name, 80)}' cannot name a branch. Choose another name.` };
    const known = await tryGit(workspace, ["log", "-1", "--format=%B", `refs/heads/${name}`]);
    if (known !== undefined && !known.includes(trailer(id)))
      return { ok: false, message: `There is a branch '${oneLine(name, 80)}' already. Choose another name.` };
    if (known === undefined) {
      const commit = await commitOf(request);
      await git(workspace, ["update-ref", `refs/heads/${name}`, commit, ""]);
    }
    if (!hasWorktree) return { ok: true };
    const worktree = join(dirname(workspace), `${basename(workspace)}-${name.replaceAll(/[^\w.-]+/g, "-")}`);
    if (!existsSync(worktree)) await git(workspace, ["worktree", "add", worktree, name]);
    return { ok: true, worktree };
  } catch (thrown) {
    const said =
      thrown instanceof ProgramFailure ? thrown.message.trim().split("\n").at(-1) : errorMessage(thrown);
    return { ok: false, message: `Git could not make the branch: ${oneLine(said ?? "unknown", 300)}` };
  }
}

const trailer = (id: string): string => `Review: ${id}`;

async function commitOf({ workspace, base, basePaths, files, title, id }: BranchRequest): Promise<string> {
  const scratch = mkdtempSync(join(tmpdir(), "deepagent-branch-"));
  const env = { GIT_INDEX_FILE: join(scratch, "index") };
  try {
    const head = (await git(workspace, ["rev-parse", "HEAD"])).trim();
    await git(workspace, ["read-tree", head], { env });
    const before = await git(workspace, ["write-tree"], { env });
    const tracked = await trackedIn(workspace, env);
    const inSubmodule = (path: string): string | undefined =>
      tracked.submodules.find((submodule) => path.startsWith(`${submodule}/`));
    const foreign = [...files.keys()].find((path) => inSubmodule(path) !== undefined);
    if (foreign !== undefined)
      throw new Error(
        `'${foreign}' is in the submodule '${inSubmodule(foreign)}'. Leave its files out of the branch.`,
      );
    // Paths are given on standard input, so that no name is taken for an option or a pattern.
    const known = new Set(basePaths);
    const deleted = tracked.files.filter((path) => !known.has(path) && !isThere(join(workspace, path)));
    const present = basePaths.filter((path) => inSubmodule(path) === undefined);
    const input = [...present, ...deleted].map((path) => `${path}\0`).join("");
    const update = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
    await git(workspace, ["--work-tree", base, ...update], { env, input });
    const found = await git(workspace, ["write-tree"], { env });
    const parent =
      found === before
        ? head
        : await commit(workspace, found.trim(), head, "Uncommitted work of the workspace");
    const lines: string[] = [];
    for (const [path, content] of files)
      lines.push(
        (await indexLine(workspace, scratch, path, content)) ?? `0 ${"0".repeat(head.length)}\t${path}\0`,
      );
    await git(workspace, ["update-index", "--replace", "-z", "--index-info"], { env, input: lines.join("") });
    const tree = (await git(workspace, ["write-tree"], { env })).trim();
    return await commit(workspace, tree, parent, `${title}\n\n${trailer(id)}`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Files of the commit that belong into the folder, and its submodules. */
async function trackedIn(
  workspace: string,
  env: NodeJS.ProcessEnv,
): Promise<{ files: string[]; submodules: string[] }> {
  const listed = async (args: readonly string[], own = {}): Promise<string[][]> => {
    const lines = (await git(workspace, ["ls-files", "-z", ...args], { env: own })).split("\0");
    return lines.map((line) => /^(\S+) (?:[\da-f]+ \d\t)?(.*)$/s.exec(line)?.slice(1) ?? []);
  };
  const pathsOf = (entries: readonly string[][], kind: string): string[] =>
    entries.flatMap(([found, path]) => (found === kind && path !== undefined ? [path] : []));
  const entries = await listed(["-s"], env);
  // A sparse checkout has a part of the files.
  const left = new Set(pathsOf(await listed(["-t"]), NOT_CHECKED_OUT));
  const submodules = pathsOf(entries, SUBMODULE);
  const files = entries.flatMap(([, path]) => path ?? []).filter((path) => !left.has(path));
  return { files: files.filter((path) => !submodules.includes(path)), submodules };
}

const [NOT_CHECKED_OUT, SUBMODULE] = ["S", "160000"];

const isThere = (path: string): boolean => linkStatsAt(path) !== undefined;

/** `undefined`: it is deleted. */
async function indexLine(
  workspace: string,
  scratch: string,
  path: string,
  content: Content | undefined,
): Promise<string | undefined> {
  if (content === undefined || content.kind === "other") return undefined;
  const bytes = content.kind === "file" ? content.bytes : Buffer.from(content.target);
  const file = join(scratch, "content");
  writeFileSync(file, bytes);
  // A link has no line ends or other filters.
  const filters = content.kind === "file" ? ["--path", path] : ["--no-filters"];
  const id = (await git(workspace, ["hash-object", "-w", ...filters, file])).trim();
  const mode = content.kind === "link" ? "120000" : content.executable ? "100755" : "100644";
  return `${mode} ${id}\t${path}\0`;
}

const commit = async (workspace: string, tree: string, parent: string, message: string): Promise<string> =>
  (await git(workspace, ["commit-tree", tree, "-p", parent, "-F", "-"], { input: message })).trim();

/** Runs no program that the repository names. Files with line ends of both kinds are committed, too. */
const SAFE = ["hooksPath=/dev/null", "fsmonitor=false", "safecrlf=false"].flatMap((setting) => [
  "-c",
  `core.${setting}`,
]);
const UNSIGNED = ["-c", "commit.gpgSign=false"];

const git = (
  cwd: string,
  args: readonly string[],
  options: Pick<ProgramOptions, "env" | "input"> = {},
): Promise<string> => runGit(cwd, [...SAFE, ...UNSIGNED, ...args], { timeout: 120_000, ...options });

/** The same; `undefined`: Git failed. */
const tryGit = (cwd: string, args: readonly string[]): Promise<string | undefined> =>
  git(cwd, args).catch(() => undefined);
