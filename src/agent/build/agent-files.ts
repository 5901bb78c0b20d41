import { z } from "zod";
import type { Backend, BackendSource } from "../../backends/backend.ts";
import { readText } from "../../backends/file-data.ts";
import { baseName } from "../../backends/paths.ts";
import { checkBackend, obtainBackend } from "../../backends/runtime.ts";
import { defined } from "../../core/defined.ts";
import { type Logger, createLogger } from "../../core/logger.ts";
import { closestNames, readOptions } from "../../core/options.ts";
import { plainProblem } from "../../core/plain-problem.ts";
import { headOf, oneLine } from "../../core/text.ts";
import { FILE_TOOL_NAMES } from "../../tools/index.ts";
import { type FileToolName, WEB_TOOL_NAMES, type WebToolName } from "../../tools/options.ts";
import type { AgentTool, ToolInput } from "../contracts/middleware.ts";
import { offeredName } from "../mcp-tools/server-config.ts";
import { MOST_LEVELS, listFolders } from "../layers/skill-files.ts";
import { parseFrontMatter } from "../messages/front-matter.ts";
import type { SubAgent } from "./params.ts";
import { GENERAL_PURPOSE } from "../messages/prompts.ts";

/** Reads subagents from Markdown files, in Claude Code's format, and finds the tools that they name. */

/** A subagent that a Markdown file describes. */
export interface AgentFile {
  name: string;
  description: string;
  systemPrompt: string;
  /** `provider:model`. */
  model?: string;
  /** A model without its provider, or a name such as `sonnet`, as other programs write it. */
  modelAlias?: string;
  /** The only tools it is to have, by the names in the file. Absent: all. */
  tools?: string[];
  disallowedTools?: string[];
}

/** Characters. Every call of the model pays for the descriptions. */
const LONGEST_DESCRIPTION = 1024;

/** Folders of a workspace whose files describe subagents, lowest priority first. */
export const AGENT_FOLDERS: readonly string[] = ["/.claude/agents", "/.deepagent/agents"];

const Fields = z.looseObject({
  name: z.union([z.string(), z.number()]).nullish(),
  description: z.string().trim().min(1),
  model: z.string().nullish(),
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

/** A name as subagents have it: `Code Reviewer` becomes `code-reviewer`. */
const plainName = (text: string): string =>
  text
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/\p{M}/gu, "")
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "")
    .slice(0, 64);

/** Reads the fields and prompt of a subagent. Names of models of other programs are kept apart. */
export function parseAgentFile(
  path: string,
  text: string,
): { ok: true; agent: AgentFile; warnings: string[] } | { ok: false; problem: string } {
  const found = parseFrontMatter(text);
  if (!found) return { ok: false, problem: `${path} does not start with front matter between '---' lines` };
  if (found.problem !== undefined)
    return { ok: false, problem: `${path}: the front matter ${found.problem}` };
  const parsed = Fields.safeParse(found.fields, { error: plainProblem });
  if (!parsed.success) {
    const fields = parsed.error.issues.map(
      ({ path: at, message }) => `${at.join(".") || "front matter"}: ${message}`,
    );
    return { ok: false, problem: `${path}: ${fields.join("; ")}` };
  }
  const { name: written, description, model, tools, disallowedTools } = parsed.data;
  const name = plainName(String(written ?? "")) || plainName(baseName(path).replace(/\.md$/, ""));
  if (name === "") return { ok: false, problem: `${path}: name: use lowercase letters, digits and hyphens` };
  // Files come with a workspace that others may have written, so they only add subagents.
  if (name === GENERAL_PURPOSE) {
    const problem = `name: '${name}' is the built-in subagent, which a file cannot replace; rename the file, or put the subagent under "subagents" in the configuration`;
    return { ok: false, problem: `${path}: ${problem}` };
  }
  const systemPrompt = found.body.replaceAll("\r\n", "\n").trim();
  if (systemPrompt === "") return { ok: false, problem: `${path} has no prompt below its front matter` };
  const renamed = `name '${oneLine(String(written ?? ""), 80)}' is read as '${name}'; use lowercase letters, digits and hyphens`;
  const cut = `description is longer than ${LONGEST_DESCRIPTION} characters and was cut`;
  const warnings = [
    ...(name === written ? [] : [renamed]),
    ...(description.length > LONGEST_DESCRIPTION ? [cut] : []),
  ];
  return {
    ok: true,
    warnings: warnings.map((warning) => `${path}: ${warning}`),
    agent: {
      name,
      description: headOf(description, LONGEST_DESCRIPTION),
      systemPrompt,
      ...(model?.includes(":") ? { model } : defined({ modelAlias: model?.trim() || undefined })),
      ...defined({ tools, disallowedTools }),
    },
  };
}

