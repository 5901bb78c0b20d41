import { isAbsolute, join, resolve } from "node:path";
import type { HostFacts } from "../config/paths.ts";
import {
  compileCacheDir,
  defaultDataDir,
  expandHome,
  folderProblem,
  isFolderPattern,
  wideFolder,
} from "../config/paths.ts";
import { isInside, realPath } from "../core/real-path.ts";

/** Settings that are judged here, by their flags. */
const JUDGED = new Map([
  ["workspace", "path"],
  ["data-dir", "path"],
  ["folders", "path"],
  ["model", "text"],
  ["codex-tools", "switch"],
]);

/**
 * Returns whether `codexTools` is set if this start serves over stdio with settings that are right for sure;
 * `undefined` if the program has to judge them. It ends before the first answer if settings are wrong.
 */
export function acceptedStart(argv: readonly string[], host: HostFacts): { codexTools: boolean } | undefined {
  const given = readFlags(argv[0] === "serve" ? argv.slice(1) : argv);
  if (given === undefined) return undefined;
  for (const [name, value = ""] of Object.entries(host.env)) {
    if (!name.startsWith("DEEPAGENT_") || value === "") continue;
    const flag = name.slice("DEEPAGENT_".length).toLowerCase().replaceAll("_", "-");
    const kind = JUDGED.get(flag);
    // The program takes quotes and blanks off.
    if (kind === undefined || kind === "switch" || /^[\s"']|\s$/.test(value)) return undefined;
    if (kind === "path" && !isAbsolute(expandHome(value, host.home))) return undefined;
    if (!given.has(flag)) given.set(flag, value);
  }
  const placed = (path: string): string => resolve(host.cwd, expandHome(path, host.home));
  const [workspace, dataDir] = ["workspace", "data-dir"].map((name) => given.get(name));
  const skills = join(host.home, ".deepagent/skills");
  const own = [compileCacheDir(host), dataDir === undefined ? defaultDataDir(host) : placed(dataDir)];
  const folder = workspace === undefined ? wideFolder(host) === undefined && host.cwd : placed(workspace);
  if (folder !== false && folderProblem(folder) !== undefined) return undefined;
  if (!isFolderPattern(placed(given.get("folders") ?? "."))) return undefined;
  const read = [
    ...(folder === false ? [] : [folder]),
    ...(folderProblem(skills) === undefined ? [skills] : []),
  ];
  const isOwn = read.some((path) => own.some((one) => isInside(realPath(one), realPath(path))));
  return isOwn ? undefined : { codexTools: given.has("codex-tools") };
}

/** The flags of a command line, each once and with a value; `undefined` if it has anything else. */
function readFlags(words: readonly string[]): Map<string, string> | undefined {
  const given = new Map<string, string>();
  for (let at = 0; at < words.length; at += 1) {
    const [, name = "", inline] = /^--([a-z-]+)(?:=([^]*))?$/.exec(words[at] ?? "") ?? [];
    const isSwitch = JUDGED.get(name) === "switch";
    if (!JUDGED.has(name) || given.has(name) || (isSwitch && inline !== undefined)) return undefined;
    const value = isSwitch ? "true" : (inline ?? words[(at += 1)] ?? "");
    if (value.trim() === "" || (inline === undefined && value.startsWith("-"))) return undefined;
    given.set(name, value);
  }
  return given;
}
