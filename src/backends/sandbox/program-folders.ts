/** Finds the folders and files that programs on the search path need besides those of the system. */
import { existsSync, readFileSync, readdirSync, readlinkSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { orElse } from "../../core/errors.ts";
import { isInside, realPath } from "../../core/real-path.ts";
import { isExecutable, statsAt } from "../../core/stats.ts";
import type { SandboxMount } from "./environment.ts";
import { LOCAL_PROGRAMS, SYSTEM_FOLDERS, SYSTEM_PATH, nameMatcher, splitWords } from "./environment.ts";
import table from "./program-folders.json" with { type: "json" };

function matcher(words: string): (name: string) => boolean {
  const matches = splitWords(words).map(nameMatcher);
  return (name) => matches.some((fits) => fits(name));
}

/**
 * Names in a package that its programs need. Settings (`etc`, `conf`) and data (`var`, `data`) are not among them, nor
 * is anything unknown; `execute.readOnly` shows more.
 */
const isPart = matcher(table.parts);

export interface Programs {
  mounts: SandboxMount[];
  /** Variables by which managers of versions find their folder. */
  env: Record<string, string>;
}

/** Never returns a folder with the home folder or with `workspace` in it, nor one inside the workspace. */
export function programFolders(
  env: NodeJS.ProcessEnv,
  workspace: string,
  home: string = homedir(),
): Programs {
  const managers = table.managers.map(({ folder, variable, parts }) => ({
    variable,
    isNeeded: matcher(parts),
    root: realPath(env[variable] ?? join(home, folder)),
  }));
  const [owner, files] = [realPath(home), realPath(workspace)];
  // Their `bin` lies beside credentials and files of other programs.
  const shared = [".local", ".cargo", ".config", ".docker"].map((name) => join(owner, name));
  const isOpen = (path: string): boolean =>
    ((isInside(LOCAL_PROGRAMS, path) && realPath(LOCAL_PROGRAMS) === LOCAL_PROGRAMS) ||
      !["/etc", ...SYSTEM_FOLDERS].some((own) => isInside(own, path))) &&
    ![owner, files].some((own) => isInside(path, own)) &&
    !isInside(files, path) &&
    !shared.includes(path);
  /** Finds the parts that the programs of a folder need, or only the one that a link leads to. */
  const neededIn = (folder: string, program?: string): string[] => {
    if (!isOpen(realPath(folder))) return [];
    const manager = managers.find(({ root }) => isInside(root, folder) && isOpen(root));
    if (manager !== undefined) return wantedPaths(manager.root, manager.isNeeded);
    const prefix = dirname(folder);
    // The owner of the home folder may have linked a program that stands among private files.
    if (program !== undefined && isInside(owner, program) && !existsSync(join(prefix, "lib")))
      return [program];
    if (!/^(s?bin|[.]bin|shims|lib\w*)$/.test(basename(folder))) return wantedPaths(folder, isPart, true);
    if (!folder.endsWith("bin") || !isOpen(realPath(prefix))) return [folder];
    return basename(prefix) === "node_modules" ? [prefix] : [folder, ...wantedPaths(prefix, isPart)];
  };
  // Programs of Linux look for libraries in the folders that these files name.
  const lists = wantedPaths("/etc/ld.so.conf.d", (name) => name.endsWith(".conf"));
  const libraries = lists.flatMap((list) => orElse(() => readFileSync(list, "utf8"), "").split("\n"));
  const path = [...`${env["PATH"] ?? ""}:${SYSTEM_PATH}`.split(":"), ...libraries];
  const entries = path.filter((entry) => isAbsolute(entry) && statsAt(entry)?.isDirectory() === true);
  const found = [...new Set(entries)].flatMap((entry) => {
    const linked = linkedFrom(realPath(entry)).filter((target) => isOpen(target));
    // Programs of rustup stand in the folder of Cargo and start those of a toolchain.
    const isCargo = realPath(entry) === join(owner, ".cargo/bin");
    return [
      ...[entry, realPath(entry)].flatMap((folder) => neededIn(folder)),
      ...linked
        .flatMap((target) => [target, realPath(target)])
        .flatMap((file) => neededIn(dirname(file), file)),
      ...(isCargo ? neededIn(realPath(env["RUSTUP_HOME"] ?? join(home, ".rustup"))) : []),
    ];
  });
  const open = [...new Set(found)].filter((place) => isOpen(place) && isOpen(realPath(place)));
  const mounts = open.filter((place) => !open.some((other) => place.startsWith(`${other}/`)));
  const used = managers.filter(({ root }) => mounts.some((place) => isInside(root, place)));
  return {
    mounts: mounts.sort().map((place) => ({ folder: place, at: place })),
    env: Object.fromEntries(used.map(({ variable, root }) => [variable, root])),
  };
}

/** Finds wanted entries, and the settings of Java. `withPrograms`: also programs, but 150 in all: mounts take time. */
function wantedPaths(folder: string, isWanted: (name: string) => boolean, withPrograms = false): string[] {
  // A folder may be open to programs that are started in it, and closed to whoever lists it.
  const paths = orElse(() => readdirSync(folder), []).map((name) => join(folder, name));
  const isProgram = (path: string): boolean => isExecutable(path) && statsAt(path)?.isFile() === true;
  const isJava = existsSync(join(folder, "lib/modules"));
  const isNeeded = (path: string): boolean => isWanted(basename(path)) || (isJava && path.endsWith("/conf"));
  return paths
    .filter((path) => isNeeded(path) || (withPrograms && isProgram(path)))
    .slice(0, withPrograms ? 150 : Infinity);
}

/** Each place elsewhere that the links to files in a folder lead to, also by way of other links. */
function linkedFrom(folder: string): string[] {
  const entries = orElse(() => readdirSync(folder, { withFileTypes: true }), []);
  const links = entries.flatMap((entry) => (entry.isSymbolicLink() ? [join(folder, entry.name)] : []));
  const files = links.filter((link) => statsAt(link)?.isFile() === true);
  return files.flatMap((link) => linkTargets(link)).filter((target) => !isInside(folder, target));
}

function linkTargets(path: string): string[] {
  const target = orElse(() => resolve(dirname(path), readlinkSync(path)), undefined);
  return target === undefined ? [] : [target, ...linkTargets(target)];
}
