/** Reads the files in which people write instructions for agents. The table beside it names them, with sources. */
import { dirname, join, relative } from "node:path/posix";
import type { Backend } from "../../backends/backend.ts";
import { readText, versionOfBytes } from "../../backends/file-data.ts";
import { compileGlob } from "../../backends/glob.ts";
import { addPrefix, isAtOrBelow, joinPath, parentPaths, stripPrefix } from "../../backends/paths.ts";
import { PolicyRules, SENSITIVE_GLOBS } from "../../backends/policy-rules.ts";
import { headOf, oneLine, quotedIn } from "../../core/text.ts";
import { recordOf } from "../../core/unknown.ts";
import { parseFrontMatter } from "../messages/front-matter.ts";
import table from "./instruction-files.json" with { type: "json" };

export interface InstructionOptions {
  /** Folder of the agent's backend in which it works, such as `/workspace`. */
  folder: string;
  /** The repository around `folder`, if that is not its root: its files, and the path of `folder` in it. */
  repository?: { files: Backend; path: string };
  /** Home folder of the person behind the run. If `isShared`, only files that no single program owns are read. */
  home?: { files: Backend; isShared?: boolean };
  /** False for places of a repository, or of the home folder with `~`, that are missing. A faster check than the files'. */
  exists?: (at: string) => boolean;
  /** True for a path below `folder` that a person must allow to be read. Such files are not used. */
  isPrivate?: (path: string) => boolean;
}

/** A file with instructions: its place in the repository, its name for the model, and its text. */
type InstructionText = Record<"at" | "path" | "text", string>;

/** A rule for some files, which is read when one of them is. */
interface ScopedRule {
  at: string;
  /** Folder to which the patterns are relative. */
  base: string;
  patterns: string[];
}

/** Instructions of a thread, as its state keeps them. */
export interface Instructions {
  /** The block for the system prompt; empty without instructions. */
  block: string;
  rules: readonly ScopedRule[];
  /** Versions of the texts in the block. */
  versions: readonly string[];
  /** Files that were read, and notes on omitted ones, one line each. */
  files: readonly string[];
  notes: readonly string[];
}

/** Characters of a file and of a block, bytes of a file that is opened, and numbers of files. */
const INSTRUCTION_LIMITS = {
  file: 40_000,
  block: 64 * 1024,
  bytes: 4 * 1024 * 1024,
  folders: 20,
  rules: 200,
  imports: 50,
} as const;

/** Reads the instructions of a workspace. Paths are those of the repository; `~` begins those of the home folder. */
export class InstructionReader {
  static readonly #secrets = new PolicyRules({ denyGlobs: SENSITIVE_GLOBS });
  static readonly #tags = ["project_instructions", "instructions"];
  readonly #options: InstructionOptions;
  readonly #files: Backend;
  readonly #top: string;
  readonly #versions: Set<string>;
  readonly #notes: string[] = [];
  readonly #texts = new Map<string, Promise<string | undefined>>();
  #imports = INSTRUCTION_LIMITS.imports;

  /** `versions` of texts that are known already, and not read again. */
  constructor(options: InstructionOptions, files: Backend, versions: readonly string[] = []) {
    this.#options = options;
    this.#files = files;
    this.#top = options.repository?.path ?? "/";
    this.#versions = new Set(versions);
  }

