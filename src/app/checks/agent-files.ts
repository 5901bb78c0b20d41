/** Checks the subagents and skills that files of the workspace and of the operator describe. */
import { type AgentFile, type ToolOffer, chooseTools } from "../../agent/build/agent-files.ts";
import { InstructionReader } from "../../agent/layers/instruction-files.ts";
import { notingFiles, listRooms, listedSkills, loadSkills } from "../../agent/layers/skill-files.ts";
import { PROMPTS } from "../../agent/messages/prompts.ts";
import { type Environment, modelChoice } from "../../agent/models/choose.ts";
import { LOCAL } from "../../runs/run.ts";
import { FileTree, type SharedConfig, readAgentFiles, workspaceFolders } from "../file-tree.ts";
import { FilesystemBackend } from "../../backends/filesystem/filesystem.ts";
import { namedModels, withAllowedModels } from "../models.ts";
import { folderProblem } from "../../config/paths.ts";
import type { Config } from "../../config/schema.ts";
import { type Logger, silentLogger } from "../../core/logger.ts";
import { listedTypes } from "../../tools/task.ts";
import { GENERAL_PURPOSE } from "../../tools/tool.ts";
import { instructionPlaces } from "../instructions.ts";
import type { Check } from "./check.ts";

type FilesConfig = SharedConfig & Pick<Config, "subagents">;

/** The subagents of the configuration and of files whose descriptions need a look. */
export async function checkSubagentTools(config: FilesConfig, offer: ToolOffer): Promise<Check[]> {
  const name = "Subagent";
  const broken: Check[] = [];
  const log = notingFiles(silentLogger, (text, isLeftOut) => broken.push({ name, ok: !isLeftOut, text }));
  const files = await agentFiles(config, log);
  const used = [...config.subagents, ...files.map((file) => ({ ...file, isFile: true }))];
  const chosen = used.map((subagent) => chooseTools(subagent, offer));
  const notes = chosen.flatMap((one) => one.notes);
  return [
    ...broken,
    ...chosen.flatMap(({ refusal: text }) => (text === undefined ? [] : [{ name, ok: false, text }])),
    ...notes.map(({ text, isMistake }) => ({ name, ok: !isMistake, text })),
  ];
}

/** Agent files under other names than the configured subagents, as the person at this machine gets them. */
async function agentFiles(config: FilesConfig, log: Logger): Promise<AgentFile[]> {
  const { subagents, workspace } = config;
  if (workspace === undefined || folderProblem(workspace) !== undefined) return [];
  const own = new Set(subagents.map(({ name }) => name));
  const files = new FilesystemBackend({ rootDir: workspace, virtualMode: true });
  const folders = workspaceFolders("agents", workspace, "");
  return (await readAgentFiles(config, OWNER, [[files, folders]], log)).filter(({ name }) => !own.has(name));
}

const OWNER = { principal: LOCAL };

/** Models that files ask for and do not get, and the skills and subagents that the prompt has no room for. */
export async function checkAgentFiles(config: Config, env: Environment): Promise<Check[]> {
  const files = await agentFiles(config, silentLogger);
  const wishes = files.map((file) => ({ ...file, isFile: true }));
  const choice = modelChoice({ model: config.model, models: config.models, env, lendable: true });
  const { notices } = withAllowedModels(wishes, namedModels({ config, env, lendable: true }, choice));
  const general = { name: GENERAL_PURPOSE, description: PROMPTS.generalPurpose.description };
  const subagents = [general, ...config.subagents, ...files];
  // Without folders of principals in the workspace, everybody has the same folders of skills.
  const tree = new FileTree({ ...config, workspaceFolder: undefined });
  const sources = tree.skillSources(OWNER);
  const checks: Check[] = notices.map((text) => ({ name: "Subagent", ok: true, text }));
  const log = notingFiles(silentLogger, (text, isLeftOut) =>
    checks.push({ name: "Skill", ok: !isLeftOut, text }),
  );
  const skills = Object.values(await loadSkills(tree.mounts(OWNER), sources, log));
  const rooms = listRooms(config.limits, sources, subagents);
  const counts = {
    subagents: [listedTypes({ subagents, room: rooms.subagents }).shown, subagents],
    skills: [
      listedSkills(skills, sources, rooms.skills),
      skills.filter(({ invokedBy }) => invokedBy === undefined),
    ],
  };
  for (const [kind, [shown = [], all = []]] of Object.entries(counts)) {
    const text = `lists ${shown.length} of ${all.length} ${kind} that were read, as limits.listedCharacters (${config.limits.listedCharacters}) allows; the agent finds the others in their folders`;
    if (shown.length < all.length) checks.push({ name: "Prompt", ok: true, text });
  }
  return checks;
}

/** Files with instructions that a run of the person at this machine follows, and those that it passes over. */
export async function checkInstructions(config: Config, env: Environment): Promise<Check[]> {
  const places = instructionPlaces(config, OWNER, env["HOME"]);
  if (places === undefined || folderProblem(config.workspace ?? "") !== undefined) return [];
  const tree = new FileTree(config).mounts(OWNER);
  const { files, notes, rules } = await new InstructionReader(places, tree).start();
  const more = rules.length === 0 ? [] : [`${rules.length} more with the files that they are about`];
  const text = [...files, ...more, ...notes].join("\n");
  return text === "" ? [] : [{ name: "Instructions", ok: true, text }];
}
