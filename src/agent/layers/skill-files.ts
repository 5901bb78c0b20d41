import { z } from "zod";
import type { Backend, FileInfo } from "../../backends/backend.ts";
import { readText } from "../../backends/file-data.ts";
import { joinPath, relativeTo, withSlash, withoutSlash } from "../../backends/paths.ts";
import { withinRoom } from "../../core/listing.ts";
import type { LogFields, Logger } from "../../core/logger.ts";
import { headOf, oneLine } from "../../core/text.ts";
import { isRecord, defined } from "../../core/unknown.ts";
import { type TaskToolOptions, listedTypes } from "../../tools/task.ts";
import { parseFrontMatter } from "../messages/front-matter.ts";
import { asMaterial } from "../messages/prompts.ts";

/** Reads `SKILL.md` files, and chooses those that a prompt has room for. Loads no LangChain. */

/** Skills that are read where their list has limited room; more than the prompt ever lists. */
const MOST_READ = 300;

/** Shares the characters for lists: half of them for skills, whose number is not known while an agent is built. */
export function listRooms(
  { listedCharacters: all }: { listedCharacters?: number } = {},
  sources: readonly string[] = [],
  subagents: TaskToolOptions["subagents"],
): { subagents?: number; skills?: number } {
  if (all === undefined) return {};
  const room = sources.length > 0 ? Math.floor(all / 2) : all;
  return { subagents: room, skills: all - listedTypes({ subagents, room }).characters };
}

/** True for folders named as `/skills/~claude`: a person keeps them for other programs, so they come last in lists. */
const isOfHome = (path: string): boolean => path.includes("/~");

/** Returns the skills that fit into `room` characters, in their order; the operator's sources come first. */
export function listedSkills(
  skills: readonly SkillMetadata[],
  sources: readonly string[],
  room: number | undefined,
): SkillMetadata[] {
  const rank = ({ path }: SkillMetadata): number =>
    isOfHome(path) ? sources.length : sources.findLastIndex((source) => path.startsWith(withSlash(source)));
  const offered = skills.filter(({ invokedBy }) => invokedBy === undefined);
  const ordered = offered.toSorted((one, other) => rank(one) - rank(other));
  const shown = new Set(withinRoom(ordered, skillLine, room).shown);
  return offered.filter((skill) => shown.has(skill));
}

export const skillLine = ({ name, description, path, compatibility }: SkillMetadata): string => {
  const needs = compatibility ? ` (${oneLine(compatibility, 200)})` : "";
  return asMaterial(
    `- ${oneLine(name, 64)}: ${oneLine(description, 1024)}${needs} Read ${oneLine(path, 1024)}`,
  );
};

const SKILL_FILE = "SKILL.md";

/**
 * The skills of all sources, which are folders of skill folders, also in groups, or one such; of two with one name the
 * later counts. Unreadable ones are left out with a warning. `most`: files that are read, those of earlier sources
 * first and those of a home folder last.
 */
export async function loadSkills(
  backend: Backend,
  sources: readonly string[],
  log: Logger,
  most = MOST_READ,
): Promise<Record<string, SkillMetadata>> {
  const folders = new Set(sources.map(withoutSlash));
  const found = new Map<string, DescribedFile<SkillMetadata>[]>();
  let left = most;
  for (const source of sources.toSorted((one, other) => Number(isOfHome(one)) - Number(isOfHome(other)))) {
    const skills: DescribedFile<SkillMetadata>[] = [];
    const paths = await skillFiles(backend, source, log);
    // The list grows: a folder without a skill may be a group of skills.
    for (const [index, path] of paths.entries()) {
      if (left <= 0) break;
      if (index === MOST_FOLDERS) {
        const problem = `it has more than ${MOST_FOLDERS} folders, and the others are not read`;
        log.warn("skill_folders_not_read", { source, problem });
        break;
      }
      const folder = path.slice(0, -SKILL_FILE.length - 1);
      if (folder !== withoutSlash(source) && folders.has(folder)) continue;
      left -= 1;
      const read = await readSkill(backend, source, path, log);
      if (read === "absent") {
        const levels = relativeTo(withoutSlash(source), folder).split("/").length;
        const { files = [] } = levels < MOST_LEVELS ? await backend.ls(folder) : {};
        paths.push(...files.flatMap((one) => (/\/skill\.md$/i.test(one.path) ? one.path : [])));
        paths.push(...listFolders(files).map((one) => joinPath(one, SKILL_FILE)));
      } else if (read !== undefined) skills.push(read);
    }
    if (skills.length === 0)
      log.info("skill_source_without_skills", { source, expected: `NAME/${SKILL_FILE}` });
    found.set(source, skills);
  }
  const all = sources.flatMap((source) => found.get(source) ?? []);
  const chosen = byName("skill_name_twice", all, log);
  return Object.fromEntries(chosen.map((skill) => [skill.name, skill]));
}

