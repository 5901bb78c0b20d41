/** The configuration file of a client on the disk. */
import { constants } from "node:fs";
import { chmod, copyFile, mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { codeOf } from "../../core/errors.ts";
import { isInside, realPath } from "../../core/real-path.ts";
import { decodeUtf8 } from "../../core/utf8.ts";

/** Takes the place of a copy if there was no file. A configuration never has this text. */
const NO_FILE = "deepagent-mcp made this file.\n";
const NEW_FILE_MODE = 0o600;

/** A client's configuration file, behind the links that led to it when this was made. */
export class ConfigFile {
  readonly path: string;
  /** A copy of the file from before this program first changed it. */
  readonly backup: string;
  readonly #target: string;
  readonly #backupTarget: string;

  constructor(path: string) {
    this.path = path;
    this.backup = `${path}.before-deepagent`;
    this.#target = realPath(path);
    this.#backupTarget = realPath(this.backup);
  }

  /** The file or its copy that links take out of `folder`, and its place there; `undefined`: both are inside. */
  outside(folder: string): { path: string; place: string } | undefined {
    const inside = realPath(folder);
    const found = [
      { path: this.path, place: this.#target },
      { path: this.backup, place: this.#backupTarget },
    ];
    return found.find(({ place }) => !isInside(inside, place));
  }

  /** Reads the text; `undefined` when there is no file. Fails if it is not a text file. */
  read(): Promise<string | undefined> {
    return readText(this.#target);
  }

  /** Reads the text before the first change; "" if there was no file. Returns undefined if that is unknown. */
  async readBackup(): Promise<string | undefined> {
    const text = await readText(this.#backupTarget);
    return text === NO_FILE ? "" : text;
  }

  /**
   * Replaces the text at once. Links to it, its mode and the first copy of it stay as they are. `isFirst`: keeps a
   * copy of it, or a note that there was no file, unless there is one.
   */
  async write(text: string, isFirst: boolean): Promise<void> {
    const target = this.#target;
    await mkdir(dirname(target), { recursive: true });
    const mode = await stat(target).then((found) => found.mode & 0o7777, absent);
    if (mode !== undefined && (mode & 0o222) === 0) throw new Error("it is read-only");
    if (isFirst && mode !== undefined)
      await copyFile(target, this.#backupTarget, constants.COPYFILE_EXCL).catch(unlessThere);
    else if (isFirst)
      await writeFile(this.#backupTarget, NO_FILE, { mode: NEW_FILE_MODE, flag: "wx" }).catch(unlessThere);
    const draft = `${target}.${process.pid}.new`;
    try {
      await writeFile(draft, text, { mode: NEW_FILE_MODE, flag: "wx", flush: true });
      if (mode !== undefined) await chmod(draft, mode);
      await rename(draft, target);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  }

  /** Restores the original: the copy, or no file if this program created it. */
  async restore(): Promise<void> {
    const text = await readText(this.#backupTarget);
    if (text === NO_FILE) await rm(this.#target);
    else if (text !== undefined) await this.write(text, false);
  }

  /** Deletes the copy, which may hold keys of other servers. */
  async forget(): Promise<void> {
    await rm(this.#backupTarget, { force: true });
  }
}

async function readText(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(absent);
  if (found === undefined) return undefined;
  if (!found.isFile()) throw new Error("it is not a file");
  const text = decodeUtf8(await readFile(path));
  if (text === undefined) throw new Error("it is not a text in UTF-8");
  return text;
}

function absent(error: unknown): undefined {
  if (codeOf(error) !== "ENOENT") throw error;
}

function unlessThere(error: unknown): void {
  if (codeOf(error) !== "EEXIST") throw error;
}
