import { z } from "zod";
import type { Backend, FileInfo } from "../../backends/backend.ts";
import { readText } from "../../backends/file-data.ts";
import { joinPath, relativeTo, withSlash, withoutSlash } from "../../backends/paths.ts";
import { withinRoom } from "../../core/listing.ts";
import type { LogFields, Logger } from "../../core/logger.ts";
import { headOf, oneLine } from "../../core/text.ts";
import { isRecord } from "../../core/unknown.ts";
import { type TaskToolOptions, listedTypes } from "../../tools/task.ts";
import { parseFrontMatter } from "../messages/front-matter.ts";
import { asMaterial } from "../messages/prompts.ts";

/** Reads `SKILL.md` files, and chooses those that a prompt has room for. Loads no LangChain. */

export type SkillsMetadata = Readonly<Record<string, SkillMetadata>>;

/** Skills that are read where their list has limited room; more than the prompt ever lists. */
export const MOST_READ = 300;

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

/** Returns the skills that fit into `room` characters, in their order; the operator's sources come first. */
export function listedSkills(
  skills: readonly SkillMetadata[],
  sources: readonly string[],
  room: number | undefined,
): SkillMetadata[] {
  const rank = ({ path }: SkillMetadata): number =>
    sources.findLastIndex((source) => path.startsWith(withSlash(source)));
  const ordered = skills.toSorted((one, other) => rank(one) - rank(other));
  const shown = new Set(withinRoom(ordered, skillLine, room).shown);
  return skills.filter((skill) => shown.has(skill));
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
 * later counts. Unreadable ones are left out with a warning. `most`: files that are read, those of earlier sources first.
 */
export async function loadSkills(
  backend: Backend,
  sources: readonly string[],
  log: Logger,
  most = Infinity,
): Promise<Record<string, SkillMetadata>> {
  const skills = new Map<string, SkillMetadata>();
  let left = most;
  for (const source of sources) {
    const found = new Map<string, SkillMetadata>();
    const paths = await skillFiles(backend, source, log);
    // The list grows: a folder without a skill may be a group of skills.
    for (const path of paths) {
      if (left <= 0) break;
      left -= 1;
      const read = await readSkill(backend, path, log);
      if (read === "absent") {
        const group = path.slice(0, -SKILL_FILE.length - 1);
        const levels = relativeTo(withoutSlash(source), group).split("/").length;
        const { files = [] } = levels < MOST_LEVELS ? await backend.ls(group) : {};
        paths.push(...listFolders(files).map((folder) => joinPath(folder, SKILL_FILE)));
      }
      const skill = read === "absent" ? undefined : read;
      const twin = skill && found.get(skill.name);
      if (twin) log.warn("skill_name_twice", { source, name: skill.name, paths: [twin.path, path] });
      if (skill) found.set(skill.name, skill);
    }
    if (found.size === 0) log.info("skill_source_without_skills", { source, expected: `NAME/${SKILL_FILE}` });
    for (const [name, skill] of found) skills.set(name, skill);
  }
  return Object.fromEntries([...skills].sort(([a], [b]) => (a < b ? -1 : 1)));
}

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
      "it is a link that leads out of its folder; links are only followed in the folders of `skills` and `globalSkills`, unless these lie in the workspace";
    if (code === "outside_root") log.warn("skill_skipped", { path, problem });
  }
  return listFolders(files).map((folder) => joinPath(folder, SKILL_FILE));
}

/** Levels of folders below a source in which files are looked for, as repositories group them. */
export const MOST_LEVELS = 3;

/** The folders of a listing in which people keep files of their own. */
export const listFolders = (files: readonly FileInfo[]): string[] =>
  files
    .filter(({ path, is_dir }) => is_dir && !/\/(?:\.git|node_modules)\/?$/.test(path))
    .map(({ path }) => withoutSlash(path));

async function readSkill(
  backend: Backend,
  path: string,
  log: Logger,
): Promise<SkillMetadata | "absent" | undefined> {
  const file = await readText(backend, path, 1024 * 1024);
  if (file.text === undefined) {
    if (file.code === "not_found") return "absent";
    log.warn("skill_skipped", { path, problem: file.error });
    return undefined;
  }
  const parsed = parseSkill(path, file.text);
  if (!parsed.ok) {
    log.warn("skill_skipped", { path, problem: parsed.problem });
    return undefined;
  }
  for (const warning of parsed.warnings) log.warn("skill_format", { path, warning });
  return parsed.skill;
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
}

/** Words for true and false in front matter, which YAML reads as texts. */
export const isOn = (value: unknown): boolean => /^(?:true|yes|on|1)$/i.test(String(value));
export const isOff = (value: unknown): boolean => /^(?:false|no|off|0)$/i.test(String(value));

const FIELD_LIMITS = { name: 64, description: 1024, compatibility: 500 } as const;
const SKILL_NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;

/** Takes numbers and dates of YAML as the texts they were meant to be. */
const ScalarText = z.union([z.string(), z.number(), z.boolean(), z.date()]).transform(String);

const RequiredText = ScalarText.pipe(z.string().trim().min(1));

/** Optional fields, each with a description of its values. */
const OPTIONAL = {
  license: [RequiredText, "a text"],
  compatibility: [RequiredText, "a text"],
  metadata: [
    z.record(
      z.string(),
      z.unknown().transform((value) => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))),
    ),
    "a map of texts",
  ],
  "allowed-tools": [
    z.union([
      z.string(),
      // A list may also hold `Bash: git *` as YAML reads it.
      z.array(z.unknown()).transform((items) => items.filter((item) => typeof item === "string")),
    ]),
    "names of tools, separated by spaces or as a list",
  ],
} as const;

