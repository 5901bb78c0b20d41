import type { Backend } from "../backends/backend.ts";
import type { Glob } from "../backends/glob/glob.ts";
import { baseName, joinPath, parentsOf, withoutSlash, withSlash } from "../backends/paths.ts";
import { closestName } from "../core/closest-names.ts";
import { displayName } from "../core/text.ts";
import type { ToolContext } from "./tool.ts";

/** Directories at the root, and names in a directory, that are looked at. */
const MAX_TOP = 8;
const MAX_NAMES = 2000;
/** Segments at the end of a path that may be right although those before them are not. */
const MAX_TAIL = 4;

/**
 * The file or directory that was probably meant by a virtual path that does not exist: the same path below a
 * directory of the root, the path with misspelt names corrected, or the end of it below a directory of the root.
 */
export async function nearestPath(
  path: string,
  backend: Backend,
  signal: AbortSignal,
): Promise<string | undefined> {
  const top = await topDirectories(backend, signal);
  const tails = [...parentsOf(path), path].map((parent) => path.slice(parent.lastIndexOf("/") + 1));
  const [whole = "", ...shorter] = tails;
  return (
    (await firstExisting(top, [whole], backend, signal)) ??
    (await corrected(path, backend, signal)) ??
    (await firstExisting(top, shorter.slice(-MAX_TAIL), backend, signal))
  );
}

/** A notice for a pattern that found nothing, when it was looked for in the root and in no directory there. */
export async function lookedAtRoot(
  glob: Glob,
  path: string,
  { backend, signal }: Pick<ToolContext, "backend" | "signal">,
): Promise<string[]> {
  const directories = path === "/" ? await topDirectories(backend, signal) : [];
  if (directories.length === 0 || directories.some((directory) => glob.reaches(directory.slice(1))))
    return [];
  const names = directories.map((directory) => displayName(withSlash(directory))).join(", ");
  return [`[looked in / only; to look in one of its directories, give it as path: ${names}]`];
}

/** The directories of the root, mounts among them. */
async function topDirectories(backend: Backend, signal: AbortSignal): Promise<string[]> {
  const { files = [] } = await backend.ls("/", { signal });
  const directories = files.filter(({ is_dir: isDirectory }) => isDirectory === true);
  return directories.slice(0, MAX_TOP).map(({ path }) => withoutSlash(path));
}

async function firstExisting(
  directories: readonly string[],
  names: readonly string[],
  backend: Backend,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (const name of names) {
    for (const directory of directories) {
      const candidate = joinPath(directory, name);
      const { files = [], error } = await backend.ls(candidate, { signal });
      if (error === undefined && files.length > 0) return candidate;
    }
  }
  return undefined;
}

/** The path with each name that does not exist replaced by the one spelt nearly the same. */
async function corrected(path: string, backend: Backend, signal: AbortSignal): Promise<string | undefined> {
  let at = "/";
  for (const wanted of path.split("/").slice(1)) {
    const { files = [] } = await backend.ls(at, { signal });
    const names = files.slice(0, MAX_NAMES).map((file) => baseName(file.path));
    const name = names.includes(wanted) ? wanted : closestName(wanted, names);
    if (name === undefined) return undefined;
    at = joinPath(at, name);
  }
  return at === path ? undefined : at;
}
