import { z } from "zod";
import { headOf } from "../../core/text.ts";
import { frontMatterOf } from "../front-matter.ts";

/** What is known of a skill without reading its instructions. */
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

const FrontMatter = z.looseObject({
  name: z.string().trim().min(1),
  description: z.string().trim().min(1),
  license: z.string().optional(),
  compatibility: z.string().optional(),
  metadata: z.record(z.string(), z.coerce.string()).optional(),
  "allowed-tools": z.union([z.string(), z.array(z.string())]).optional(),
});

/**
 * Reads the front matter of a `SKILL.md` (Agent Skills format). A skill without name or description is
 * refused with the reason; what can be mended is mended with a warning.
 */
export function parseSkill(path: string, text: string): ParsedSkill {
  const found = frontMatterOf(text);
  if (found === undefined)
    return { ok: false, problem: `${path} does not start with front matter between '---' lines` };
  const parsed = FrontMatter.safeParse(found.fields);
  if (!parsed.success) {
    const fields = parsed.error.issues.map(
      ({ path: at, message }) => `${at.join(".") || "front matter"}: ${message}`,
    );
    return { ok: false, problem: `${path}: ${fields.join("; ")}` };
  }
  const { name, description, license, compatibility, metadata } = parsed.data;
  const tools = parsed.data["allowed-tools"];
  const warnings: string[] = [];
  const skill: SkillMetadata = {
    name: cut("name", name, path, warnings),
    description: cut("description", description, path, warnings),
    path,
    ...(license ? { license } : {}),
    ...(compatibility ? { compatibility: cut("compatibility", compatibility, path, warnings) } : {}),
    ...(metadata ? { metadata } : {}),
    ...(tools
      ? { allowedTools: typeof tools === "string" ? tools.split(/[\s,]+/).filter(Boolean) : tools }
      : {}),
  };
  const folder = path.split("/").at(-2);
  if (!NAME.test(skill.name))
    warnings.push(`${path}: name '${skill.name}' should be lowercase words with hyphens`);
  else if (folder !== undefined && folder !== skill.name) {
    warnings.push(`${path}: name '${skill.name}' differs from its folder '${folder}'`);
  }
  return { ok: true, skill, warnings };
}

function cut(field: keyof typeof LIMITS, value: string, path: string, warnings: string[]): string {
  const limit = LIMITS[field];
  if (value.length <= limit) return value;
  warnings.push(`${path}: ${field} is longer than ${limit} characters and was cut`);
  return headOf(value, limit);
}
