/** Paths of the program, its data and its configuration. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, isAbsolute, join, parse } from "node:path";
import { fileURLToPath } from "node:url";
import { isInside, realPath } from "../core/real-path.ts";
import { recordOf, textMemberOf } from "../core/unknown.ts";

/** Facts about the machine that defaults depend on; injected, so that tests need no other machine. */
export interface HostFacts {
  cwd: string;
  home: string;
  platform: NodeJS.Platform;
  env: Readonly<Record<string, string | undefined>>;
}

const APP_NAME = "deepagent-mcp";

/** The program's data folder on this platform (XDG base directories where they apply). */
export function defaultDataDir(host: HostFacts): string {
  if (host.platform === "win32")
    return join(host.env["LOCALAPPDATA"] ?? join(host.home, "AppData", "Local"), APP_NAME);
  if (host.platform === "darwin") return join(host.home, "Library", "Application Support", APP_NAME);
  const xdg = host.env["XDG_DATA_HOME"];
  // The XDG specification: relative paths are invalid and to be ignored.
  const base = xdg !== undefined && isAbsolute(xdg) ? xdg : join(host.home, ".local", "share");
  return join(base, APP_NAME);
}

/** The folder in which Node keeps compiled code of this program between starts. */
export const compileCacheDir = ({ home, env }: Pick<HostFacts, "home" | "env">): string =>
  join(env["XDG_CACHE_HOME"] ?? join(home, ".cache"), APP_NAME, "compile");

/** The current directory, unless it is too wide to be worked in. */
export const defaultWorkspace = (host: HostFacts): string | undefined =>
  wideFolder(host) === undefined ? realPath(host.cwd) : undefined;

/**
 * Returns why the current directory is not used as the workspace, if so. Desktop clients merely happen to
 * start servers in the home folder, the root of the file system or the Windows folder.
 */
export function wideFolder(host: HostFacts): string | undefined {
  const cwd = realPath(host.cwd);
  const windows = host.platform === "win32" ? host.env["SystemRoot"] : undefined;
  if (cwd === realPath(host.home)) return `${cwd} is your home folder, which is too wide to work in`;
  if (parse(cwd).root === cwd) return `${cwd} is the root of the file system, which is too wide to work in`;
  return windows !== undefined && isInside(realPath(windows), cwd)
    ? `${cwd} belongs to Windows, so the agent cannot work in it`
    : undefined;
}

/** `~` and `~/…` stand for the home directory: client configurations are not read by a shell. */
export function expandHome(path: string, home: string): string {
  if (path === "~") return home;
  return path.startsWith("~/") || path.startsWith("~\\") ? join(home, path.slice(2)) : path;
}

/** A name in a pattern of folders that stands for any folder. */
export const ANY_FOLDER = "*";

/** True for an absolute path in which whole names may be `*`. */
export const isFolderPattern = (text: string): boolean =>
  isAbsolute(text) &&
  text.split(/[\\/]/).every((name) => name === ANY_FOLDER || !(name === ".." || name.includes(ANY_FOLDER)));

/** Returns why `path` cannot be a working folder; `undefined` if it can. */
export function folderProblem(path: string): string | undefined {
  try {
    return statSync(path).isDirectory() ? undefined : `${path} is not a folder`;
  } catch {
    return `${path} does not exist or cannot be opened${placeholderHint(path)}`;
  }
}

/** Explains a path that was written for another client: most of them take `${workspaceFolder}` as it stands. */
export function placeholderHint(path: string): string {
  const [placeholder] = /\$\{[^{}]*\}|%\w+%/.exec(path) ?? [];
  return placeholder === undefined
    ? ""
    : `: the client did not replace ${placeholder}, so write the folder itself`;
}

/** Folder of the installed package: the nearest one above this file that has a `package.json`. */
export function packageRoot(): string {
  const start = dirname(fileURLToPath(import.meta.url));
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json"))) return folder;
    if (folder === dirname(folder)) throw new Error(`no package.json above ${start}`);
  }
}

export const packageVersion = (): string => textMemberOf(manifest(), "version") ?? "0.0.0";

/** The name under which npm has the package, or will have it. */
export const packageName = (): string => textMemberOf(manifest(), "name") ?? APP_NAME;

/** True if npm has the package: until then its manifest is marked private, and `npx` cannot find it. */
export const isPublished = (): boolean => manifest()["private"] !== true;

const manifest = (): Readonly<Record<string, unknown>> =>
  recordOf(JSON.parse(readFileSync(join(packageRoot(), "package.json"), "utf8")));