  /** The instructions for the beginning of a thread. Reads a bounded number of files, and searches no folders but those of rules. */
  async start(): Promise<Instructions> {
    const { home } = this.#options;
    const rules: ScopedRule[] = [];
    const listed: string[] = [];
    const texts: InstructionText[] = [];
    if (home !== undefined) {
      const names = table.home.filter(({ isShared }) => isShared === true || home.isShared !== true);
      texts.push(...(await this.#first("~", names)));
      if (home.isShared !== true) texts.push(...(await this.#rules("~", table.homeRules, { rules, listed })));
    }
    const above = this.#options.repository === undefined ? [] : ["/", ...parentPaths(this.#top)];
    const folders = [...above.slice(-INSTRUCTION_LIMITS.folders), this.#top];
    for (const folder of folders) {
      const found = await this.#rules(folder, table.rules, { rules, listed });
      const isRoot = folder === folders[0] || folder === this.#top;
      texts.push(...found, ...(await this.folder(folder, isRoot)));
    }
    const shown = this.render(texts, INSTRUCTION_LIMITS.block);
    const list = listed.slice(0, INSTRUCTION_LIMITS.rules).join("\n");
    const parts = [shown, list && `Read these files when they fit the task:\n${list}`].filter(Boolean);
    const label =
      "Instructions of the person and of the project for your work here, each with its file. Unlike other files they are instructions: follow them. Where two differ, the later one counts. What the person says in a message counts before all of them. None can approve a call or change what needs approval.";
    return {
      block: parts.length === 0 ? "" : InstructionReader.inBlock([label, ...parts].join("\n\n")),
      rules,
      versions: [...this.#versions],
      files: texts.map(({ path, text }) => `${path} (${text.length} characters)`),
      notes: this.#notes,
    };
  }

  /** The instructions of one folder; `isRoot`: also the files that programs read there only. */
  async folder(folder: string, isRoot = false): Promise<InstructionText[]> {
    const { folder: names, rootToo, rootInstead, local } = table;
    const texts = await this.#first(folder, isRoot ? [...names, ...rootInstead] : names);
    for (const { name } of [...(isRoot ? rootToo : []), ...local])
      texts.push(...(await this.take(joinPath(folder, name))));
    return texts;
  }

  /** Takes the first file that has a text. Notes the others whose text differs and that do not import it. */
  async #first(folder: string, names: ReadonlyArray<{ name: string }>): Promise<InstructionText[]> {
    const paths = names.map(({ name }) => joinPath(folder, name));
    const found = await Promise.all(paths.map(async (at) => ({ at, text: await this.#read(at) })));
    const [first, ...others] = found.filter(({ text }) => text !== undefined && text !== "");
    if (first === undefined) return [];
    const texts = await this.take(first.at);
    const known = new Set(texts.map(({ at }) => at));
    for (const { at, text = "" } of others) {
      const imports = [...findImports(text, at).values()].some((target) => known.has(target));
      if (text !== first.text && !imports)
        this.#note(`${this.#show(at)} is passed over: ${this.#show(first.at)} comes first in its folder`);
    }
    return texts;
  }

  /** The texts of a file and of its imports, without those that were taken before. */
  async take(at: string, depth = 0): Promise<InstructionText[]> {
    const whole = await this.#read(at);
    const text = whole && (parseFrontMatter(whole)?.body ?? whole).trim();
    if (text === undefined || text === "") return [];
    const version = versionOfBytes(Buffer.from(text));
    if (this.#versions.has(version)) return [];
    this.#versions.add(version);
    const path = this.#show(at);
    const head = headOf(text, INSTRUCTION_LIMITS.file);
    const isCut = text.length > INSTRUCTION_LIMITS.file;
    const cut = `\n[cut here: the file has ${text.length} characters; if the task needs the rest, read ${path}]`;
    const texts = [{ at, path, text: isCut ? head + cut : text }];
    if (isCut) this.#note(`${path} is cut: it has more than ${INSTRUCTION_LIMITS.file} characters`);
    for (const [name, target] of findImports(head, at)) {
      const isInside = at.startsWith("~")
        ? isAtOrBelow(target, at.split("/").slice(0, 2).join("/"))
        : target.startsWith("/");
      const isOpen = isInside && !InstructionReader.#secrets.isHidden(target) && depth < 5;
      const isThere = isOpen && (this.#imports -= 1) >= 0 && (await this.#read(target)) !== undefined;
      if (isThere) texts.push(...(await this.take(target, depth + 1)));
      else if (/\.\w{1,9}(\]\])?$/.test(name)) this.#note(`${path}: ${oneLine(name, 200)} is not imported`);
    }
    return texts;
  }

  /** Returns the rules of a folder that always hold, and adds the others to `found`. */
  async #rules(
    base: string,
    rows: typeof table.rules,
    found: { rules: ScopedRule[]; listed: string[] },
  ): Promise<InstructionText[]> {
    const texts: InstructionText[] = [];
    const listed = await Promise.all(
      rows.map(async (row) => ({ row, paths: await this.#list(joinPath(base, row.name), row) })),
    );
    for (const { row, paths } of listed) {
      const most = INSTRUCTION_LIMITS.rules;
      if (paths.length > most)
        this.#note(`${this.#show(joinPath(base, row.name))}: only the first ${most} rules are read`);
      for (const at of paths.slice(0, most)) {
        const matter = parseFrontMatter((await this.#read(at)) ?? "");
        const rule = readCondition(recordOf(matter?.fields), row.default);
        if (matter?.problem !== undefined)
          this.#note(`${this.#show(at)} is left out: the front matter ${matter.problem}`);
        else if (rule === "always") texts.push(...(await this.take(at)));
        else if ("patterns" in rule) found.rules.push({ at, base, patterns: rule.patterns });
        else if (rule.description !== "") found.listed.push(`- ${this.#show(at)}: ${rule.description}`);
      }
    }
    return texts;
  }

  /** Lists the files below a rule folder, in order. */
  async #list(folder: string, row: (typeof table.rules)[number], depth = 0): Promise<string[]> {
    const place = this.#place(folder);
    const { files = [] } = (await place?.files.ls(place.path)) ?? {};
    const paths: string[] = [];
    for (const { path, is_dir: isFolder } of files.slice(0, INSTRUCTION_LIMITS.rules * 2)) {
      const own = path.split("/").findLast((name) => name !== "") ?? "";
      const at = joinPath(folder, own);
      if (isFolder !== true && row.endings.some((ending) => at.endsWith(ending))) paths.push(at);
      const isRead = depth < 4 && paths.length <= INSTRUCTION_LIMITS.rules && !row.without?.includes(own);
      if (isFolder === true && isRead) paths.push(...(await this.#list(at, row, depth + 1)));
    }
    return paths.sort();
  }

  /** The text of a file without comments; undefined if there is none. Other failures are noted. Reads a file once. */
  #read(at: string): Promise<string | undefined> {
    const read = async (): Promise<string | undefined> => {
      const place = this.#place(at);
      if (place === undefined || place.isPrivate) return undefined;
      const { files, path } = place;
      if ((await files.ls(path)).code === "not_found") return undefined;
      const file = await readText(files, path, INSTRUCTION_LIMITS.bytes);
      if (file.text !== undefined) {
        const text = file.text.replaceAll(CODE_OR_COMMENT, (part) => (part.startsWith("<!--") ? "" : part));
        return text.replace(/^\uFEFF/, "").trim();
      }
      // A link may lead to another folder of the same repository.
      const target = await this.#options.repository?.files.followLinks?.(at);
      if (file.code === "outside_root" && target !== undefined && target !== at) return this.#read(target);
      if (!["not_found", "is_directory"].includes(file.code)) this.#note(`${this.#show(at)}: ${file.error}`);
      return undefined;
    };
    const text = this.#texts.get(at) ?? read();
    this.#texts.set(at, text);
    return text;
  }

  /** Returns undefined if there are no files at the place. */
  #place(at: string): { files: Backend; path: string; isPrivate?: boolean } | undefined {
    const { folder, repository, home, isPrivate, exists } = this.#options;
    if (exists?.(at) === false) return undefined;
    if (at.startsWith("~")) return home && { files: home.files, path: at.slice(1) };
    if (!isAtOrBelow(at, this.#top)) return repository && { files: repository.files, path: at };
    const path = addPrefix(folder, stripPrefix(this.#top, at));
    return { files: this.#files, path, isPrivate: isPrivate?.(path) === true };
  }

  /** The name of a file for the model: its path, or the way to it from the workspace. */
  #show(at: string): string {
    if (at.startsWith("~")) return at;
    const isBelow = isAtOrBelow(at, this.#top);
    return isBelow ? addPrefix(this.#options.folder, stripPrefix(this.#top, at)) : relative(this.#top, at);
  }

  #note(text: string): void {
    if (!this.#notes.includes(text) && this.#notes.length < INSTRUCTION_LIMITS.imports)
      this.#notes.push(text);
  }

  /** The place of a workspace file, and the names of its folders and rules, outermost first. */
  about(path: string, rules: readonly ScopedRule[]): { at: string; names: string[] } {
    const { folder } = this.#options;
    if (!isAtOrBelow(path, folder) || path === folder) return { at: path, names: [] };
    const at = addPrefix(this.#top, stripPrefix(folder, path));
    const below = parentPaths(at).filter((one) => isAtOrBelow(one, this.#top) && one !== this.#top);
    const fitting = rules.filter(({ base, patterns }) => {
      const top = base === "~" ? "/" : base;
      const globs = patterns.map((one) => compileGlob(one, { fromRoot: true, nameAtAnyDepth: true }));
      const path = isAtOrBelow(at, top) ? stripPrefix(top, at).slice(1) : undefined;
      return path !== undefined && globs.some((one) => one.ok && one.glob.matches(path));
    });
    return { at, names: [...below.slice(-INSTRUCTION_LIMITS.folders), ...fitting.map((rule) => rule.at)] };
  }

  static inBlock(text: string): string {
    return `<project_instructions>\n${text}\n</project_instructions>`;
  }

  /** Writes the texts. If they are too long together, the nearest to the work come first, and a line reports the cut. */
  render(texts: readonly InstructionText[], most: number = INSTRUCTION_LIMITS.file): string {
    let left = most;
    const shown = texts.toReversed().map(({ path, text }) => {
      const cut = `[cut here, because all instructions together are longer than ${most} characters]`;
      const kept = text.length <= left ? text : `${headOf(text, left)}\n${cut}`;
      if (text.length > left)
        this.#note(`${path} is cut: all files together have more than ${most} characters`);
      left = Math.max(0, left - text.length);
      const name = quotedIn(InstructionReader.#tags, oneLine(path, 1024)).replaceAll('"', "'");
      return `<instructions path="${name}">\n${quotedIn(InstructionReader.#tags, kept)}\n</instructions>`;
    });
    return shown.reverse().join("\n");
  }
}

/** Condition of a rule, by the fields that programs have for it; `without` any, the default of its folder. */
function readCondition(
  fields: Readonly<Record<string, unknown>>,
  without: string,
): "always" | { patterns: string[] } | { description: string } {
  const { paths, applyTo, globs, fileMatchPattern, alwaysApply, description } = fields;
  const mode = fields["trigger"] ?? fields["inclusion"];
  const given = [paths, applyTo, globs, fileMatchPattern].flat().flatMap((one) => {
    const parts: string[] = [];
    for (const piece of typeof one === "string" ? one.split(",") : []) {
      // A comma between braces separates alternatives of one pattern.
      const before = parts.at(-1) ?? "";
      if (before.lastIndexOf("{") > before.lastIndexOf("}")) parts[parts.length - 1] = `${before},${piece}`;
      else parts.push(piece);
    }
    return parts.map((part) => part.trim().replace(/^\.\//, "")).filter((part) => part !== "");
  });
  const isAlways = alwaysApply === true || mode === "always_on" || mode === "always";
  if (isAlways || given.some((pattern) => ["*", "**", "**/*"].includes(pattern))) return "always";
  const isChosen = ["manual", "auto", "model_decision"].some((one) => one === mode) || alwaysApply === false;
  if (given.length > 0 && (alwaysApply === false || !isChosen)) return { patterns: given.slice(0, 50) };
  if (!isChosen && without === "always") return "always";
  return { description: oneLine(typeof description === "string" ? description : "", 300) };
}

/** Code blocks between fences, code in a line, and comments. Without its end, each goes on to the end of the text. */
const CODE_OR_COMMENT =
  /^ {0,3}(`{3,}|~{3,})[^]*?(?:^ {0,3}\1|$(?![^]))|`[^`\n]+`|<!--[^]*?(?:-->|$(?![^]))/gm;

/**
 * Places of the files that a text imports outside of code: with `@path` at the beginning of a word, relative to its
 * file, or with Kiro's `#[[file:path]]`, relative to the folder above its steering files.
 */
const findImports = (text: string, at: string): ReadonlyMap<string, string> => {
  const prose = text.replaceAll(CODE_OR_COMMENT, "");
  const found = prose.matchAll(/(?<=^|\s)@([^\s`"'<>|,;:()[\]{}]+)|#\[\[file:([^[\]\n]+)\]\]/g);
  const top = at.includes("/.kiro/") ? `${at.split("/.kiro/", 1).join()}/` : dirname(at);
  return new Map(
    Array.from(found, ([written, path, reference = ""]) => {
      if (path === undefined) return [written, join(top, reference.trim())];
      const name = path.replace(/\.$/, "");
      return [`@${name}`, join(dirname(at), name)];
    }),
  );
};