/** Orders described items by name; of two with one name the later counts. */
function byName<Described extends { name: string }>(
  event: string,
  found: ReadonlyArray<DescribedFile<Described>>,
  log: Logger,
): Described[] {
  const chosen = new Map<string, DescribedFile<Described>>();
  for (const one of found) {
    const { source, path, described } = one;
    const { name } = described;
    const twin = chosen.get(name);
    // Links and copies of one file are the same.
    if (twin !== undefined && twin.text !== one.text) {
      const warning = `${path}: replaces ${twin.path}, which has the same name`;
      log.warn(event, { source, name, path, warning });
    }
    chosen.set(name, one);
  }
  const items = [...chosen.values()].map(({ described }) => described);
  return items.sort((one, other) => (one.name < other.name ? -1 : 1));
}

interface DescribedFile<Described> {
  /** The folder in which it was looked for. */
  source: string;
  path: string;
  text: string;
  described: Described;
}

/** Folders of one source that are looked into. */
const MOST_FOLDERS = 2000;

async function skillFiles(backend: Backend, source: string, log: Logger): Promise<string[]> {
  const { files, error } = await backend.ls(source);
  if (!files) {
    log.warn("skill_source_not_read", { source, error });
    return [];
  }
  const own = files.find(({ path, is_dir }) => !is_dir && path.endsWith(`/${SKILL_FILE}`));
  if (own) return [own.path];
  // Warns of links that lead out of a backend; its list shows them with their names alone.
  for (const { path } of files.filter((file) => !file.is_dir && file.size === undefined)) {
    const { code } = await backend.ls(path);
    const problem =
      "it is a link that leads out of its folder; links are only followed in the folders of `skills`, `globalSkills` and the home folder, unless these lie in the workspace";
    if (code === "outside_root") log.warn("skill_skipped", { path, problem });
  }
  return listFolders(files).map((folder) => joinPath(folder, SKILL_FILE));
}

/** Levels of folders below a source in which files are looked for, as repositories group them. */
const MOST_LEVELS = 3;

/** The folders of a listing in which people keep files of their own. */
const listFolders = (files: readonly FileInfo[]): string[] =>
  files
    .filter(({ path, is_dir }) => is_dir && !/\/(?:\.git|node_modules)\/?$/.test(path))
    .map(({ path }) => withoutSlash(path));

/** Files of one folder that are read: each run reads them again. */
const MOST_FILES = 200;

/**
 * Describes the Markdown and TOML files of folders and of their groups, but not drafts and notes for people. Of two
 * with one name the later counts. `kind` begins the names of events about them.
 */
export async function loadTextFiles<Described extends { name: string }>(
  backend: Backend,
  folders: readonly string[],
  kind: string,
  parse: (path: string, text: string, folder: string) => Parsed<Described>,
  log: Logger,
): Promise<Described[]> {
  /** The files of groups are listed as far as the folder has not too many by itself. */
  const list = async (folder: string, level: number): Promise<string[]> => {
    const { files = [], error, code } = await backend.ls(folder);
    if (error !== undefined && code !== "not_found") log.warn("folder_not_read", { folder, error });
    const own = files.filter(({ path, is_dir }) => !is_dir && /\.(?:md|toml)$/.test(path));
    const paths = own.map(({ path }) => path).filter((path) => !/\/(?:_|readme\.)[^/]*$/i.test(path));
    for (const group of level < MOST_LEVELS && paths.length <= MOST_FILES ? listFolders(files) : [])
      paths.push(...(await list(group, level + 1)));
    return paths;
  };
  const found: Array<DescribedFile<Described>> = [];
  for (const source of folders) {
    const paths = (await list(source, 1)).sort();
    const problem = `only the first ${MOST_FILES} are read, and the others cannot be started`;
    if (paths.length > MOST_FILES) log.warn("files_not_read", { folder: source, problem });
    const read = paths
      .slice(0, MOST_FILES)
      .map(async (path) => ({ path, file: await readText(backend, path, 100 * 1024) }));
    for (const { path, file } of await Promise.all(read)) {
      const { text = "" } = file;
      const parsed = file.text === undefined ? file : parse(path, text, source);
      const described = takeParsed(kind, path, parsed, log);
      if (described !== undefined) found.push({ source, path, text, described });
    }
  }
  return byName(`${kind}_replaced`, found, log);
}

