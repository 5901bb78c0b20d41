/** Reads ignore files, which only remove access. The table beside it lists them, with sources. */
import { join, relative } from "node:path";
import { parse } from "jsonc-parser";
import { isInside, realPath } from "../core/real-path.ts";
import { linkStatsAt } from "../core/stats.ts";
import { headOf } from "../core/text.ts";
import { isRecord, memberOf } from "../core/unknown.ts";
import { parentPaths } from "./paths.ts";
import { type LeavingOut, PolicyRules, fold } from "./policy-rules.ts";
import { readFileHead } from "./sandbox/starting-places.ts";
import { GitignoreRules } from "./filesystem/gitignore.ts";
import table from "./ignore-files.json" with { type: "json" };

/** The rules of several files, each by itself, and folders that are judged already. */
interface RuleList {
  files: GitignoreRules[];
  folders: Map<string, boolean>;
}

/**
 * Leaves the files that ignore files name out of listings and searches, and finds those that a person must allow to
 * be read. Commands do not follow these rules.
 */
export class IgnoreFiles extends PolicyRules {
  override readonly bindsCommands = false;
  readonly #reading: RuleList = { files: [], folders: new Map() };
  readonly #searches: RuleList = { files: [], folders: new Map() };
  /** The way from `top` to the workspace, with a slash at its end; empty if they are the same. */
  readonly #way: string;
  /** Rules about calls in the settings of other programs, which may only forbid them or have a person asked. */
  readonly settingsRules: Readonly<Record<"deny" | "ask", string[]>> = { deny: [], ask: [] };

  private constructor(top: string, workspace: string) {
    super({});
    const way = relative(top, workspace).replaceAll("\\", "/");
    this.#way = way === "" ? "" : `${way}/`;
    const folders = way === "" ? [] : [...parentPaths(`/${way}`), `/${way}`];
    for (const folder of ["", ...folders]) {
      const at = join(top, folder);
      const loadText = (name: string): string => {
        const file = join(at, name);
        const path = linkStatsAt(file) && realPath(file);
        return path !== undefined && isInside(top, path) ? readFileHead(path) : "";
      };
      const add = ({ files }: RuleList, text: string): void => {
        // A path is compared with each line, so that a longer file does not count as a whole.
        const rules = new GitignoreRules(fold(headOf(text, 32 * 1024)), fold(folder.slice(1)), undefined);
        if (!rules.isEmpty) files.push(rules);
      };
      for (const { name } of table.searches) add(this.#searches, loadText(name));
      for (const { name } of table.reading) add(this.#reading, loadText(name));
      for (const { name, keys, form } of table.settings) {
        const settings: unknown = parse(loadText(name));
        for (const key of keys) {
          const value = key.split(".").reduce(memberOf, settings);
          if (form === "rules")
            this.settingsRules[key.endsWith("deny") ? "deny" : "ask"].push(...toTexts(value));
          const patterns = readPatterns(value, form, at);
          const texts = form === "files" ? patterns.map(loadText) : [patterns.join("\n")];
          for (const text of texts) add(this.#reading, text);
        }
      }
    }
  }

  /** Reads the files of `top`, of `workspace` and between them. Returns null if they name nothing. */
  static of(workspace: string, top = workspace): IgnoreFiles | null {
    const rules = new IgnoreFiles(realPath(top), realPath(workspace));
    const { deny, ask } = rules.settingsRules;
    const count = rules.#reading.files.length + rules.#searches.files.length + deny.length + ask.length;
    return count > 0 ? rules : null;
  }

  /** True for a path that one of the files excludes, or a folder on the way to it. Remembers folders. */
  #isIn(list: RuleList, place: string, isFolder = false): boolean {
    const known = isFolder ? list.folders.get(place) : undefined;
    if (known !== undefined) return known;
    const above = place.slice(0, Math.max(0, place.lastIndexOf("/")));
    const isExcluded =
      (above !== "" && this.#isIn(list, above, true)) ||
      list.files.some(
        (rules) =>
          rules.covers(place) && (rules.exclude(place, true) || (!isFolder && rules.exclude(place, false))),
      );
    if (isFolder) list.folders.set(place, isExcluded);
    return isExcluded;
  }

  override isAsked(path: string): boolean {
    return path !== "/" && this.#isIn(this.#reading, fold(this.#way + path.slice(1)));
  }

  override isLeftOut(path: string, from: LeavingOut): boolean {
    if (from !== "grep" && this.isAsked(path)) return true;
    return from !== "ls" && path !== "/" && this.#isIn(this.#searches, fold(this.#way + path.slice(1)));
  }

  /** True for a file that has such rules, which the agent may not change by itself. */
  static isOne(path: string): boolean {
    const rows = [...table.reading, ...table.searches, ...table.settings];
    return rows.some(({ name }) => path.endsWith(`/${name}`));
  }
}

const toTexts = (value: unknown): string[] => [value].flat().filter((one) => typeof one === "string");

/** Patterns, as `.gitignore` has them, in the settings of a program; `folder` has the file. */
function readPatterns(value: unknown, form: string, folder: string): string[] {
  if (form === "map") {
    const entries = isRecord(value) ? Object.entries(value) : [["*", value] as const];
    return entries.flatMap(([pattern, mode]) =>
      mode === "deny" || mode === "ask" ? [pattern] : mode === "allow" ? [`!${pattern}`] : [],
    );
  }
  const texts = toTexts(value);
  if (form !== "rules") return texts;
  return texts.flatMap((text) => {
    const [, spec = ""] = /^Read\((.*)\)$/s.exec(text.trim()) ?? [];
    // `//` begins a path of this machine, and `~` the home folder. Paths outside `folder` are dropped.
    const home = process.env["HOME"] ?? "~";
    const absolute = spec.startsWith("//")
      ? spec.slice(1)
      : spec.startsWith("~/")
        ? join(home, spec.slice(2))
        : "";
    if (absolute !== "") return isInside(folder, absolute) ? [`/${relative(folder, absolute)}`] : [];
    return spec === "" || spec.includes("\n") ? [] : [spec.replace(/^\.\//, "/")];
  });
}