/** The subagents of `folders`; of two with one name the later counts. Unreadable files are left out with a warning. */
export async function loadAgentFiles(
  backend: Backend,
  folders: readonly string[],
  log: Logger,
): Promise<AgentFile[]> {
  const agents = new Map<string, AgentFile>();
  for (const folder of folders) {
    const paths = await markdownFiles(backend, folder, log);
    for (const path of paths.sort().slice(0, MOST_FILES)) {
      const file = await readText(backend, path, 100 * 1024);
      const parsed =
        file.text === undefined
          ? { ok: false as const, problem: file.error }
          : parseAgentFile(path, file.text);
      if (!parsed.ok) {
        log.warn("agent_file_skipped", { path, problem: parsed.problem });
        continue;
      }
      for (const warning of parsed.warnings) log.warn("agent_file_format", { path, warning });
      agents.set(parsed.agent.name, parsed.agent);
    }
    const problem = `only the first ${MOST_FILES} are read, and the others cannot be started`;
    if (paths.length > MOST_FILES) log.warn("agent_files_not_read", { folder, problem });
  }
  return [...agents.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The Markdown files of a folder and, as far as it has some, of its groups. */
async function markdownFiles(backend: Backend, folder: string, log: Logger, level = 1): Promise<string[]> {
  const { files = [], error, code } = await backend.ls(folder);
  if (error !== undefined && code !== "not_found") log.warn("agent_folder_not_read", { folder, error });
  const paths = files.filter(({ path, is_dir }) => !is_dir && path.endsWith(".md")).map(({ path }) => path);
  for (const group of level < MOST_LEVELS && paths.length <= MOST_FILES ? listFolders(files) : [])
    paths.push(...(await markdownFiles(backend, group, log, level + 1)));
  return paths;
}

/** Files of one folder that are read: each run reads them again. */
const MOST_FILES = 200;
/** The tools that a subagent's description asks for. */
export interface ToolWishes {
  name: string;
  /** MCP servers, tools of theirs as `server__tool`, built-in tools. Absent: all. */
  tools?: readonly string[] | undefined;
  disallowedTools?: readonly string[] | undefined;
  /** It is described by a Markdown file, whose list leaves out every tool that is not on it. */
  isFile?: boolean;
}

export interface ToolOffer {
  /** All but the built-in ones: of other MCP servers, or the caller's. */
  tools: readonly AgentTool[];
  /** Names of the configured MCP servers. */
  servers: readonly string[];
  /** Servers that are not available, so that the names of their tools are unknown. */
  missing: readonly string[];
  web: readonly WebToolName[];
}

/** Something about a choice that its author should know. */
interface ToolNote {
  text: string;
  /** The author is to correct it; else it was meant for another program. */
  isMistake: boolean;
}

/** A list that is absent stands for all tools. */
interface ChosenTools {
  tools?: AgentTool[];
  fileTools?: FileToolName[];
  webTools?: WebToolName[];
  notes: ToolNote[];
}

/** Names of Claude Code's tools, as agent files use them, and ours for the same. */
const SAME: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    Read: ["read_file", "ls"],
    NotebookRead: ["read_file"],
    LS: ["ls"],
    Glob: ["glob"],
    Grep: ["grep"],
    Write: ["write_file"],
    Edit: ["edit_file"],
    MultiEdit: ["edit_file"],
    NotebookEdit: ["edit_file"],
    Bash: ["execute", "job"],
    BashOutput: ["job"],
    KillBash: ["job"],
    KillShell: ["job"],
    TodoRead: ["write_todos"],
    TodoWrite: ["write_todos"],
    Task: ["task"],
    Agent: ["task"],
    WebFetch: ["web_fetch"],
    WebSearch: ["web_search"],
  }),
);
/** Others of Claude Code. */
const ELSEWHERE: ReadonlySet<string> = new Set(
  (
    "WebFetch WebSearch Skill SlashCommand AskUserQuestion ExitPlanMode " +
    "ListMcpResourcesTool ReadMcpResourceTool"
  ).split(" "),
);
const BUILT_IN: readonly string[] = [...FILE_TOOL_NAMES, "write_todos", ...WEB_TOOL_NAMES, "task"];

