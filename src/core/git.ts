/** Git outside of a sandbox: it runs no program that a repository, or a file in it, names. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { devNull, homedir, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { type ProgramOptions, runProgram } from "./child-process.ts";

/** Variables that name another repository than that of a folder: Git sets them for hooks, and for what these start. */
const ELSEWHERE =
  /^GIT_(?:DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|PREFIX|NAMESPACE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES)$/;

type GitOptions = Pick<ProgramOptions, "env" | "input"> & { timeout?: number };

/**
 * Asks Git for names and settings of a folder's repository, and of no other. For commands that read nothing else: what
 * they could run for that is switched off. `env` is added.
 */
export const askGit = (
  folder: string,
  args: readonly string[],
  { env, ...options }: GitOptions = {},
): Promise<string> => {
  const own = Object.entries(process.env).filter(([name]) => !ELSEWHERE.test(name));
  const off = ["--no-pager", "-c", "core.fsmonitor=false", "-c", `core.hooksPath=${devNull}`];
  // What a partial clone lacks is not fetched: its settings name a program for that.
  const unattended = { GIT_NO_LAZY_FETCH: "1", GIT_TERMINAL_PROMPT: "0" };
  return runProgram("git", [...off, ...args], {
    timeout: 120_000,
    ...options,
    cwd: folder,
    env: { ...Object.fromEntries(own), ...unattended, ...env },
  });
};

/** A repository with its objects and refs alone. */
export interface PlainRepository {
  /** The commit that is checked out. */
  head: string;
  /** The Git directory that all working trees share. */
  directory: string;
  /** The index of the working tree. */
  index: string;
  /** Drivers of the attribute `filter` that the settings name programs for. */
  filters: ReadonlySet<string>;
  /** Runs Git for a folder of files, with an index of its own. */
  git: (files: string, args: readonly string[], options?: Omit<GitOptions, "timeout">) => Promise<string>;
  close: () => void;
}

/** Settings that say how files and objects are stored. */
const KEPT =
  /^(?:core\.(?:autocrlf|eol|filemode|ignorecase|precomposeunicode|sharedrepository|symlinks)|extensions\.(?:objectformat|refstorage)|i18n\.commitencoding)$/;

/**
 * Opens the repository of a working tree without its settings, hooks, drivers and remotes, and without those of the
 * user and the system, which its files could choose: they are seen from a Git directory of our own.
 */
export async function openPlainRepository(folder: string): Promise<PlainRepository> {
  const names = ["HEAD", "--git-common-dir", "--git-path", "objects", "--git-path", "index"];
  const [head = "", ...paths] = (await askGit(folder, ["rev-parse", ...names])).trim().split("\n");
  const [directory = "", objects = "", index = ""] = paths.map((path) => resolve(folder, path));
  const listed = (await askGit(folder, ["config", "--list", "-z"])).split("\0");
  const settings = new Map(
    listed.map((line): [string, string] => {
      const [name = "", value = "true"] = line.split(/\n(.*)/s);
      return [name, value];
    }),
  );
  const env: NodeJS.ProcessEnv = {};
  for (const role of ["AUTHOR", "COMMITTER"]) {
    const ident = await askGit(folder, ["var", `GIT_${role}_IDENT`]);
    [, env[`GIT_${role}_NAME`], env[`GIT_${role}_EMAIL`]] = /^(.*) <(.*)> /.exec(ident) ?? [];
  }
  const own = mkdtempSync(join(tmpdir(), "deepagent-git-"));
  Object.assign(env, {
    GIT_DIR: own,
    GIT_OBJECT_DIRECTORY: objects,
    GIT_INDEX_FILE: join(own, "index"),
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: devNull,
    GIT_CONFIG_COUNT: "0",
    GIT_CONFIG_PARAMETERS: "",
    HOME: own,
    XDG_CONFIG_HOME: own,
  });
  const kept = [...settings].filter(([name]) => KEPT.test(name));
  const version = kept.some(([name]) => name.startsWith("extensions")) ? "1" : "0";
  // Attributes name drivers, and no setting says what these run.
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
  for (const name of ["packed-refs", "info/attributes"].filter((one) => existsSync(join(directory, one))))
    copyFileSync(join(directory, name), join(own, name));
  for (const name of ["refs", "reftable", "logs"].filter((one) => existsSync(join(directory, one))))
    symlinkSync(join(directory, name), join(own, name), "junction");
  // The index may be split.
  for (const name of readdirSync(dirname(index)).filter((one) => one.startsWith("sharedindex.")))
    copyFileSync(join(dirname(index), name), join(own, name));
  const drivers = [...settings.keys()].map((name) => /^filter\.(.*)\.(?:clean|process)$/s.exec(name)?.[1]);
  return {
    head,
    directory,
    index,
    filters: new Set(drivers.filter((name) => name !== undefined)),
    git: (files, args, { env: more, ...options } = {}) =>
      askGit(files, args, { ...options, env: { ...env, GIT_WORK_TREE: files, ...more } }),
    close: () => rmSync(own, { recursive: true, force: true }),
  };
}
