import { StateSchema } from "@langchain/langgraph";
import type { BackendSource } from "../../backends/backend.ts";
import { resolveBackend } from "../../backends/resolve.ts";
import type { Logger } from "../../core/logger.ts";
import { oneLine } from "../../core/text.ts";
import { asMaterial, SKILLS_PROMPT } from "../prompts.ts";
import { loadSkills } from "../skills/load-skills.ts";
import type { SkillMetadata } from "../skills/parse-skill.ts";
import { latest } from "../state.ts";
import { backendRuntime, threadFiles } from "../step.ts";
import { appendSystemPrompt, type Middleware } from "./middleware.ts";

export type SkillsMetadata = Readonly<Record<string, SkillMetadata>>;

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
