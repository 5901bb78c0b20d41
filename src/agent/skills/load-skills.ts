import type { Backend } from "../../backends/backend.ts";
import { readText } from "../../backends/file-data.ts";
import { joinPath, withoutSlash } from "../../backends/paths.ts";
import type { Logger } from "../../core/logger.ts";
import { parseSkill, type SkillMetadata } from "./parse-skill.ts";

const FILE = "SKILL.md";
const MAX_BYTES = 1024 * 1024;

/**
 * The skills of all sources. A source is a folder of skill folders, or one skill folder; of skills with
 * the same name the one from the later source counts. What cannot be read is left out with a warning.
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
