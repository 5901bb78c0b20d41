import { z } from "zod";
import type { Backend } from "../backends/backend.ts";
import { readText } from "../backends/file-data.ts";
import type { Logger } from "../core/logger.ts";
import { frontMatterOf } from "./front-matter.ts";
import { GENERAL_PURPOSE } from "./prompts.ts";

/** A subagent that a Markdown file describes. */
export interface AgentFile {
  name: string;
  description: string;
  systemPrompt: string;
  /** `provider:model`. */
  model?: string;
  /** The only tools it is to have, by whatever names the file gives. Absent: all. */
  tools?: string[];
  /** Tools it is not to have. */
  disallowedTools?: string[];
}

export type ParsedAgentFile = { ok: true; agent: AgentFile } | { ok: false; problem: string };

const MAX_BYTES = 100 * 1024;

/** Files come with a workspace that others may have written, so they only add subagents. */
const REPLACES_BUILT_IN = `name: '${GENERAL_PURPOSE}' is the built-in subagent, which a file does not replace; give the file another name, or put the subagent under "subagents" in the configuration`;

/** Folders of a workspace whose files describe subagents, lowest priority first. */
export const AGENT_FOLDERS: readonly string[] = ["/.claude/agents", "/.deepagent/agents"];

const Fields = z.looseObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/, { error: "use lowercase letters, digits and hyphens" }),
  description: z.string().trim().min(1).max(1024),
  model: z.string().optional(),
  tools: toolList("tools"),
  disallowedTools: toolList("disallowedTools"),
});

/** `Read, Bash(git log:*)` or a list; nothing at all and `*` stand for all. */
function toolList(field: string) {
  const error = `${field}: use names, separated by commas or as a list`;
  return z
    .union([z.string(), z.array(z.string()), z.null()], { error })
    .optional()
    .transform((given) => {
      const names = [given ?? "*"].flat().flatMap((text) => text.match(/(?:\([^)]*\)?|[^,(])+/g) ?? []);
      const clean = names.map((name) => name.trim()).filter((name) => name !== "");
      return clean.includes("*") ? undefined : clean;
    });
}

/**
 * Reads a subagent: name, description, model and tools from the front matter, the text below as its prompt.
 * Names of models without a provider belong to other programs and are left out; which tools there are is
 * not known here.
 */
export function parseAgentFile(path: string, text: string): ParsedAgentFile {
  const found = frontMatterOf(text);
  if (!found) return { ok: false, problem: `${path} does not start with front matter between '---' lines` };
  if (found.problem !== undefined) {
    return { ok: false, problem: `${path}: the front matter ${found.problem}` };
  }
  const parsed = Fields.safeParse(found.fields);
  if (!parsed.success) {
    const fields = parsed.error.issues.map(
      ({ path: at, message }) => `${at.join(".") || "front matter"}: ${message}`,
    );
    return { ok: false, problem: `${path}: ${fields.join("; ")}` };
  }
  const { name, description, model, tools, disallowedTools } = parsed.data;
  if (name === GENERAL_PURPOSE) return { ok: false, problem: `${path}: ${REPLACES_BUILT_IN}` };
  const systemPrompt = found.body.replaceAll("\r\n", "\n").trim();
  if (systemPrompt === "") return { ok: false, problem: `${path} has no prompt below its front matter` };
  return {
    ok: true,
    agent: {
      name,
      description,
      systemPrompt,
      ...(model?.includes(":") ? { model } : {}),
      ...(tools ? { tools } : {}),
      ...(disallowedTools ? { disallowedTools } : {}),
    },
  };
}

/**
 * The subagents described in the Markdown files of `folders`; of two with one name the later folder's
 * counts. What cannot be read is left out with a warning.
 */
export async function loadAgentFiles(
  backend: Backend,
  folders: readonly string[],
  log: Logger,
): Promise<AgentFile[]> {
  const agents = new Map<string, AgentFile>();
  for (const folder of folders) {
    const { files = [], error, code } = await backend.ls(folder);
    if (error !== undefined && code !== "not_found") log.warn("agent_folder_not_read", { folder, error });
    const paths = files.filter(({ path, is_dir }) => !is_dir && path.endsWith(".md")).map(({ path }) => path);
    for (const path of paths.sort()) {
      const agent = await readAgentFile(backend, path, log);
      if (agent) agents.set(agent.name, agent);
    }
  }
  return [...agents.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function readAgentFile(backend: Backend, path: string, log: Logger): Promise<AgentFile | undefined> {
  const file = await readText(backend, path, MAX_BYTES);
  if (file.text === undefined) {
    log.warn("agent_file_skipped", { path, problem: file.error });
    return undefined;
  }
  const parsed = parseAgentFile(path, file.text);
  if (parsed.ok) return parsed.agent;
  log.warn("agent_file_skipped", { path, problem: parsed.problem });
  return undefined;
}