/** The tools a subagent gets, and the problems of the names in its description. */
export function chooseTools(wishes: ToolWishes, offer: ToolOffer): ChosenTools {
  const notes: ToolNote[] = [];
  const meant = (names: readonly string[] = []): Meant[] =>
    names.map((name) => {
      const found = meaningOf(name, offer);
      notes.push(...notesOn(name, found, wishes, offer));
      return found;
    });
  const [wanted, unwanted] = [meant(wishes.tools), meant(wishes.disallowedTools)];
  const own = wanted.flatMap(({ builtIn }) => builtIn);
  const denied = new Set(unwanted.flatMap(({ builtIn }) => builtIn));
  const isNarrowed = wishes.tools !== undefined && (wishes.isFile === true || own.length > 0);
  // Large results are read from files: no subagent does without.
  const fileTools = left(FILE_TOOL_NAMES, isNarrowed ? ["read_file", "ls", ...own] : undefined, denied);
  const webTools = left(WEB_TOOL_NAMES, isNarrowed ? own : undefined, denied);
  const chosen = wishes.tools && wanted.flatMap(({ foreign }) => foreign);
  const others = new Set(unwanted.flatMap(({ foreign }) => foreign));
  const tools = others.size > 0 || chosen ? offer.tools.filter((tool) => !others.has(tool)) : undefined;
  return {
    ...(tools && { tools: tools.filter((tool) => chosen?.includes(tool) ?? true) }),
    ...defined({ fileTools: fileTools as FileToolName[] | undefined, webTools }), // names from that list
    notes,
  };
}

/** The tools of a list that were named, without the denied ones; undefined for all of them. */
function left<Name extends string>(
  all: readonly Name[],
  named: readonly string[] | undefined,
  denied: ReadonlySet<string>,
): Name[] | undefined {
  const isWhole = named === undefined && !all.some((name) => denied.has(name));
  return isWhole
    ? undefined
    : all.filter((name) => (named === undefined || named.includes(name)) && !denied.has(name));
}

interface Meant {
  /** The name without the condition in parentheses that some have. */
  plain: string;
  builtIn: readonly string[];
  foreign: AgentTool[];
  isKnown: boolean;
}

function meaningOf(name: string, { tools, servers, missing, web }: ToolOffer): Meant {
  const plain = (name.endsWith(")") ? name.split("(", 1).join() : name).trim();
  const same = SAME.get(plain) ?? BUILT_IN.filter((own) => own === plain);
  const builtIn = same.filter((own) => !isOfWeb(own) || web.some((one) => one === own));
  const meant = plain.replace(/^mcp__/, "").replace(/__\*$/, "");
  const [server = "", ...rest] = meant.split("__");
  const offered = rest.length > 0 ? offeredName(server, rest.join("__")) : meant;
  const foreign = tools.filter((tool) => tool.name === offered || tool.name.startsWith(`${meant}__`));
  const isKnown =
    builtIn.length > 0 || foreign.length > 0 || servers.includes(meant) || missing.includes(server);
  return { plain, builtIn, foreign, isKnown };
}

