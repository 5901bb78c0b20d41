import { StateSchema } from "@langchain/langgraph";
import { z } from "zod";
import type { Backend, BackendSource } from "../../backends/backend.ts";
import { readText } from "../../backends/file-data.ts";
import { joinPath, withoutSlash } from "../../backends/paths.ts";
import { resolveBackend } from "../../backends/runtime.ts";
import type { Logger } from "../../core/logger.ts";
import { headOf, oneLine } from "../../core/text.ts";
import type { Middleware } from "../contracts.ts";
import { frontMatterOf } from "../definition/agent-files.ts";
import { SKILLS_PROMPT, asMaterial } from "../definition/prompts.ts";
import { latest } from "../engine/state.ts";
import { backendRuntime, threadFiles } from "../engine/task-context.ts";
import { appendSystemPrompt } from "./middleware.ts";

/** Skills: reading `SKILL.md` files, and showing their names and descriptions in the prompt. */

type SkillsMetadata = Readonly<Record<string, SkillMetadata>>;

export interface SkillsOptions {
  backend: BackendSource;
  /** Folders of skills, lowest priority first. */
  sources: readonly string[];
  log: Logger;
}

/**
 * Skills by progressive disclosure: names and descriptions in the prompt, instructions read on use. Read
 * once per thread, so that the prompt keeps its bytes; `null` or an empty record in the channel reads them again.
 */
export function skillsMiddleware({ backend, sources, log }: SkillsOptions): Middleware {
  return {
    name: "SkillsMiddleware",
    stateSchema: new StateSchema({ skillsMetadata: latest<SkillsMetadata>({}) }),
    beforeAgent: async (state, runtime) => {
      if (Object.keys(skillsOf(state)).length > 0) return undefined;
      const resolved = await resolveBackend(
        backend,
        backendRuntime(runtime, threadFiles(runtime), state, log),
      );
      const skillsMetadata = await loadSkills(resolved, sources, log);
      return Object.keys(skillsMetadata).length === 0 ? undefined : { skillsMetadata };
    },
    wrapModelCall: (request, next) => {
      const skills = Object.values(skillsOf(request.state));
      return next(skills.length === 0 ? request : appendSystemPrompt(request, skillList(skills)));
    },
  };
}

const skillsOf = (state: Readonly<Record<string, unknown>>): SkillsMetadata =>
  (state["skillsMetadata"] as SkillsMetadata | undefined) ?? {}; // our channel

function skillList(skills: readonly SkillMetadata[]): string {
  const lines = skills.map(({ name, description, path, compatibility }) => {
    const needs = compatibility ? ` (${oneLine(compatibility, 200)})` : "";
    return asMaterial(
      `- ${oneLine(name, 64)}: ${oneLine(description, 1024)}${needs} Read ${oneLine(path, 1024)}`,
    );
  });
  return `${SKILLS_PROMPT}\n\n${lines.join("\n")}`;
}

const FILE = "SKILL.md";
const MAX_BYTES = 1024 * 1024;

/**
 * The skills of all sources. A source is a folder of skill folders, or one skill folder; of skills with
 * the same name the one from the later source counts. Unreadable skills are left out with a warning.
 */
