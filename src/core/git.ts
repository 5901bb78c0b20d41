/** Git outside of a sandbox: it runs no program that a repository, or a file in it, names. */
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { devNull, homedir, tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { type ProgramOptions, runProgram } from "./child-process.ts";
import { linkStatsAt } from "./stats.ts";

/** Variables that name another repository than that of a folder: Git sets them for hooks, and for what these start. */
const ELSEWHERE =
  /^GIT_(?:DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|PREFIX|NAMESPACE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES)$/;

type GitOptions = Pick<ProgramOptions, "env" | "input"> & { timeout?: number };

/**
 * Asks Git for names and settings of a folder's repository, and of no other. For commands that read nothing else: what
 * they could run for that is switched off. `env` is added.
 */
export const askGit = (folder: string, args: readonly string[], { env, ...options }: GitOptions = {}) => {
  const own = Object.entries(process.env).filter(([name]) => !ELSEWHERE.test(name));
  const off = ["--no-pager", "-c", "core.fsmonitor=false", "-c", `core.hooksPath=${devNull}`];
  // Missing objects of a partial clone are not fetched: its settings name a program for that.
  const unattended = { GIT_NO_LAZY_FETCH: "1", GIT_TERMINAL_PROMPT: "0" };
  return runProgram("git", [...off, ...args], {
    timeout: 120_000,
    ...options,
    cwd: folder,
    env: { ...Object.fromEntries(own), ...unattended, ...env },
  });
};

/** A repository with its objects and refs alone. `git` runs Git for a folder of files, with an index of its own. */
export type PlainRepository = Awaited<ReturnType<typeof openPlainRepository>>;

/** Settings for the storage of files and objects, and for the author of commits. */
const KEPT =
  /^(?:core\.(?:autocrlf|eol|filemode|ignorecase|precomposeunicode|sharedrepository|symlinks)|extensions\.(?:objectformat|refstorage)|i18n\.commitencoding|(?:author|committer|user)\.(?:name|email))$/;

/**
 * Opens the repository of a working tree without its settings, hooks, drivers and remotes, and without those of the
 * user and the system, which its files could choose: they are seen from a Git directory of our own.
 */
export async function openPlainRepository(folder: string) {
  const names = ["HEAD", "--git-common-dir", "--git-path", "objects", "--git-path", "index"];
  const [head = "", ...paths] = (await askGit(folder, ["rev-parse", ...names])).trim().split("\n");
  const [directory = "", objects = "", index = ""] = paths.map((path) => resolve(folder, path));
  const listed = (await askGit(folder, ["config", "--list", "-z"])).split("\0");
  const entries = listed.map((line) => line.split(/\n(.*)/s));
  const settings = new Map(entries.map(([name = "", value = "true"]) => [name, value]));
  const own = mkdtempSync(join(tmpdir(), "deepagent-git-"));
  const env = {
    GIT_DIR: own,
    GIT_OBJECT_DIRECTORY: objects,
    GIT_INDEX_FILE: join(own, "index"),
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: devNull,
    GIT_CONFIG_COUNT: "0",
    GIT_CONFIG_PARAMETERS: "",
    HOME: own,
    XDG_CONFIG_HOME: own,
  };
  const kept = [...settings].filter(([name]) => KEPT.test(name));
  const version = kept.some(([name]) => name.startsWith("extensions")) ? "1" : "0";
  // Attributes only name drivers: the settings with their commands are not kept.
  const ofUser = join(process.env["XDG_CONFIG_HOME"] ?? join(homedir(), ".config"), "git/attributes");
  const attributes = settings.get("core.attributesfile")?.replace(/^~(?=\/)/, homedir()) ?? ofUser;
  const lines = [
    ["core.repositoryformatversion", version],
    ["core.attributesfile", attributes],
    ["core.safecrlf", "false"],
    ...kept,
  ].map(([name = "", value]) => `[${name.replace(".", "]\n")} = ${JSON.stringify(value)}\n`);
  writeFileSync(join(own, "config"), lines.join(""));
  writeFileSync(join(own, "HEAD"), `${head}\n`);
  mkdirSync(join(own, "info"));
  // The index may be split.
  const parts = readdirSync(dirname(index)).filter((name) => name.startsWith("sharedindex."));
  const files = ["packed-refs", "info/attributes"].map((name) => join(directory, name));
  for (const file of [...files, ...parts.map((name) => join(dirname(index), name))])
    if (linkStatsAt(file)?.isFile() === true)
      copyFileSync(file, join(own, basename(file) === "attributes" ? "info" : "", basename(file)));
  for (const name of ["refs", "reftable", "logs"])
    if (linkStatsAt(join(directory, name))?.isDirectory() === true)
      symlinkSync(join(directory, name), join(own, name), "junction");
  const drivers = [...settings.keys()].map((name) => /^filter\.(.*)\.(?:clean|process)$/s.exec(name)?.[1]);
  const git = (
    files: string,
    args: readonly string[],
    { env: more, ...options }: Omit<GitOptions, "timeout"> = {},
  ): Promise<string> => askGit(files, args, { ...options, env: { ...env, GIT_WORK_TREE: files, ...more } });
  const close = (): void => rmSync(own, { recursive: true, force: true });
  return { head, directory, index, filters: new Set(drivers), git, close };
}