const isOfWeb = (name: string): boolean => WEB_TOOL_NAMES.some((one) => one === name);

function notesOn(
  name: string,
  { plain, isKnown }: Meant,
  { name: subagent }: ToolWishes,
  { tools, servers, web }: ToolOffer,
): ToolNote[] {
  const named = `Subagent '${subagent}' names the tool '${name}'`;
  if (!isKnown && ELSEWHERE.has(plain)) {
    const text = `${named}, which belongs to Claude Code and has no counterpart here; it works without it. A server in mcpServers may offer one.`;
    return [{ text, isMistake: false }];
  }
  if (!isKnown) {
    const builtIn = BUILT_IN.filter((own) => !isOfWeb(own) || web.some((one) => one === own));
    const known = [...builtIn, ...servers, ...tools.map((tool) => tool.name), ...SAME.keys()];
    const nearest = closestNames(plain.replace(/^mcp__/, ""), known);
    const hint = nearest.length > 0 ? ` Did you mean ${nearest.join(" or ")}?` : "";
    return [{ text: `${named}, which does not exist here; it works without it.${hint}`, isMistake: true }];
  }
  if (plain === name) return [];
  const text = `${named}: the part in parentheses is ignored here; approvals follow the configuration.`;
  return [{ text, isMistake: false }];
}

export interface LoadSubagentsOptions {
  /** The backend of the files: an instance, not a factory. */
  backend: BackendSource;
  /**
   * Folders of Markdown files, the later ones of higher priority. One that does not exist has none. Default
   * `/.claude/agents` and `/.deepagent/agents`.
   */
  folders?: readonly string[];
  /** The tools that files may name besides the built-in ones: the `tools` of the agent. */
  tools?: readonly ToolInput[];
  /** Logs files that are left out, and names of tools that do not exist. Default: standard error. */
  log?: Logger;
}

/**
 * The subagents that Markdown files describe, for `subagents` of `createDeepAgent`: name, description, model and
 * tools in the front matter, the prompt below. A file without a list of tools has those of the agent; names of Claude
 * Code's tools stand for the built-in ones.
 *
 * @throws ConfigurationError `BACKEND_RUNTIME` for a factory of backends.
 */
export async function loadSubagents(options: LoadSubagentsOptions): Promise<SubAgent[]> {
  const read = readOptions("loadSubagents", options, {
    backend: "anything",
    folders: "a list of non-empty texts",
    tools: "a list",
    log: "anything",
  });
  const { backend, folders = AGENT_FOLDERS, tools = [], log = createLogger("warn") } = read;
  checkBackend("`backend` of loadSubagents", backend);
  // It loads LangChain, which other readers of these files, such as `doctor`, do without.
  const { toAgentTool } = await import("../langgraph/foreign-tool.ts");
  const known = tools.map((tool) => toAgentTool(tool));
  const offer = { tools: known, servers: [], missing: [], web: WEB_TOOL_NAMES };
  const files = await loadAgentFiles(await obtainBackend(backend, undefined), folders, log);
  return files.map(({ tools: wanted, disallowedTools, modelAlias: _ofOthers, ...subagent }) => {
    const { name } = subagent;
    const chosen = chooseTools({ name, tools: wanted, disallowedTools, isFile: true }, offer);
    for (const { text } of chosen.notes) log.warn("subagent_tool_not_as_named", { problem: text });
    return {
      ...subagent,
      ...defined({ tools: chosen.tools }),
      ...(chosen.fileTools ? { filesystem: { tools: chosen.fileTools } } : {}),
      ...defined({ webTools: chosen.webTools }),
    };
  });
}