export async function loadSkills(
  backend: Backend,
  sources: readonly string[],
  log: Logger,
): Promise<Record<string, SkillMetadata>> {
  const skills = new Map<string, SkillMetadata>();
  for (const source of sources) {
    const found = new Map<string, SkillMetadata>();
    for (const path of await skillFiles(backend, source, log)) {
      const skill = await readSkill(backend, path, log);
      const twin = skill && found.get(skill.name);
      if (twin) log.warn("skill_name_twice", { source, name: skill.name, paths: [twin.path, path] });
      if (skill) found.set(skill.name, skill);
    }
    if (found.size === 0) log.info("skill_source_without_skills", { source, expected: `NAME/${FILE}` });
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
  const own = files.find(({ path, is_dir }) => !is_dir && path.endsWith(`/${FILE}`));
  if (own) return [own.path];
  return files.filter(({ is_dir }) => is_dir).map(({ path }) => joinPath(withoutSlash(path), FILE));
}

async function readSkill(backend: Backend, path: string, log: Logger): Promise<SkillMetadata | undefined> {
  const file = await readText(backend, path, MAX_BYTES);
  if (file.text === undefined) {
    if (file.code !== "not_found") log.warn("skill_skipped", { path, problem: file.error });
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

/** The front matter of a skill. */
export interface SkillMetadata {
  name: string;
  description: string;
  /** Path of its `SKILL.md`. */
  path: string;
  license?: string;
  compatibility?: string;
  metadata?: Record<string, string>;
  /** Advice, not enforced. */
  allowedTools?: string[];
}

export type ParsedSkill =
  | { ok: true; skill: SkillMetadata; warnings: string[] }
  | { ok: false; problem: string };

const LIMITS = { name: 64, description: 1024, compatibility: 500 } as const;
const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;

/** Takes numbers and dates of YAML as the texts they were meant to be. */
const Text = z.union([z.string(), z.number(), z.boolean(), z.date()]).transform(String);

const Required = z.looseObject({
  name: Text.pipe(z.string().trim().min(1)),
  description: Text.pipe(z.string().trim().min(1)),
});

const OPTIONAL = {
  license: Text.pipe(z.string().trim().min(1)),
  compatibility: Text.pipe(z.string().trim().min(1)),
  metadata: z.record(z.string(), z.unknown()),
  "allowed-tools": z.union([z.string(), z.array(z.string())]),
} as const;
const EXPECTED: Readonly<Record<keyof typeof OPTIONAL, string>> = {
  license: "a text",
  compatibility: "a text",
  metadata: "a map of texts",
  "allowed-tools": "names of tools, separated by spaces or as a list",
};

/**
 * Reads the front matter of a `SKILL.md` (Agent Skills format). A skill without name or description is
 * refused with the reason; what can be mended is mended with a warning.
 */
export function parseSkill(path: string, text: string): ParsedSkill {
  const found = frontMatterOf(text);
  if (found === undefined)
    return { ok: false, problem: `${path} does not start with front matter between '---' lines` };
  if (found.problem !== undefined) {
    return { ok: false, problem: `${path}: the front matter ${found.problem}` };
  }
  const parsed = Required.safeParse(found.fields);
  if (!parsed.success) return { ok: false, problem: `${path}: ${missing(found.fields)}` };
  const warnings: string[] = [];
  const warn = (warning: string): void => void warnings.push(`${path}: ${warning}`);
  const option = <Field extends keyof typeof OPTIONAL>(
    field: Field,
  ): z.output<(typeof OPTIONAL)[Field]> | undefined => {
    const value = parsed.data[field];
    if (value === undefined || value === null) return undefined;
    const read = OPTIONAL[field].safeParse(value);
    if (!read.success) warn(`${field} must be ${EXPECTED[field]} and was left out`);
    return read.data as z.output<(typeof OPTIONAL)[Field]> | undefined; // of the schema of this field
  };
  const [license, compatibility, metadata] = [option("license"), option("compatibility"), option("metadata")];
  const tools = option("allowed-tools");
  const skill: SkillMetadata = {
    name: cut("name", parsed.data.name, warn),
    description: cut("description", parsed.data.description, warn),
    path,
    ...(license ? { license } : {}),
    ...(compatibility ? { compatibility: cut("compatibility", compatibility, warn) } : {}),
    ...(metadata ? { metadata: asTexts(metadata) } : {}),
    ...(tools ? { allowedTools: toolNames(tools) } : {}),
  };
  const folder = path.split("/").at(-2);
  if (!NAME.test(skill.name)) {
    warn(`name '${skill.name}' should be lowercase letters and digits, in words joined by single hyphens`);
  } else if (folder !== undefined && folder !== skill.name) {
    warn(`name '${skill.name}' differs from its folder '${folder}'; rename one of them`);
  }
  return { ok: true, skill, warnings };
}

/** Why a skill cannot be used, field by field. */
function missing(fields: unknown): string {
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
    return "the front matter must be lines of `field: value`, with a name and a description";
  }
  const purpose = { name: "what the skill is called", description: "what it does and when to use it" };
  const problems = Object.entries(purpose).flatMap(([field, meaning]) => {
    const value: unknown = Reflect.get(fields, field);
    if (value === undefined || value === null || value === "") return [`${field} is missing: ${meaning}`];
    return Text.safeParse(value).success ? [] : [`${field} must be a text: ${meaning}`];
  });
  return problems.join("; ") || "name and description must not be blank";
}

const asTexts = (metadata: Readonly<Record<string, unknown>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(metadata).map(([key, value]) => [
      key,
      typeof value === "string" ? value : (JSON.stringify(value) ?? ""),
    ]),
  );

/** Splits `Bash(git add:*) Read` into tools; text in brackets belongs to its tool. */
function toolNames(tools: string | readonly string[]): string[] {
  if (typeof tools !== "string") return [...tools];
  return tools.match(/[^\s,(]+(?:\([^)]*\))?/g) ?? [];
}

function cut(field: keyof typeof LIMITS, value: string, warn: (warning: string) => void): string {
  const limit = LIMITS[field];
  if (value.length <= limit) return value;
  warn(`${field} is longer than ${limit} characters and was cut`);
  return headOf(value, limit);
}
