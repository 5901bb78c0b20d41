/**
 * The copy of a workspace that the agents of one thread work in. Its folder has
 * - `tree`, where they work,
 * - `base`, each file as it was when it was copied, or as far as its changes were applied since,
 * - `manifest.json`, the stamps of all files at that time,
 * - `reviews`, the decisions of people, and a folder `apply-…` while one is carried out.
 */
import * as fs from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { constants, readdirSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { mapAtMost } from "../core/concurrency.ts";
import { realPath } from "../core/real-path.ts";
import type { ReviewRecord } from "../runs/proposals.ts";
import { type Content, type FileRules, type Found, Folder, isSameContent } from "./content.ts";
import { type ScannedFile, copyFolder, nothingThere, scan, stampOf } from "./scan.ts";
import { gitFolders } from "../backends/sandbox/starting-places.ts";
import { orElse } from "../core/errors.ts";
import { askGit, openPlainRepository } from "../core/git.ts";
import { oneLine } from "../core/text.ts";

interface CopiedFile {
  original: string;
  /** Stamp in `tree`; absent after another content was put there. */
  copy?: string;
  /** Git ignores it. */
  ignored?: true;
}

/** A version of a file that a person did not apply. */
export interface Decided {
  version: string;
  how: "left" | "refused" | "branch";
  message?: string;
}

export interface Manifest {
  /** The folder that was copied. */
  workspace: string;
  /** The run that updated the copy last. */
  run: string;
  copiedAt: number;
  files: Record<string, CopiedFile>;
  decided: Record<string, Decided>;
}

export interface Sides {
  path: string;
  base: Content | undefined;
  proposed: Content | undefined;
  folder: Found;
  ignored: boolean;
  /** Path of `base` and `folder`, for a file that has another path in `tree`; the folder has nothing at the new one. */
  from?: string;
}

const AT_ONCE = 8;
/** The next manifest, until it is complete. */
export const UNFINISHED = "manifest.next.json";

/** Folder name of a thread's copy. @throws for an id that this program does not make */
export function placeName(threadId: string): string {
  if (!/^[\w-]{1,100}$/.test(threadId)) throw new Error("The id of a thread cannot name a folder.");
  return threadId;
}

/** The folder in which the agents of a thread work. */
export const copyOf = (folder: string, threadId: string): string => join(folder, placeName(threadId), "tree");

export class WorkspaceCopy {
  readonly #place: string;
  readonly #rules: FileRules;
  readonly #before: ReadonlyMap<string, Content | undefined>;
  readonly base: Folder;
  readonly tree: Folder;

  /** `place` exists. `before`: contents to show instead of the present ones, by folder and path. */
  constructor(place: string, rules: FileRules, before: ReadonlyMap<string, Content | undefined> = new Map()) {
    this.#place = place;
    this.#rules = rules;
    this.#before = before;
    this.base = new Folder(join(place, "base"));
    this.tree = new Folder(join(place, "tree"));
  }

  folder({ workspace }: Manifest): Folder {
    return new Folder(workspace, this.#rules);
  }

  at(...names: string[]): string {
    return join(this.#place, ...names);
  }

  /** Makes the copy at a place where nothing is; after a crash nothing is there either. */
  static async make(
    place: string,
    source: { workspace: string; run: string; rules: FileRules; maxBytes: number; now: number },
    guard: () => Promise<void>,
  ): Promise<void> {
    const { workspace, run, rules, maxBytes, now } = source;
    const making = `${place}.making-${randomBytes(6).toString("hex")}`;
    // Processes that were ended left them, or processes that may not put theirs in place any more.
    for (const name of await fs.readdir(dirname(place))) {
      if (!name.startsWith(`${basename(place)}.making`)) continue;
      // This process may be the one that was stopped, and the folder that of its successor.
      await guard();
      await fs.rm(join(dirname(place), name), { recursive: true, force: true });
    }
    try {
      await fs.mkdir(join(making, "base"), { recursive: true });
      await fs.mkdir(join(making, "reviews"));
      const found = await filesOf(workspace, rules);
      await copyFolder(workspace, join(making, "tree"), { ...rules, maxBytes });
      const files: Record<string, CopiedFile> = {};
      const tree = realPath(join(making, "tree"));
      const folders = new Map(found.map(({ path }) => [dirname(path), ""]));
      for (const folder of folders.keys()) folders.set(folder, realPath(join(tree, folder)));
      await mapAtMost(AT_ONCE, found, async ({ path, stamp, ignored }) => {
        // A link may have taken the place of a folder.
        if (folders.get(dirname(path)) !== join(tree, dirname(path))) return;
        const copy = await copyPlain(join(tree, path), join(making, "base", path));
        if (copy !== undefined) files[path] = { original: stamp, copy, ...(ignored ? { ignored } : {}) };
      });
      await writeManifest(making, { workspace, run, copiedAt: now, files, decided: {} });
      await guard();
      await fs.rename(making, place);
    } catch (thrown) {
      await fs.rm(making, { recursive: true, force: true });
      throw thrown;
    }
  }

  async manifest(): Promise<Manifest> {
    return JSON.parse(await fs.readFile(this.at("manifest.json"), "utf8")) as Manifest; // written by `writeManifest`
  }

  /**
   * Names the commits in the repositories of the copy that its workspace does not have, such as
   * `1a2b3c4 Fix the parser (feature)`. Those of a repository inside begin with its path.
   */
  async commits({ workspace }: Pick<Manifest, "workspace">): Promise<string[]> {
    const [root, original] = [realPath(this.at("tree")), realPath(workspace)];
    const found: string[] = [];
    for (const folder of gitFolders(root)) {
      const own = join(folder, "objects");
      // A copy begins without any objects of its own.
      const objects = orElse(() => readdirSync(own, { recursive: true, encoding: "utf8" }), []);
      if (!objects.some((name) => /^[0-9a-f]{2}\/|^pack\//.test(name))) continue;
      const path = relative(root, folder);
      const commits = await newCommits(folder, join(original, path)).catch(() => []);
      const inner = path.replace(/(?:^|\/)\.git(?:\/modules)?(?=\/|$)/, "").replace(/^\//, "");
      found.push(...commits.map((line) => oneLine(inner === "" ? line : `${inner}: ${line}`, 200)));
    }
    return found.slice(0, 50);
  }

  /** The decisions of people, oldest first. */
  async reviews(): Promise<ReviewRecord[]> {
    const names = (await fs.readdir(this.at("reviews"))).filter((name) => name.endsWith(".json"));
    const texts = await mapAtMost(AT_ONCE, names, (name) => fs.readFile(this.at("reviews", name), "utf8"));
    // Written by `carryOut`.
    return texts.map((text) => JSON.parse(text) as ReviewRecord).toSorted((a, b) => a.at - b.at);
  }

  async #read(where: "folder" | "tree" | "base", folder: Folder, path: string): Promise<Found> {
    const key = `${where} ${path}`;
    if (!this.#before.has(key)) return folder.read(path);
    return { content: this.#before.get(key), version: undefined };
  }

  /** The files that agents changed and the folder does not have so, in the order of their paths. */
  async changed(manifest: Manifest): Promise<Sides[]> {
    const { files } = manifest;
    const found = new Map((await scan(this.at("tree"))).map((file) => [file.path, file]));
    const known = Object.entries(files).flatMap(([path, { copy, ignored = false }]) => {
      const now = found.get(path);
      return now !== undefined && now.stamp === copy ? [] : [{ path, ignored: now?.ignored ?? ignored }];
    });
    const added = [...found.values()].filter(({ path }) => !Object.hasOwn(files, path));
    // The files of `tree` that may differ from `base`.
    const touched = new Map([...known, ...added].map(({ path, ignored }) => [path, { path, ignored }]));
    for (const key of this.#before.keys()) {
      const path = key.slice(key.indexOf(" ") + 1);
      if (!touched.has(path)) touched.set(path, { path, ignored: files[path]?.ignored === true });
    }
    const inOrder = [...touched.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
    const folder = this.folder(manifest);
    const sides = await mapAtMost(AT_ONCE, inOrder, async ({ path, ignored }) => {
      const [base, proposed] = await Promise.all([
        this.#read("base", this.base, path),
        this.#read("tree", this.tree, path),
      ]);
      if (isSameContent(base.content, proposed.content)) return undefined;
      const now = await this.#read("folder", folder, path);
      if (isSameContent(proposed.content, now.content)) return undefined;
      return { path, base: base.content, proposed: proposed.content, folder: now, ignored };
    });
    return sides.filter((one) => one !== undefined);
  }

  /** Copies the present files of the folder, except those that an agent changed. */
  async refresh(manifest: Manifest, { run, now }: { run: string; now: number }, guard: () => Promise<void>) {
    const found = new Map((await filesOf(manifest.workspace, this.#rules)).map((file) => [file.path, file]));
    const files = { ...manifest.files };
    const stale = Object.keys(files).filter((path) => found.get(path)?.stamp !== files[path]?.original);
    const fresh = [...found.keys()].filter((path) => !Object.hasOwn(files, path));
    const folder = this.folder(manifest);
    await mapAtMost(AT_ONCE, [...stale, ...fresh], async (path) => {
      const [base, proposed] = await Promise.all([this.base.read(path), this.tree.read(path)]);
      if (!isSameContent(base.content, proposed.content)) return;
      const { content } = await folder.read(path);
      if (content?.kind === "other") return;
      await guard();
      if ((await this.tree.put(path, content, proposed)) !== undefined) return;
      await this.base.put(path, content, base);
      const original = found.get(path);
      if (content === undefined || original === undefined) delete files[path];
      else files[path] = { original: original.stamp, ...(original.ignored ? { ignored: true } : {}) };
    });
    await guard();
    await writeManifest(this.#place, { ...manifest, files, run, copiedAt: now });
  }
}

/** Files of a workspace, without those in some places of it. */
const filesOf = async (workspace: string, { without }: FileRules): Promise<ScannedFile[]> =>
  (await scan(workspace)).filter(
    ({ path }) => !without.some((place) => `${join(workspace, path)}/`.startsWith(`${place}/`)),
  );

/** Copies one file or link; returns the stamp of the copy, or undefined if there is nothing to copy. */
async function copyPlain(from: string, to: string): Promise<string | undefined> {
  try {
    const stats = await fs.lstat(from);
    await fs.mkdir(dirname(to), { recursive: true });
    if (stats.isSymbolicLink()) await fs.symlink(await fs.readlink(from), to);
    else {
      await fs.copyFile(from, to, constants.COPYFILE_FICLONE);
      await fs.utimes(to, stats.atime, stats.mtime);
    }
    return stampOf(await fs.lstat(to, { bigint: true }));
  } catch (thrown) {
    nothingThere(thrown);
    return undefined;
  }
}

async function writeManifest(place: string, manifest: Manifest): Promise<void> {
  await fs.writeFile(join(place, UNFINISHED), JSON.stringify(manifest), { flush: true });
  await fs.rename(join(place, UNFINISHED), join(place, "manifest.json"));
}

async function newCommits(folder: string, original: string): Promise<string[]> {
  const refs = ["for-each-ref", "--format=^%(objectname)"];
  const head = askGit(original, ["rev-parse", "--verify", "HEAD"]).then(
    (commit) => `^${commit.trim()}`,
    () => "",
  );
  const known = [await askGit(original, refs), await head].join("\n").split("\n");
  const { git, close } = await openPlainRepository(folder);
  try {
    const input = known.filter((line) => line !== "").join("\n");
    const format = ["--ignore-missing", "--no-show-signature", "--format=%h %s (%S)", `-n50`];
    const lines = await git(folder, ["log", ...format, "--all", "HEAD", "--stdin", "--"], {
      input: `${input}\n`,
    });
    return lines.split("\n").flatMap((line) => (line === "" ? [] : [line.replace("(refs/heads/", "(")]));
  } finally {
    close();
  }
}
