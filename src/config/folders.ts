/** Folders that runs may work in: patterns such as `~/code/*`, in which a name `*` stands for any folder. */
import { lstatSync, readdirSync } from "node:fs";
import { isAbsolute, join, normalize, parse, relative, sep } from "node:path";
import { orElse } from "../core/errors.ts";
import { isInside, realPath } from "../core/real-path.ts";
import { ANY_FOLDER as ANY } from "./paths.ts";

/** A folder, and the path by which its pattern names it. */
interface AllowedFolder {
  /** Without links. */
  path: string;
  named: string;
}

/**
 * Returns the folders that exist, sorted by their names. A link below the fixed beginning of a pattern is none of them,
 * nor is a hidden folder that only `*` names, nor one of `hidden` or below it.
 */
export function allowedFolders(patterns: readonly string[], hidden: readonly string[] = []): AllowedFolder[] {
  const closed = hidden.map(realPath);
  const bases = patterns.map(expandPattern);
  const all = bases.flatMap(({ below }) => below);
  // Runs in one folder could make a link of what another pattern begins with.
  const isMoved = ({ path, named }: ReturnType<typeof expandPattern>): boolean =>
    all.some(
      (other) =>
        named.startsWith(other.named + sep) && path !== join(other.path, relative(other.named, named)),
    );
  const found = bases.filter((base) => !isMoved(base)).flatMap(({ below }) => below);
  return [...new Map(found.map((folder) => [folder.path, folder])).values()]
    .filter(({ path }) => !closed.some((folder) => isInside(folder, path)))
    .toSorted((one, other) => (one.path < other.path ? -1 : 1));
}

/** The fixed beginning of a pattern, and the folders that the whole of it stands for. */
function expandPattern(pattern: string): AllowedFolder & { below: AllowedFolder[] } {
  const { root } = parse(pattern);
  const names = pattern.slice(root.length).split(/[\\/]/).filter(Boolean);
  const first = names.includes(ANY) ? names.indexOf(ANY) : names.length;
  const named = join(root, ...names.slice(0, first));
  const path = realPath(named);
  let folders: AllowedFolder[] = [{ path, named }];
  for (const name of names.slice(first))
    folders = folders.flatMap((folder) => {
      const entries = name === ANY ? orElse(() => readdirSync(folder.path, { withFileTypes: true }), []) : [];
      const visible = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith("."));
      const found = name === ANY ? visible.map((entry) => entry.name).toSorted() : [name];
      return (
        found
          // More are left out, in the order of their names.
          .slice(0, 2000)
          .map((one) => ({ path: join(folder.path, one), named: join(folder.named, one) }))
      );
    });
  const below = folders.filter((folder) => orElse(() => lstatSync(folder.path).isDirectory(), false));
  return { path, named, below };
}

/** Finds the folders that a text names: by the whole path, or by the last names of it. */
export function foldersNamed(wanted: string, folders: readonly AllowedFolder[]): string[] {
  const plain = normalize(wanted).replace(/(?<=.)[\\/]$/, "");
  if (wanted.split(/[\\/]/).includes("..")) return [];
  const whole = folders.filter(({ path, named }) => path === plain || named === plain);
  const ending = isAbsolute(plain) ? [] : folders.filter(({ path }) => path.endsWith(sep + plain));
  return (whole.length > 0 ? whole : ending).map(({ path }) => path);
}
