/** Finds the tools that a description of a subagent names, by the names of other programs too. */
import { defined } from "../../core/unknown.ts";
import { closestNames } from "../../core/options.ts";
import { FILE_TOOL_NAMES, type FileToolName, WEB_TOOL_NAMES, type WebToolName } from "../../tools/options.ts";
import type { AgentTool } from "../contracts/middleware.ts";
import { offeredName } from "../mcp-tools/server-config.ts";
import table from "./tool-names.json" with { type: "json" };

/** The tools that a subagent's description asks for. */
export interface ToolWishes {
  name: string;
  /** MCP servers, tools of theirs as `server__tool`, built-in tools. Absent: all. */
  tools?: readonly string[] | undefined;
  disallowedTools?: readonly string[] | undefined;
  /** Tools whose calls a person approves one by one. */
  askedTools?: readonly string[] | undefined;
  /** True for a subagent from a Markdown file: tools that its list does not name are left out. */
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
  /** Names of tools whose calls a person approves. */
  asked: string[];
  /** False: it starts no subagents, because those have more tools. */
  delegates: boolean;
  /** Why the file is left out: a restriction that cannot be kept. */
  refusal?: string;
  notes: ToolNote[];
}

const BUILT_IN: readonly string[] = [...FILE_TOOL_NAMES, "write_todos", ...WEB_TOOL_NAMES, "task"];
const plainKey = (name: string): string => name.toLowerCase().replaceAll(/[\s_-]/g, "");
/** Names of other programs with the built-in tools for them; `undefined`: there is none. */
const SAME: ReadonlyMap<string, readonly string[] | undefined> = new Map(
  table.programs.flatMap(({ tools }) =>
    Object.entries<string | null | undefined>(tools).map(([name, same]) => [
      plainKey(name),
      same?.split(" ").filter(Boolean),
    ]),
  ),
);

