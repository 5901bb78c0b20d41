/**
 * Holds names in a folder for a time, so that a mount can cover them: a mount needs something to lie on. A held name
 * is an empty folder with one empty folder in it for each holder, which Git and copies do not notice. The last holder
 * removes it. Removing a folder fails while it has content, so nothing that somebody else made can be lost.
 */
import * as fs from "node:fs";
import { join } from "node:path";
import { codeOf, orElse } from "../../core/errors.ts";
import { processStat } from "../../core/process-mark.ts";

/** The content of a held `commondir`: the Git directory itself, which is what Git takes without the file. */
export const OWN_COMMON_FOLDER = ".";
/** The name that counts the holders of a `commondir` beside it. The script `removeHolders` has both values, too. */
const COMMON_FOLDER_HOLDERS = "deepagent-sandbox";

/** Holders by process, and by the process namespace in which its number counts. */
const HOLDER = /^deepagent-(\d+)-(\d+)-(\d+)-\d+$/;

let holders = 0;
/** The name prefix of this process's holders. */
export const ownHolders = (): string =>
  `deepagent-${process.pid}-${processStat(process.pid).start}-${processNamespace()}-`;

/** True if a path is held, and by nothing but processes of this program. */
export function isPlaceholder(path: string): boolean {
  const names = readNames(path);
  return names.length > 0 && names.every((name) => HOLDER.test(name));
}

/** Names that are held until `release`. */
export class Placeholders {
  readonly #holder = `${ownHolders()}${(holders += 1)}`;
  readonly folders: string[] = [];
  readonly files: string[] = [];

  /**
   * Holds `missing`, and a `commondir` in each of `gitFolders`. Skips names that others created in between, and places
   * where this user cannot create anything. Throws other errors of the file system, and then holds nothing.
   */
  static hold(missing: readonly string[], gitFolders: readonly string[]): Placeholders {
    const held = new Placeholders();
    try {
      for (const path of missing) held.#add(path);
      for (const folder of gitFolders) held.#addCommonFolder(folder);
      return held;
    } catch (error) {
      held.release();
      throw error;
    }
  }

  release(): void {
    for (const path of this.folders) {
      removeFolder(join(path, this.#holder));
      const isLast = removeFolder(path);
      if (!isLast || !path.endsWith(`/${COMMON_FOLDER_HOLDERS}`)) continue;
      const file = join(path, "..", "commondir");
      // Somebody else may remove it, too.
      const isOwn = orElse(() => fs.readFileSync(file, "utf8"), undefined) === OWN_COMMON_FOLDER;
      if (isOwn) orElse(() => fs.unlinkSync(file), undefined);
    }
  }

  #add(path: string): boolean {
    for (;;) {
      try {
        fs.mkdirSync(path);
      } catch (error) {
        if (["EACCES", "EPERM", "EROFS", "ENOTDIR", "ENOENT"].includes(codeOf(error) ?? "")) return false;
        if (codeOf(error) !== "EEXIST") throw error;
        for (const name of readNames(path)) {
          // Its process ended without removing it. Those of another process namespace are left.
          const [, pid = "", start, namespace] = HOLDER.exec(name) ?? [];
          const isOurs = pid !== "" && namespace === processNamespace();
          if (isOurs && processStat(Number(pid)).start !== start) removeFolder(join(path, name));
        }
        if (!readNames(path).every((name) => HOLDER.test(name))) return false;
      }
      try {
        fs.mkdirSync(join(path, this.#holder));
        this.folders.push(path);
        return true;
      } catch (error) {
        // The last of the other holders has just removed it.
        if (codeOf(error) !== "ENOENT") throw error;
      }
    }
  }

  #addCommonFolder(folder: string): void {
    if (!this.#add(join(folder, COMMON_FOLDER_HOLDERS))) return;
    const file = join(folder, "commondir");
    try {
      fs.writeFileSync(file, OWN_COMMON_FOLDER, { flag: "wx" });
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
    }
    this.files.push(file);
  }
}

function removeFolder(path: string): boolean {
  try {
    fs.rmdirSync(path);
    return true;
  } catch {
    return false;
  }
}

const processNamespace = (): string =>
  /\d+/.exec(orElse(() => fs.readlinkSync("/proc/self/ns/pid"), ""))?.[0] ?? "0";

const readNames = (folder: string): string[] => orElse(() => fs.readdirSync(folder), []);
