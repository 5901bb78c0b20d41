/** Finds the folders that programs on the search path need besides those of the system. */
import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join } from "node:path";
import { orElse } from "../../core/errors.ts";
import { isInside, realPath } from "../../core/real-path.ts";
import { statsAt } from "../../core/stats.ts";
import { SYSTEM_FOLDERS, type SandboxMount } from "./environment.ts";

/** Programs that manage versions: their folder below the home folder, and the variable that names it. */
const MANAGERS: readonly (readonly [folder: string, variable: string])[] = [
  [".asdf", "ASDF_DATA_DIR"],
  [".local/share/fnm", "FNM_DIR"],
  [".local/share/mise", "MISE_DATA_DIR"],
  [".nodenv", "NODENV_ROOT"],
  [".nvm", "NVM_DIR"],
  [".pyenv", "PYENV_ROOT"],
  [".rbenv", "RBENV_ROOT"],
  [".rustup", "RUSTUP_HOME"],
  [".sdkman", "SDKMAN_DIR"],
  [".volta", "VOLTA_HOME"],
];
/** Their `bin` lies beside credentials and files of other programs. */
const SHARED = [".local", ".cargo", ".config", ".docker"];
/** Links of one folder that are followed. */
const MAX_LINKS = 2000;

export interface Programs {
  mounts: SandboxMount[];
  /** Variables by which managers of versions find their folder. */
  env: Record<string, string>;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Never gives a folder with the home folder or with `workspace` in it, nor one inside the workspace. */
export function programFolders(env: Environment, workspace: string, home: string = homedir()): Programs {
  const managers = MANAGERS.map(([folder, variable]) => ({
    variable,
    root: realPath(env[variable] ?? join(home, folder)),
  }));
  const [owner, files] = [realPath(home), realPath(workspace)];
  const shared = SHARED.map((name) => join(owner, name));
  const isOpen = (place: string): boolean =>
    ![owner, files].some((own) => isInside(place, own)) &&
    ![files, ...SYSTEM_FOLDERS].some((own) => isInside(own, place)) &&
    !shared.includes(place);
  const around = (folder: string): string => {
    const manager = managers.find(({ root }) => isInside(root, folder))?.root;
    if (manager !== undefined && isOpen(manager)) return manager;
    const prefix = dirname(folder);
    return basename(folder) === "bin" && isOpen(prefix) && existsSync(join(prefix, "lib")) ? prefix : folder;
  };
  const found = new Set<string>();
  for (const entry of (env["PATH"] ?? "").split(":").filter((path) => isAbsolute(path) && isFolder(path))) {
    const folder = realPath(entry);
    if (!isOpen(folder)) continue;
    for (const place of [around(folder), entry]) found.add(place);
    for (const target of linksOf(folder)) {
      const place = around(dirname(target));
      found.add(place === dirname(target) ? target : place);
    }
    // Programs of rustup stand in the folder of Cargo and start those of a toolchain.
    if (folder === join(owner, ".cargo/bin"))
      found.add(realPath(env["RUSTUP_HOME"] ?? join(home, ".rustup")));
  }
  const mounts = [...found].filter((place) => isOpen(place) && existsSync(place)).sort();
  const used = managers.filter(({ root }) => mounts.includes(root));
  return {
    mounts: mounts.map((place) => ({ folder: place, at: place })),
    env: Object.fromEntries(used.map(({ variable, root }) => [variable, root])),
  };
}

const isFolder = (path: string): boolean => statsAt(path)?.isDirectory() === true;

/** The targets of the links in a folder that lie elsewhere. */
function linksOf(folder: string): string[] {
  // A folder may be open to programs that are started in it, and closed to whoever lists it.
  const entries = orElse(() => readdirSync(folder, { withFileTypes: true }), []);
  const links = entries.filter((entry) => entry.isSymbolicLink());
  const targets = links.slice(0, MAX_LINKS).map(({ name }) => realPath(join(folder, name)));
  return targets.filter((target) => !isInside(folder, target));
}