/** The tools a subagent gets, and the problems of the names in its description. */
export function chooseTools(wishes: ToolWishes, offer: ToolOffer): ChosenTools {
  const { name, isFile = false } = wishes;
  const find = (names: readonly string[] = []): Meant[] =>
    names.map((one) => findMeaning(one, offer, isFile));
  const lists = [wishes.tools, wishes.disallowedTools, wishes.askedTools] as const;
  const [wanted, unwanted, asked] = [find(lists[0]), find(lists[1]), find(lists[2])];
  const own = wanted.flatMap(({ builtIn }) => builtIn);
  const denied = new Set(unwanted.flatMap(({ builtIn }) => builtIn));
  // Most other programs delete files with the tools that write or run commands.
  if (["write_file", "edit_file", "execute"].some((one) => denied.has(one))) denied.add("delete");
  const isNarrowed = wishes.tools !== undefined && (isFile || own.length > 0);
  // Large results are read from files: no subagent does without.
  const fileTools = left(FILE_TOOL_NAMES, denied, isNarrowed ? ["read_file", "ls", ...own] : undefined);
  const webTools = left(WEB_TOOL_NAMES, denied, isNarrowed ? own : undefined);
  const chosen = wishes.tools && new Set(wanted.flatMap(({ foreign }) => foreign));
  const others = new Set(unwanted.flatMap(({ foreign }) => foreign));
  const tools = others.size > 0 || chosen ? offer.tools.filter((tool) => !others.has(tool)) : undefined;
  const limited = wanted.filter(({ isLimited }) => isLimited);
  const lost = unwanted.find(({ isKnown, plain }) => isFile && !isKnown && !/__|[/*]|^mcp/.test(plain));
  const delegating = wanted.find(({ builtIn }) => builtIn.includes("task"));
  return {
    ...(tools && { tools: tools.filter((tool) => chosen?.has(tool) ?? true) }),
    ...defined({ fileTools: fileTools as FileToolName[] | undefined, webTools }), // names from that list
    asked: [...asked, ...limited].flatMap((one) => [...one.builtIn, ...one.foreign.map((tool) => tool.name)]),
    delegates:
      !isFile || delegating?.isLimited === false || (!isNarrowed && denied.size === 0 && asked.length === 0),
    ...(lost && {
      refusal: `Subagent '${name}' is not offered: its file denies '${lost.plain}', which is not known here, so the restriction cannot be kept.`,
    }),
    notes: [...wanted, ...unwanted].flatMap((found) =>
      noteOn(found, { name, isDenied: unwanted.includes(found) }, offer),
    ),
  };
}

/** The tools of a list that were named, without the denied ones; undefined for all of them. */
function left<Name extends string>(
  all: readonly Name[],
  denied: ReadonlySet<string>,
  named: readonly string[] = all,
): Name[] | undefined {
  const kept = all.filter((name) => named.includes(name) && !denied.has(name));
  return named === all && kept.length === all.length ? undefined : kept;
}

interface Meant {
  name: string;
  /** The name without the condition in parentheses that some have. */
  plain: string;
  builtIn: readonly string[];
  foreign: AgentTool[];
  isKnown: boolean;
  /** It has a condition, such as `Bash(git log:*)`. */
  isLimited: boolean;
  /** Nothing here does the same. */
  isElsewhere: boolean;
}

function findMeaning(name: string, { tools, servers, missing, web }: ToolOffer, isFile: boolean): Meant {
  const plain = (name.endsWith(")") ? name.split("(", 1).join() : name).trim();
  const meant = plain.replace(/^mcp_{1,2}(?=[^_*])/, "").replace(/(?:__?|\/)\*$/, "");
  const parts = [...servers, ...missing].flatMap((server) => {
    const rest = /^(?:__?|\/)(.+)$/.exec(meant.startsWith(server) ? meant.slice(server.length) : "")?.[1];
    return rest === undefined ? [] : [{ server, offered: offeredName(server, rest) }];
  });
  const names = [
    meant,
    meant.replace(/^([^_/]+)(?:__|\/)(.+)$/s, (_, server: string, tool: string) => offeredName(server, tool)),
    ...parts.map(({ offered }) => offered),
  ];
  const exact = tools.filter(
    (tool) => plain === "*" || names.includes(tool.name) || tool.name.startsWith(`${meant}__`),
  );
  const isServer =
    [...servers, ...missing].includes(meant) || parts.some(({ server }) => missing.includes(server));
  const own = BUILT_IN.filter((one) => plain === "*" || one === plain);
  const isOwn = exact.length > 0 || isServer || (own.length > 0 && !isFile);
  const [, group = "", member = ""] = /^(\w+)\/(.+)$/.exec(plain) ?? [];
  const keys = [plain, ...(table.groups.split(" ").includes(group) ? [member, group] : [])].map(plainKey);
  const key = isOwn ? undefined : keys.find((one) => SAME.has(one));
  const row = key === undefined ? own : SAME.get(key);
  const builtIn = (row ?? []).filter((one) => !isMissing(one, web));
  const end = row?.find((one) => one.startsWith("mcp"))?.slice("mcp".length);
  const isElsewhere = key !== undefined && (row === undefined || (builtIn.length === 0 && row.length > 0));
  const isMeant = (tool: AgentTool) => tool.name.endsWith(end ?? "") && (end === "" || tool.kind === "read");
  return {
    name,
    plain,
    builtIn,
    foreign: end === undefined ? exact : tools.filter(isMeant),
    isKnown: exact.length > 0 || isServer || builtIn.length > 0 || key !== undefined,
    isLimited: plain !== name,
    isElsewhere,
  };
}

/** True for a tool for the web that this agent does not have. */
const isMissing = (name: string, web: readonly WebToolName[]): boolean =>
  WEB_TOOL_NAMES.some((one) => one === name && !web.includes(one));

function noteOn(
  { name: written, plain, isKnown, isLimited, isElsewhere }: Meant,
  { name, isDenied }: { name: string; isDenied: boolean },
  { tools, servers, web }: ToolOffer,
): ToolNote[] {
  const named = `Subagent '${name}' names the tool '${written}'`;
  if (isElsewhere) {
    if (isDenied) return [];
    const text = `${named}, which belongs to another program and has no counterpart here; it works without it. A server in mcpServers may offer one.`;
    return [{ text, isMistake: false }];
  }
  if (!isKnown) {
    const builtIn = BUILT_IN.filter((own) => !isMissing(own, web));
    const known = [...builtIn, ...servers, ...tools.map((tool) => tool.name)];
    const nearest = closestNames(plain.replace(/^mcp__/, ""), known);
    const hint = nearest.length > 0 ? ` Did you mean ${nearest.join(" or ")}?` : "";
    return [{ text: `${named}, which does not exist here; it works without it.${hint}`, isMistake: true }];
  }
  if (!isLimited) return [];
  const effect = isDenied ? "the whole tool is denied" : "a person approves each call";
  const text = `${named}: conditions in parentheses are not checked here, so ${effect}.`;
  return [{ text, isMistake: false }];
}
