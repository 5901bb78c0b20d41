import type { AgentTool } from "./agent-tool.ts";
import { offeredName } from "./mcp-tools/names.ts";
import { closestNames } from "../core/closest-names.ts";
import { FILE_TOOL_NAMES } from "../tools/index.ts";
import type { FileToolName } from "../tools/options.ts";

/** Which tools a subagent is to have, as its description says. */
export interface ToolWishes {
  name: string;
  /** MCP servers, tools of theirs as `server__tool`, built-in tools. Absent: all. */
  tools?: readonly string[] | undefined;
  disallowedTools?: readonly string[] | undefined;
  /** It is described by a Markdown file, whose list leaves out every tool that is not on it. */
  isFile?: boolean;
}

/** What there is to choose from. */
export interface ToolOffer {
  /** All but the built-in ones: of other MCP servers, or the caller's. */
  tools: readonly AgentTool[];
  /** Names of the configured MCP servers. */
  servers: readonly string[];
  /** Those of them whose tools are not known, because they are not available. */
  missing: readonly string[];
}

/** Something about a choice that its author should know. */
export interface ToolNote {
  text: string;
  /** The author is to correct it; else it was meant for another program. */
  isMistake: boolean;
}

export interface ChosenTools {
  /** Of those offered. Absent: all. */
  tools?: AgentTool[];
  /** Absent: all. */
  fileTools?: FileToolName[];
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
  }),
);
/** Others of Claude Code. */
const ELSEWHERE: ReadonlySet<string> = new Set([
  "WebFetch",
  "WebSearch",
  "Skill",
  "SlashCommand",
  "AskUserQuestion",
  "ExitPlanMode",
  "ListMcpResourcesTool",
  "ReadMcpResourceTool",
]);
const BUILT_IN: readonly string[] = [...FILE_TOOL_NAMES, "write_todos", "task"];
/** Large results are read from files: no subagent does without. */
const ALWAYS = ["read_file", "ls"];

/** The tools a subagent gets, and what is wrong with the names in its description. */
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
  const kept = isNarrowed ? FILE_TOOL_NAMES.filter((name) => [...ALWAYS, ...own].includes(name)) : undefined;
  const fileTools = denied.size > 0 ? (kept ?? FILE_TOOL_NAMES).filter((name) => !denied.has(name)) : kept;
  const chosen = wishes.tools && wanted.flatMap(({ foreign }) => foreign);
  const left = new Set(unwanted.flatMap(({ foreign }) => foreign));
  const tools = left.size > 0 || chosen ? offer.tools.filter((tool) => !left.has(tool)) : undefined;
  return {
    ...(tools ? { tools: tools.filter((tool) => chosen?.includes(tool) ?? true) } : {}),
    ...(fileTools ? { fileTools: fileTools as FileToolName[] } : {}), // of the list of their names
    notes,
  };
}

interface Meant {
  /** The name without the condition in parentheses that some have. */
  plain: string;
  builtIn: readonly string[];
  foreign: AgentTool[];
  isKnown: boolean;
}

function meaningOf(name: string, { tools, servers, missing }: ToolOffer): Meant {
  const plain = (name.endsWith(")") ? name.split("(", 1).join() : name).trim();
  const builtIn = SAME.get(plain) ?? BUILT_IN.filter((own) => own === plain);
  const meant = plain.replace(/^mcp__/, "").replace(/__\*$/, "");
  const [server = "", ...rest] = meant.split("__");
  const offered = rest.length > 0 ? offeredName(server, rest.join("__")) : meant;
  const foreign = tools.filter((tool) => tool.name === offered || tool.name.startsWith(`${meant}__`));
  const isKnown =
    builtIn.length > 0 || foreign.length > 0 || servers.includes(meant) || missing.includes(server);
  return { plain, builtIn, foreign, isKnown };
}

function notesOn(
  name: string,
  { plain, isKnown }: Meant,
  { name: subagent }: ToolWishes,
  { tools, servers }: ToolOffer,
): ToolNote[] {
  const named = `Subagent '${subagent}' names the tool '${name}'`;
  if (!isKnown && ELSEWHERE.has(plain)) {
    const text = `${named}, which belongs to Claude Code and has no counterpart here; it works without. A server in mcpServers may offer one.`;
    return [{ text, isMistake: false }];
  }
  if (!isKnown) {
    const known = [...BUILT_IN, ...servers, ...tools.map((tool) => tool.name), ...SAME.keys()];
    const nearest = closestNames(plain.replace(/^mcp__/, ""), known);
    const hint = nearest.length > 0 ? ` Did you mean ${nearest.join(" or ")}?` : "";
    return [{ text: `${named}, which does not exist here; it works without.${hint}`, isMistake: true }];
  }
  if (plain === name) return [];
  const text = `${named}: what stands in parentheses is not applied here; approvals are as configured.`;
  return [{ text, isMistake: false }];
}