/**
 * Reads a `SKILL.md` (Agent Skills format), and mends files that others accept: without a name its folder counts,
 * and without a description the first paragraph.
 */
export function parseSkill(
  path: string,
  text: string,
): { ok: true; skill: SkillMetadata; warnings: string[] } | { ok: false; problem: string } {
  const found = parseFrontMatter(text) ?? { fields: {}, body: text, notice: "is missing" };
  if (found.problem !== undefined) {
    return { ok: false, problem: `${path}: the front matter ${found.problem}` };
  }
  const warnings = found.notice === undefined ? [] : [`${path}: the front matter ${found.notice}`];
  const warn = (warning: string): void => void warnings.push(`${path}: ${warning}`);
  if (!isRecord(found.fields)) {
    const problem = "the front matter must be lines of `field: value`, with a name and a description";
    return { ok: false, problem: `${path}: ${problem}` };
  }
  const { fields } = found;
  const name = required("name", fields, path.split("/").at(-2), warn);
  const description = required("description", fields, firstParagraph(found.body), warn);
  if (name === undefined || description === undefined)
    return { ok: false, problem: `${path}: ${missingFields(fields)}` };
  const option = <Field extends keyof typeof OPTIONAL>(
    field: Field,
  ): z.output<(typeof OPTIONAL)[Field][0]> | undefined => {
    const value = fields[field];
    if (value === undefined || value === null) return undefined;
    const [schema, expected] = OPTIONAL[field];
    const read = schema.safeParse(value);
    if (!read.success) warn(`${field} must be ${expected} and was left out`);
    return read.data as z.output<(typeof OPTIONAL)[Field][0]> | undefined; // of this field's schema
  };
  const [license, compatibility, metadata] = [option("license"), option("compatibility"), option("metadata")];
  const tools = option("allowed-tools");
  const skill: SkillMetadata = {
    name: cut("name", name, warn),
    description: cut("description", description, warn),
    path,
    ...(license ? { license } : {}),
    ...(compatibility ? { compatibility: cut("compatibility", compatibility, warn) } : {}),
    ...(metadata ? { metadata } : {}),
    ...(tools
      ? { allowedTools: typeof tools === "string" ? (tools.match(/[^\s,(]+(?:\([^)]*\))?/g) ?? []) : tools }
      : {}),
  };
  const folder = path.split("/").at(-2);
  if (!SKILL_NAME.test(skill.name)) {
    warn(`name '${skill.name}' should be lowercase letters and digits, in words joined by single hyphens`);
  } else if (folder !== undefined && folder !== skill.name) {
    warn(`name '${skill.name}' differs from its folder '${folder}'; rename one of them`);
  }
  return { ok: true, skill, warnings };
}

const PURPOSE = { name: "what the skill is called", description: "what it does and when to use it" } as const;

/** The text of a field, or if it is blank the one that stands for it. Returns undefined if there is neither. */
function required(
  field: keyof typeof PURPOSE,
  fields: Readonly<Record<string, unknown>>,
  instead: string | undefined,
  warn: (warning: string) => void,
): string | undefined {
  const { [field]: value = "" } = fields;
  const given = RequiredText.safeParse(value ?? "");
  if (given.success) return given.data;
  if (!instead || !ScalarText.safeParse(value ?? "").success) return undefined;
  warn(`${field} is missing: ${PURPOSE[field]}; '${oneLine(instead, 80)}' is used`);
  return instead;
}

/** The first lines below the headings of a text. */
const firstParagraph = (body: string): string | undefined =>
  headOf(body, MAX_BODY)
    .split(/\r?\n\s*\n/)
    .map((part) => part.replaceAll(/^(?:#|<!--).*$/gm, "").trim())
    .find((part) => /^[\p{L}\p{N}*_`"]/u.test(part));

/** Characters of a body that are looked through. */
const MAX_BODY = 8192;

/** Why a skill cannot be used, field by field. */
function missingFields(fields: Readonly<Record<string, unknown>>): string {
  const problems = Object.entries(PURPOSE).flatMap(([field, meaning]) => {
    const { [field]: value } = fields;
    if (value === undefined || value === null || value === "") return [`${field} is missing: ${meaning}`];
    return ScalarText.safeParse(value).success ? [] : [`${field} must be a text: ${meaning}`];
  });
  return problems.join("; ") || "name and description must not be blank";
}

function cut(field: keyof typeof FIELD_LIMITS, value: string, warn: (warning: string) => void): string {
  const limit = FIELD_LIMITS[field];
  if (value.length <= limit) return value;
  warn(`${field} is longer than ${limit} characters and was cut`);
  return headOf(value, limit);
}

/** Also passes one text for each omitted or cut file or folder to `note`. */
export function notingFiles(log: Logger, note: (text: string, isLeftOut: boolean) => void): Logger {
  const warn = (event: string, fields: LogFields = {}): void => {
    log.warn(event, fields);
    const texts = fields as Record<string, string | undefined>; // but `paths`, which are not reported here
    const { path, folder = path, source = folder, error, problem = error, warning } = texts;
    if (warning !== undefined) note(warning, false);
    else if (event === "agent_files_not_read") note(`${source} has too many files: ${problem}`, true);
    else if (problem !== undefined) note(`${source} is left out: ${problem}`, true);
  };
  return { ...log, warn };
}