/** The described item, or the problem with its file. */
export type Parsed<Described> =
  | { ok: true; described: Described; warnings: string[] }
  | { ok: false; problem: string };

/** Returns the described item. Logs warnings, and the problem of a file that is left out. */
function takeParsed<Described>(
  kind: string,
  path: string,
  parsed: Parsed<Described> | { error: string },
  log: Logger,
): Described | undefined {
  if ("ok" in parsed && parsed.ok) {
    for (const warning of parsed.warnings) log.warn(`${kind}_format`, { path, warning });
    return parsed.described;
  }
  log.warn(`${kind}_skipped`, { path, problem: "ok" in parsed ? parsed.problem : parsed.error });
  return undefined;
}

async function readSkill(
  backend: Backend,
  source: string,
  path: string,
  log: Logger,
): Promise<DescribedFile<SkillMetadata> | "absent" | undefined> {
  const file = await readText(backend, path, 1024 * 1024);
  if (file.text === undefined && file.code === "not_found") return "absent";
  const { text = "" } = file;
  const skill = takeParsed("skill", path, file.text === undefined ? file : parseSkill(path, text), log);
  if (skill === undefined) return undefined;
  // Codex has this setting in a file of its own.
  const settings = `${path.slice(0, -SKILL_FILE.length)}agents/openai.yaml`;
  const codex = /[.~](?:agents|codex)/.test(path) && (await readText(backend, settings, 64 * 1024));
  if (codex && /^[ \t]{0,9}allow_implicit_invocation:[ \t]{0,9}false\b/m.test(codex.text ?? ""))
    skill.invokedBy = "person";
  return { source, path, text, described: skill };
}

export interface SkillMetadata {
  name: string;
  description: string;
  path: string;
  license?: string;
  compatibility?: string;
  metadata?: Record<string, string>;
  /** Advice, not enforced. */
  allowedTools?: string[];
  /** Absent: the agent reads it when a task fits. */
  invokedBy?: "person" | "nobody";
}

/** Reads the words for true and false in front matter, which YAML takes for texts. Returns undefined for all others. */
export const switched = (value: unknown): boolean | undefined =>
  /^(?:true|yes|on|1)$/i.test(String(value)) ||
  (/^(?:false|no|off|0)$/i.test(String(value)) ? false : undefined);

/** Takes numbers and dates of YAML as the texts they were meant to be. */
const ScalarText = z.union([z.string(), z.number(), z.boolean(), z.date()]).transform(String);

const RequiredText = ScalarText.pipe(z.string().trim().min(1));

const TextMap = z.record(
  z.string(),
  z.unknown().transform((value) => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))),
);

const ToolNames = z.union([
  z.string().transform((text): string[] => text.match(/[^\s,(]+(?:\([^)]*\))?/g) ?? []),
  // A list may also hold `Bash: git *` as YAML reads it.
  z.array(z.unknown()).transform((items) => items.filter((item) => typeof item === "string")),
]);

/** Required fields, with the longest text and the purpose of each. */
const REQUIRED = {
  name: [64, "what the skill is called"],
  description: [1024, "what it does and when to use it"],
} as const;

/**
 * Reads a `SKILL.md` (Agent Skills format), and mends files that others accept: without a name its folder counts,
 * and without a description the first paragraph.
 */
