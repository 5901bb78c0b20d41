/** Finds the folders and files that programs on the search path need besides those of the system. */
import { existsSync, readFileSync, readdirSync, readlinkSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { orElse } from "../../core/errors.ts";
import { realPath } from "../../core/real-path.ts";
import { isExecutable, statsAt } from "../../core/stats.ts";
import {
  LOCAL_PROGRAMS,
  SYSTEM_FOLDERS,
  SYSTEM_PATH,
  type SandboxMount,
  nameMatcher,
  wordsOf,
} from "./environment.ts";

function matcher(words: string): (name: string) => boolean {
  const matches = wordsOf(words).map(nameMatcher);
  return (name) => matches.some((fits) => fits(name));
}

/**
 * Parts of a package that its programs need. Settings (`etc`, `conf`) and data (`var`, `data`) are not among them, nor
 * is anything unknown; `execute.readOnly` shows more.
 */
const isPart = matcher(`
  bin sbin lib lib32 lib64 libexec share include man pyvenv.cfg node_modules dist package.json boot jbr jmods jre legal
  release releases erts-* pkg src go.env VERSION Cellar Frameworks opt nvvm targets platform *-linux-* *-none-*
  host locales MEIPreload modules packs plugins resources runtimes sdk sdk-manifests shared WidevineCdm
`);
/** Files beside a program outside `bin` that it may need. Executable ones are shown too. */
const isCode = matcher(`
  *.so *.so.* *.dylib *.dll *.jar *.node *.wasm *.pak *.asar *.deps.json *.runtimeconfig.json icudtl.dat *snapshot*.bin
  *.sh *.py *.js *.cjs *.mjs *.pl *.pm *.rb *.lua
`);
/** Most of these files in a folder. Each is a mount, and the time for mounts grows with the square of their number. */
const MAX_FILES = 150;
/** Folders that hold nothing but programs or libraries. */
const PROGRAMS = /^(s?bin|shims|lib\w*)$/;

/** Managers whose programs start those of a version: folder below the home folder, variable that names it, needed parts. */
const MANAGERS: readonly (readonly [folder: string, variable: string, parts: string])[] = [
  [".asdf", "ASDF_DATA_DIR", "bin lib libexec installs plugins shims asdf.sh"],
  [".local/share/mise", "MISE_DATA_DIR", "installs plugins shims"],
  [".nodenv", "NODENV_ROOT", "bin libexec plugins shims version versions"],
  [".pyenv", "PYENV_ROOT", "bin libexec plugins pyenv.d shims version versions"],
  [".rbenv", "RBENV_ROOT", "bin libexec plugins shims version versions"],
  [".rustup", "RUSTUP_HOME", "settings.toml toolchains"],
  [".volta", "VOLTA_HOME", "bin layout.v* tools"],
];
/** Folders that commands see whole, or in parts that are chosen elsewhere. */
const SYSTEM = ["/etc", ...SYSTEM_FOLDERS];
/** Their `bin` lies beside credentials and files of other programs. */
const SHARED = [".local", ".cargo", ".config", ".docker"];
export interface Programs {
  mounts: SandboxMount[];
  /** Variables by which managers of versions find their folder. */
  env: Record<string, string>;
}

/** Never gives a folder with the home folder or with `workspace` in it, nor one inside the workspace. */
export function programFolders(
  env: NodeJS.ProcessEnv,
  workspace: string,
  home: string = homedir(),
): Programs {
  const managers = MANAGERS.map(([folder, variable, parts]) => ({
    variable,
    isNeeded: matcher(parts),
    root: realPath(env[variable] ?? join(home, folder)),
  }));
  const [owner, files] = [realPath(home), realPath(workspace)];
  const shared = SHARED.map((name) => join(owner, name));
  const isLocalOpen = realPath(LOCAL_PROGRAMS) === LOCAL_PROGRAMS;
  const isOpen = (path: string): boolean =>
    ((isLocalOpen && isBelow(LOCAL_PROGRAMS, path)) || !SYSTEM.some((own) => isBelow(own, path))) &&
    ![owner, files].some((own) => isBelow(path, own)) &&
    !isBelow(files, path) &&
    !shared.includes(path);
  /** Finds the parts that the programs of a folder need, or only the one that a link leads to. */
  const neededIn = (folder: string, program?: string): string[] => {
    if (!isOpen(realPath(folder))) return [];
    const manager = managers.find(({ root }) => isBelow(root, folder) && isOpen(root));
    if (manager !== undefined) return pathsIn(manager.root, manager.isNeeded);
    const prefix = dirname(folder);
    const isPrefix = /^(s|[.])?bin$/.test(basename(folder)) && isOpen(realPath(prefix));
    // The owner of the home folder may have linked a program that stands among private files.
    if (program !== undefined && isBelow(owner, program) && !existsSync(join(prefix, "lib")))
      return [program];
    if (isPrefix && basename(prefix) === "node_modules") return [prefix];
    if (isPrefix) return [folder, ...pathsIn(prefix, partsOf(prefix))];
    return PROGRAMS.test(basename(folder)) ? [folder] : codeIn(folder);
  };
  const path = [...(env["PATH"] ?? "").split(":"), ...SYSTEM_PATH.split(":"), ...libraryFolders()];
  const entries = path.filter((entry) => isAbsolute(entry) && statsAt(entry)?.isDirectory() === true);
  const found = [...new Set(entries)].flatMap((entry) => {
    const links = linkedFrom(realPath(entry)).filter((target) => isOpen(target));
    const linked = links.flatMap((target) => [target, realPath(target)]);
    // Programs of rustup stand in the folder of Cargo and start those of a toolchain.
    const isCargo = realPath(entry) === join(owner, ".cargo/bin");
    return [
      ...[entry, realPath(entry)].flatMap((folder) => neededIn(folder)),
      ...linked.flatMap((program) => neededIn(dirname(program), program)),
      ...(isCargo ? neededIn(realPath(env["RUSTUP_HOME"] ?? join(home, ".rustup"))) : []),
    ];
  });
  const open = [...new Set(found)].filter((place) => isOpen(place) && isOpen(realPath(place)));
  const mounts = open.filter((place) => !open.some((other) => other !== place && isBelow(other, place)));
  const used = managers.filter(({ root }) => mounts.some((place) => isBelow(root, place)));
  return {
    mounts: mounts.sort().map((place) => ({ folder: place, at: place })),
    env: Object.fromEntries(used.map(({ variable, root }) => [variable, root])),
  };
}

/** `isInside` for absolute paths in their plain form, of which there are thousands. */
const isBelow = (folder: string, path: string): boolean =>
  `${path}/`.startsWith(folder === "/" ? folder : `${folder}/`);

/** A folder may be open to programs that are started in it, and closed to whoever lists it. */
const pathsIn = (folder: string, isWanted: (name: string) => boolean): string[] =>
  orElse(() => readdirSync(folder), []).flatMap((name) => (isWanted(name) ? [join(folder, name)] : []));

/** Java does not start without its settings. */
const partsOf = (prefix: string): ((name: string) => boolean) =>
  existsSync(join(prefix, "lib/modules")) ? (name) => isPart(name) || name === "conf" : isPart;

/** The programs and libraries of a folder, and the parts of a package beside them. */
function codeIn(folder: string): string[] {
  const isWanted = (name: string): boolean =>
    isPart(name) ||
    isCode(name) ||
    (isExecutable(join(folder, name)) && statsAt(join(folder, name))?.isFile() === true);
  return pathsIn(folder, isWanted).slice(0, MAX_FILES);
}

/** Each place elsewhere that the links to files in a folder lead to, also by way of other links. */
function linkedFrom(folder: string): string[] {
  const links = orElse(() => readdirSync(folder, { withFileTypes: true }), []).filter((entry) =>
    entry.isSymbolicLink(),
  );
  const paths = links
    .map(({ name }) => join(folder, name))
    .filter((path) => statsAt(path)?.isFile() === true);
  return paths.flatMap((path) => targetsOf(path)).filter((target) => !isBelow(folder, target));
}

function targetsOf(path: string): string[] {
  const target = orElse(() => resolve(dirname(path), readlinkSync(path)), undefined);
  return target === undefined ? [] : [target, ...targetsOf(target)];
}

/** The folders in which programs of Linux look for libraries. */
function libraryFolders(): string[] {
  const lists = pathsIn("/etc/ld.so.conf.d", (name) => name.endsWith(".conf"));
  return lists.flatMap((list) => orElse(() => readFileSync(list, "utf8"), "").match(/^\/\S+/gm) ?? []);
}
