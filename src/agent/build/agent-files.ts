import { z } from "zod";
import type { Backend, BackendSource } from "../../backends/backend.ts";
import { baseName } from "../../backends/paths.ts";
import { checkBackend, obtainBackend } from "../../backends/runtime.ts";
import { type Logger, createLogger } from "../../core/logger.ts";
import { readOptions } from "../../core/options.ts";
import { plainProblem } from "../../core/plain-problem.ts";
import { headOf, oneLine, fill } from "../../core/text.ts";
import { isRecord, recordOf, defined } from "../../core/unknown.ts";
import { FILE_TOOL_NAMES, WEB_TOOL_NAMES } from "../../tools/options.ts";
import type { ToolInput } from "../contracts/middleware.ts";
import shared from "../layers/shared-folders.json" with { type: "json" };
import type { InterruptOn } from "../layers/human-in-the-loop.ts";
import { loadTextFiles, switched } from "../layers/skill-files.ts";
import { parseFrontMatter } from "../messages/front-matter.ts";
import { GENERAL_PURPOSE } from "../messages/prompts.ts";
import { type ToolWishes, chooseTools } from "./choose-tools.ts";
import type { SubAgent } from "./params.ts";
import texts from "./texts.json" with { type: "json" };

export { chooseTools, type ToolOffer, type ToolWishes } from "./choose-tools.ts";

/** Reads subagents from files, in the formats of many programs, without their powers but with their restrictions. */

/** A subagent that a file describes. */
export interface AgentFile extends Pick<ToolWishes, "askedTools"> {
  name: string;
  description: string;
  systemPrompt: string;
  /** `provider:model`. */
  model?: string;
  /** A model without its provider, or a name such as `sonnet`, as other programs write it; of a list the first allowed. */
  modelAlias?: string | readonly string[];
  /** The only tools it is to have, by the names in the file. Absent: all. */
  tools?: string[];
  disallowedTools?: string[];
  limits?: { maxIterations?: number; wallTimeMs?: number };
}

/** Characters. Every call of the model pays for the descriptions. */
const LONGEST_DESCRIPTION = 1024;

const Names = z
  .union([z.string(), z.array(z.string()), z.null()], {
    error: "use names, separated by commas or as a list",
  })
  .optional();
const Action = z.union([z.string(), z.boolean()]);
/** Field names without case, `-` and `_`. */
const Fields = z.looseObject({
  name: z.union([z.string(), z.number()]).nullish(),
  description: z.string().trim().min(1),
  tools: z.union([Names, z.record(z.string(), Action)], {
    error: "use names, separated by commas or as a list",
  }),
  disallowedtools: Names,
  excludetools: Names,
  deny: Names,
  agents: Names,
  permission: z
    .union([z.string(), z.record(z.string(), z.union([Action, z.record(z.string(), Action)]))])
    .nullish(),
  permissions: z.looseObject({ deny: Names, ask: Names }).nullish(),
});

