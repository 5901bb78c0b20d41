import { join } from "node:path";
import { timeZone } from "../../core/clock.ts";
import { isExecutable } from "../../core/stats.ts";
import table from "./command-environment.json" with { type: "json" };
import folders from "./system-folders.json" with { type: "json" };
import ends from "./process-ends.json" with { type: "json" };

/** The words of a text, for long lists of plain names. */
export const splitWords = (text: string): string[] => text.trim().split(/\s+/);

/** A folder of this machine at a path inside the sandbox. */
export interface SandboxMount {
  folder: string;
  at: string;
}

/** The tops of the folders that commands read at paths of the file tree, as facts for the model. */
export function readableTops(mounts: readonly SandboxMount[]): { readable?: string[] } {
  const tops = mounts.filter(({ folder, at }) => folder !== at).map(({ at }) => `/${at.split("/")[1]}`);
  return tops.length === 0 ? {} : { readable: [...new Set(tops)] };
}

/**
 * Puts the folders of this machine into a command in place of the paths that the file tree has for them. Paths that are
 * only the beginning of a longer name stay.
 */
export function withRealFolders(command: string, mounts: readonly SandboxMount[]): string {
  const named = mounts.filter(({ folder, at }) => folder !== at && command.includes(at));
  return named
    .toSorted((one, other) => other.at.length - one.at.length)
    .reduce((text, { folder, at }) => {
      const path = at.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
      const place = folder.replaceAll(/[^\w@%+=:,./~-]/g, "\\$&");
      return text.replaceAll(new RegExp(`(?<![\\w.~/-])${path}(?![\\w.~-])`, "g"), () => place);
    }, command);
}

/** Folders of programs and libraries; some systems have them as links into `/usr`. */
export const SYSTEM_FOLDERS: readonly string[] = splitWords(folders.shared);

/** Programs that were added to `/usr`, with their settings and data. Commands see only the parts that programs need. */
export const LOCAL_PROGRAMS = "/usr/local";

/** The search path for programs if none is set. */
export const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Finds a program by its name. Returns the name if there is none. */
export function programPath(name: string): string {
  if (name.includes("/")) return name;
  const places = (process.env["PATH"] ?? SYSTEM_PATH).split(":").map((folder) => join(folder, name));
  return places.find((path) => isExecutable(path)) ?? name;
}

/** Variables that commands do not get, as names in which `*` stands for anything. */
const SECRET_NAMES: readonly string[] = splitWords(
  "*API_KEY* *ACCESS_KEY* *PRIVATE_KEY* *TOKEN* *SECRET* *PASSWORD* *PASSWD* *CREDENTIAL*",
);

export interface EnvironmentOptions {
  /** Variables added to the environment of a command; they override inherited ones. */
  env?: Readonly<Record<string, string>>;
  /** `true`: everything the server has but `secretNames`. `false` (default): search path, home, language, terminal. The time zone in any case. */
  inheritEnv?: boolean;
  /** Names that are never inherited; `*` stands for anything. Default: those of keys, tokens and passwords. */
  secretNames?: readonly string[];
}

/** The time zone of commands: the server's, as its variable `TZ` has it unless commands would not know that form. */
export function commandZone(): string {
  const [given, zone] = [process.env["TZ"] ?? "", timeZone()];
  return given === "" || given.includes(" ") || given.toLowerCase() === zone.toLowerCase() ? zone : given;
}

/**
 * Adds variables and settings of Git by which programs wait for no person: no editor, pager or password prompt. In
 * `base` they replace existing values, and `env` replaces them. `isolated`: the command has neither a network nor the keys
 * and programs of a person, so programs do not try again, commits are not signed, and Git LFS keeps its pointers.
 */
export function unattended(
  base: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>>,
  isolated: boolean,
): Record<string, string> {
  const isUsed = (row: { isolated?: boolean }): boolean => isolated || row.isolated !== true;
  const rows = table.variables.filter(isUsed);
  const names = new Set(rows.map(({ name }) => name));
  // Git takes the last of two values.
  const own = table.git.filter(isUsed).map(({ name, value }) => [name, value]);
  const given = Array.from({ length: Number(env["GIT_CONFIG_COUNT"]) || 0 }, (_, at) => [
    env[`GIT_CONFIG_KEY_${at}`] ?? "",
    env[`GIT_CONFIG_VALUE_${at}`] ?? "",
  ]);
  const settings = [...own, ...given].flatMap(([name = "", value = ""], at) => [
    [`GIT_CONFIG_KEY_${at}`, name],
    [`GIT_CONFIG_VALUE_${at}`, value],
  ]);
  return Object.fromEntries([
    ...Object.entries(base).filter(([name]) => !names.has(name)),
    ...rows.flatMap(({ name, value }) => (value === null ? [] : [[name, value]])),
    ...Object.entries(env),
    ...settings,
    ["GIT_CONFIG_COUNT", String(own.length + given.length)],
  ]);
}

/** The environment of a command that runs on this machine. */
export function commandEnvironment(options: EnvironmentOptions): Record<string, string> {
  const { env = {}, inheritEnv = false, secretNames = SECRET_NAMES } = options;
  const secrets = secretNames.map(nameMatcher);
  const isInherited = inheritEnv
    ? (name: string): boolean => !secrets.some((matches) => matches(name))
    : (name: string): boolean => ["PATH", "HOME", "LANG", "TERM"].includes(name);
  const inherited = Object.entries(process.env).flatMap(([name, value]): [string, string][] =>
    value !== undefined && isInherited(name) ? [[name, value]] : [],
  );
  const base = { PATH: SYSTEM_PATH, TZ: commandZone(), ...Object.fromEntries(inherited) };
  return unattended(base, env, false);
}

/** Compares names with one in which `*` stands for anything. */
export function nameMatcher(name: string): (candidate: string) => boolean {
  const parts = name.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const expression = new RegExp(`^${parts.join(".*")}$`, "i");
  return (candidate) => expression.test(candidate);
}

/**
 * Names the variable with the mark of a command. All its descendants have it, in whatever group or session, so they
 * can be ended if a signal to the group is not enough.
 */
export const MARK_NAME = "DEEPAGENT_COMMAND";

/** Returns a script that ends programs, or removes their leftovers, for POSIX shells and BusyBox. */
export const endScript = (name: keyof typeof ends): string => `\n${ends[name].join("\n")}\n`;

/**
 * Ends every process with the mark `$1`, which must be a plain regular expression. Repeats until it finds none twice: a
 * process may just have started others, and one that executes another program shows no environment for a moment.
 */
export const END_MARKED: string = endScript("endMarked");
