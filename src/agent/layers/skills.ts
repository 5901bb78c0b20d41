import type { BackendSource } from "../../backends/backend.ts";
import type { Logger } from "../../core/logger.ts";
import { oneLine } from "../../core/text.ts";
import type { Middleware } from "../contracts/middleware.ts";
import { PROMPTS } from "../messages/prompts.ts";
import { listedSkills, loadSkills, notingFiles, skillLine, withFolders } from "./skill-files.ts";
import type { SkillMetadata } from "./skill-files.ts";
import { warnOnce } from "./compose.ts";
import { appendSystemPrompt } from "../messages/system-prompt.ts";
import { unlisted } from "./planning.ts";

export { loadSkills, parseSkill } from "./skill-files.ts";

/** Shows the names and descriptions of skills in the prompt. */

/**
 * Names and descriptions of skills in the prompt, read once per thread; `null` in the channel reads them again.
 *
 * @param sources folders of skills, lowest priority first.
 * @param room characters for the list of skills. Default: as many as all skills need.
 * @param workspace the folder that skills mean by `${CLAUDE_PROJECT_DIR}`.
 */
export function skillsMiddleware(
  backend: BackendSource,
  sources: readonly string[],
  log: Logger,
  room: number | undefined,
  workspace?: string,
): Middleware {
  const most = room === undefined ? Infinity : undefined;
  const warn = warnOnce();
  return {
    name: "SkillsMiddleware",
    channels: { skillsMetadata: { kind: "latest", initial: {} } },
    beforeAgent: async (state, runtime) => {
      if (Object.keys(loadedSkills(state)).length > 0) return undefined;
      const { step } = runtime;
      const resolved = await step.backend(backend, state, log);
      const skipped: string[] = [];
      const noting = notingFiles(log, (text, isLeftOut) => isLeftOut && skipped.push(`Skill: ${text}`));
      const skillsMetadata = await loadSkills(resolved, sources, noting, most);
      const more = skipped.length - MOST_NOTICES;
      const rest = `${more} more problems of skills are not shown here; \`doctor\` lists all.`;
      const notices = [...skipped.slice(0, MOST_NOTICES), ...(more > 0 ? [rest] : [])];
      if (step.agent.length === 0) for (const message of notices) step.tell({ kind: "warning", message });
      return Object.keys(skillsMetadata).length === 0 ? undefined : { skillsMetadata };
    },
    wrapModelCall: (request, next) => {
      const skills = Object.values(loadedSkills(request.state)).filter((one) => one.invokedBy === undefined);
      if (skills.length === 0) return next(request);
      const shown = listedSkills(skills, sources, room);
      const isCut = shown.length < skills.length;
      if (isCut) warn(request, unlisted("skills", shown.length));
      const folders = sources.map((source) => `\`${oneLine(source, 1024)}\``).join(", ");
      const more = `More skills exist than are listed here: if none of these fits the task, list ${folders}.`;
      const lines = [...shown.map(skillLine), ...(isCut ? [more] : [])];
      return next(appendSystemPrompt(request, `${PROMPTS.skills}\n\n${lines.join("\n")}`));
    },
    wrapCall: async (request, next) => {
      const result = await next(request);
      const { name, args } = request.toolCall;
      if (name !== "read_file" || typeof result.content !== "string") return result;
      const read = Object.values(loadedSkills(request.state)).find(({ path }) => path === args["file_path"]);
      return read ? { ...result, content: withFolders(result.content, read.path, workspace) } : result;
    },
  };
}

/** Most notices of a run about skills, whose number is not limited. */
const MOST_NOTICES = 20;

const loadedSkills = (state: Readonly<Record<string, unknown>>): Readonly<Record<string, SkillMetadata>> =>
  (state["skillsMetadata"] as Record<string, SkillMetadata> | undefined) ?? {}; // our channel