export function parseSkill(path: string, text: string): Parsed<SkillMetadata> {
  const refused = (problem: string) => ({ ok: false as const, problem: `${path}: ${problem}` });
  const found = parseFrontMatter(text) ?? { fields: {}, body: text, notice: "is missing" };
  const { fields } = found;
  if (found.problem !== undefined) return refused(`the front matter ${found.problem}`);
  if (!isRecord(fields))
    return refused("the front matter must be lines of `field: value`, with a name and a description");
  const warnings = found.notice === undefined ? [] : [`${path}: the front matter ${found.notice}`];
  const warn = (warning: string): void => void warnings.push(`${path}: ${warning}`);
  /** The text of a required field, or if it is blank the one that stands for it. */
  const required = (field: keyof typeof REQUIRED, instead = ""): string => {
    const value = fields[field] ?? "";
    const given = RequiredText.safeParse(value);
    if (given.success) return given.data;
    if (instead === "" || !ScalarText.safeParse(value).success) return "";
    warn(`${field} is missing: ${REQUIRED[field][1]}; '${oneLine(instead, 80)}' is used`);
    return instead;
  };
  const folder = path.split("/").at(-2);
  const [whole, does] = [required("name", folder), required("description", firstParagraph(found.body))];
  if (whole === "" || does === "") {
    const problems = Object.entries(REQUIRED).flatMap(([field, [, meaning]]) => {
      const value = fields[field] ?? "";
      if (value === "") return [`${field} is missing: ${meaning}`];
      return ScalarText.safeParse(value).success ? [] : [`${field} must be a text: ${meaning}`];
    });
    return refused(problems.join("; ") || "name and description must not be blank");
  }
  const option = <Value>(field: string, schema: z.ZodType<Value>, expected: string): Value | undefined => {
    const read = schema.optional().safeParse(fields[field] ?? undefined);
    if (!read.success) warn(`${field} must be ${expected} and was left out`);
    return read.data;
  };
  const cut = (field: string, value: string, limit: number): string => {
    if (value.length > limit) warn(`${field} is longer than ${limit} characters and was cut`);
    return headOf(value, limit);
  };
  const license = option("license", RequiredText, "a text");
  const compatibility = option("compatibility", RequiredText, "a text");
  const metadata = option("metadata", TextMap, "a map of texts");
  const allowedTools = option("allowed-tools", ToolNames, "names of tools, separated by spaces or as a list");
  const name = cut("name", whole, REQUIRED.name[0]);
  const when = ScalarText.safeParse(fields["when_to_use"]).data ?? "";
  const description = cut("description", `${does} ${when}`.trim(), REQUIRED.description[0]);
  const needs = compatibility && cut("compatibility", compatibility, 500);
  const isForPeople = switched(fields["user-invocable"] ?? fields["user-invokable"]) ?? true;
  const isFromAgent = switched(fields["disable-model-invocation"]) !== true;
  const invokedBy = isFromAgent ? undefined : isForPeople ? ("person" as const) : ("nobody" as const);
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name))
    warn(`name '${name}' should be lowercase letters and digits, in words joined by single hyphens`);
  else if (folder !== undefined && folder !== name)
    warn(`name '${name}' differs from its folder '${folder}'; rename one of them`);
  const optional = defined({ invokedBy, license, compatibility: needs, metadata, allowedTools });
  return { ok: true, described: { name, description, path, ...optional }, warnings };
}

/** Puts the folders into the text of a skill that its variables stand for. */
export const withFolders = (text: string, path: string, workspace = "."): string =>
  text
    .replaceAll(/\$\{(?:CLAUDE_)?SKILL_DIR\}|\{baseDir\}/g, () => path.slice(0, path.lastIndexOf("/")))
    .replaceAll(/\$\{(?:CLAUDE_PROJECT_DIR|workspaceFolder)\}/g, () => workspace);

/** The first lines below the headings of a text, whose beginning is looked through. */
const firstParagraph = (body: string): string | undefined =>
  headOf(body, 8192)
    .split(/\r?\n\s*\n/)
    .map((part) => part.replaceAll(/^(?:#|<!--).*$/gm, "").trim())
    .find((part) => /^[\p{L}\p{N}*_`"]/u.test(part));

/** Also passes one text for each omitted or cut file or folder to `note`. */
export function notingFiles(log: Logger, note: (text: string, isLeftOut: boolean) => void): Logger {
  const warn = (event: string, fields: LogFields = {}): void => {
    log.warn(event, fields);
    const texts = fields as Record<string, string | undefined>; // but `paths`, which are not reported here
    const { path, folder = path, source = folder, error, problem = error, warning } = texts;
    if (warning !== undefined) note(warning, false);
    else if (event === "files_not_read") note(`${source} has too many files: ${problem}`, true);
    else if (problem !== undefined) note(`${source} is left out: ${problem}`, true);
  };
  return { ...log, warn };
}