/** The names of `Read, Bash(git log:*)` or of a list. Blanks separate names that have no conditions. */
const splitNames = (given: z.output<typeof Names>): string[] =>
  [given ?? []].flat().flatMap((text) => {
    const isPlain = /^[\w\s/*-]+$/.test(text);
    const separated = isPlain ? text.split(/\s+/) : (text.match(/(?:\([^)]*\)?|[^,(])+/g) ?? []);
    return separated.map((name) => name.trim()).filter((name) => name !== "");
  });

const EDITING = ["edit/*", "delete"];

/** The tools that the fields of any program grant, deny, and have a person approve; or why these cannot be kept. */
function toolRules(
  fields: z.output<typeof Fields>,
): Pick<AgentFile, "tools" | "disallowedTools" | "askedTools"> | string {
  const { tools: given, permission, permissions, agents } = fields;
  const lists = (...all: z.output<typeof Names>[]) => all.flatMap(splitNames);
  const denied = lists(fields.disallowedtools, fields.excludetools, fields.deny, permissions?.deny);
  const asked = lists(permissions?.ask);
  let only = isRecord(given) ? undefined : given && splitNames(given);
  if (!only || only.includes("*")) only = undefined;
  const rules = [given, typeof permission === "string" ? { "*": permission } : permission];
  for (const [name, rule] of rules.flatMap((map) => (isRecord(map) ? Object.entries(map) : []))) {
    const actions = isRecord(rule) ? Object.values(rule) : [rule];
    // There, editing is one permission with several names.
    const meant = /^(edit|write|patch|multiedit)$/.test(name) ? EDITING : [name];
    const isDenied = actions.some((action) => action === "deny" || switched(action) === false);
    if (isDenied && name === "read" && isRecord(rule))
      return "permission: rules for reading single files cannot be kept here";
    if (isDenied && name === "*") only = [];
    else if (isDenied) denied.push(...meant);
    else if (actions.includes("ask")) asked.push(...meant);
    if (!isDenied && name !== "*") only?.push(...meant);
  }
  const modes = [fields["permissionmode"], fields["approvalmode"], fields["sandboxmode"]].map(String);
  if (switched(fields["readonly"]) || modes.some((mode) => /^(plan|dontask|read-only)$/i.test(mode)))
    denied.push(...EDITING, "execute", "job");
  if (agents !== undefined && !lists(agents).includes("*")) denied.push("task");
  return {
    ...(only && { tools: only }),
    ...(denied.length > 0 && { disallowedTools: denied }),
    ...(asked.length > 0 && { askedTools: asked }),
  };
}

/** Why a file is not to be a subagent, in the words of several programs. */
function whyNotOffered(fields: Readonly<Record<string, unknown>>): string | undefined {
  const { mode, kind, disable, disabled, enabled, infer, disablemodelinvocation } = fields;
  if (mode === "primary") return "mode is primary, so it is not a subagent";
  if (kind === "remote") return "kind is remote, and it works on another server";
  if ([disable, disabled].some(switched) || switched(enabled) === false) return "it is switched off";
  const isForPeople = switched(disablemodelinvocation) || switched(infer) === false;
  return isForPeople ? "only a person may start it" : undefined;
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
export function parseAgentFile(path: string, text: string) {
  const broken = (problem: string) => ({ ok: false as const, problem: `${path}${problem}` });
  const refused = (problem: string) => broken(`: ${problem}`);
  const found = parseFrontMatter(text, path);
  if (!found) return broken(" does not start with front matter between '---' lines");
  if (found.problem !== undefined) return refused(`the front matter ${found.problem}`);
  const given = Object.entries(recordOf(found.fields)).map(([field, value]) => [
    field.toLowerCase().replaceAll(/[-_]/g, ""),
    value,
  ]);
  const parsed = Fields.safeParse(Object.fromEntries(given), { error: plainProblem });
  if (!parsed.success) {
    const { issues } = parsed.error;
    return refused(issues.map((one) => `${one.path.join(".") || "front matter"}: ${one.message}`).join("; "));
  }
  const fields = parsed.data;
  const { name: written, description } = fields;
  const file = /^agents?\.md$/i.test(baseName(path)) ? (path.split("/").at(-2) ?? "") : baseName(path);
  const name =
    plainName(String(written ?? "")) || plainName(file.replace(/(?:\.agent|\.chatmode)?\.\w+$/, ""));
  if (name === "") return refused("name: use lowercase letters, digits and hyphens");
  // Files come with a workspace that others may have written, so they only add subagents.
  if (name === GENERAL_PURPOSE) return refused(fill(texts.builtInSubagent, name));
  const rules = toolRules(fields);
  const reason = whyNotOffered(fields) ?? (typeof rules === "string" ? rules : undefined);
  if (reason !== undefined || typeof rules === "string") return refused(String(reason));
  const systemPrompt = found.body.replaceAll("\r\n", "\n").trim();
  if (systemPrompt === "") return broken(" has no prompt below its front matter");
  const renamed = `name '${oneLine(String(written ?? ""), 80)}' is read as '${name}'; use lowercase letters, digits and hyphens`;
  const cut = `description is longer than ${LONGEST_DESCRIPTION} characters and was cut`;
  const warnings = [
    ...(name === written || (written ?? "") === "" ? [] : [renamed]),
    ...(description.length > LONGEST_DESCRIPTION ? [cut] : []),
  ];
  const { maxturns, maxsteps = maxturns, steps = maxsteps, timeoutmins: minutes } = fields;
  const isCount = (value: unknown): value is number => typeof value === "number" && value > 0;
  const limits = defined({
    maxIterations: isCount(steps) ? Math.ceil(steps) : undefined,
    wallTimeMs: isCount(minutes) ? minutes * 60_000 : undefined,
  });
  const described: AgentFile = {
    name,
    description: headOf(description, LONGEST_DESCRIPTION),
    systemPrompt,
    ...modelWish(fields["model"]),
    ...defined({ ...rules, limits: Object.keys(limits).length === 0 ? undefined : limits }),
  };
  return { ok: true as const, warnings: warnings.map((warning) => `${path}: ${warning}`), described };
}

/** The model as written; a list and forms that nothing here reads are names that no model may have. */
function modelWish(given: unknown): Pick<AgentFile, "model" | "modelAlias"> {
  if (Array.isArray(given)) return { modelAlias: given.map((one) => oneLine(String(one), 100)) };
  if (typeof given !== "string")
    return given === undefined || given === null ? {} : { modelAlias: "an unreadable name" };
  return given.includes(":") ? { model: given } : defined({ modelAlias: given.trim() || undefined });
}

/** The subagents of `folders`; of two with one name the later counts. Unreadable files are left out with a warning. */
export const loadAgentFiles = (backend: Backend, folders: readonly string[], log: Logger) =>
  loadTextFiles(backend, folders, "agent_file", parseAgentFile, log);

export interface LoadSubagentsOptions {
  /** The backend of the files: an instance, not a factory. */
  backend: BackendSource;
  /**
   * Folders of agent files, the later ones of higher priority. One that does not exist has none. Default: those of
   * many programs, such as `/.claude/agents`, and `/.deepagent/agents` last.
   */
  folders?: readonly string[];
  /** The tools that files may name besides the built-in ones: the `tools` of the agent. */
  tools?: readonly ToolInput[];
  /** Logs files that are left out, and names of tools that do not exist. Default: standard error. */
  log?: Logger;
}

/**
 * The subagents that Markdown files describe, for `subagents` of `createDeepAgent`: name, description, model and
 * tools in the front matter, the prompt below. A file without a list of tools has those of the agent; names of other
 * programs' tools stand for the built-in ones.
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
  const { backend, tools = [], log = createLogger("warn") } = read;
  checkBackend("`backend` of loadSubagents", backend);
  const own = read.folders ?? shared.agents.project.map((folder) => `/${folder}`);
  // It loads LangChain, which other readers of these files, such as `doctor`, do without.
  const { toAgentTool } = await import("../langgraph/foreign-tool.ts");
  const known = tools.map((tool) => toAgentTool(tool));
  const offer = { tools: known, servers: [], missing: [], web: WEB_TOOL_NAMES };
  const files = await loadAgentFiles(await obtainBackend(backend, undefined), own, log);
  // The gates of the agent are not known here, so all calls that act are gated together.
  const acting = [...FILE_TOOL_NAMES, ...known.map((one) => one.name)].filter(
    (one) => !/^(?:ls|read_file|glob|grep)$/.test(one),
  );
  const gates = Object.fromEntries(acting.map((one) => [one, true]));
  return files.flatMap(({ modelAlias: _ofOthers, ...file }) => {
    const { tools: _names, disallowedTools: _denied, askedTools, ...subagent } = file;
    const chosen = chooseTools({ ...file, isFile: true }, offer);
    for (const { text } of chosen.notes) log.warn("subagent_tool_not_as_named", { problem: text });
    if (chosen.refusal !== undefined) log.warn("agent_file_skipped", { problem: chosen.refusal });
    const isGated = askedTools !== undefined || chosen.asked.length > 0;
    return chosen.refusal === undefined ? [withTools(subagent, chosen, isGated ? gates : undefined)] : [];
  });
}

/** A subagent with its tools. `gates`: the approvals that it needs besides those of its description. */
export function withTools<Described extends object>(
  subagent: Described,
  { tools, fileTools, webTools, asked, delegates }: ReturnType<typeof chooseTools>,
  gates: InterruptOn | undefined,
) {
  return {
    ...subagent,
    ...defined({ tools, webTools }),
    ...(gates && { interruptOn: { ...gates, ...Object.fromEntries(asked.map((name) => [name, true])) } }),
    ...(fileTools && { filesystem: { tools: fileTools } }),
    ...(delegates ? {} : { delegates }),
  };
}
