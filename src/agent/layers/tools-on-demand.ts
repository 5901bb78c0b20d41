/** Tools that the model finds when it needs them: their names are in the prompt, and their schemas come later. */
import { findToolsTool, toolLine } from "../../tools/find-tools.ts";
import { specTool } from "../calls/tool.ts";
import { ESTIMATE } from "../compaction/compacted-view.ts";
import type { AgentTool, Middleware, ModelRequest } from "../contracts/middleware.ts";
import { type AgentState, CONTEXT_CHANNELS } from "../contracts/state.ts";
import { appendSystemPrompt } from "../messages/system-prompt.ts";
import { recordOf } from "../../core/unknown.ts";

export interface ToolsOnDemand {
  /** Tools that may be left out of the list at first. */
  names: readonly string[];
  /** Tokens that they may take in each request and stay in the list. Default 0. */
  tokens?: number;
}

/** OpenAI, Azure and Groq take 128 tools in a request. The lines about tools in the prompt have so many characters. */
const ROOM = { tools: 128, characters: 8000 };

const { loadedTools: LOADED_TOOLS } = CONTEXT_CHANNELS;

/** Tools that are left out of requests until the model has found or called them. */
class HiddenTools {
  readonly tools: Array<Parameters<typeof toolLine>[0]> = [];
  readonly names = new Set<string>();
  /** Names of all tools of earlier requests; empty before the first. */
  readonly known = new Set<string>();
  #prompt = { tools: 0, text: "" };

  /** Hides the chosen tools at first. If the list becomes too long later, only the new tools are hidden. */
  hide(offered: ModelRequest["tools"], chosen: ReadonlySet<string>, tokens: number): void {
    const isFirst = this.known.size === 0;
    const shown = offered.filter(({ name }) => !this.names.has(name));
    const fresh = shown.filter(({ name }) => (isFirst ? chosen.has(name) : !this.known.has(name)));
    if (shown.length <= ROOM.tools && (!isFirst || ESTIMATE.ofTools(fresh) <= tokens)) return;
    for (const { name, description = "", schema } of fresh) {
      const { properties, shape } = recordOf(schema);
      this.tools.push({ name, description, parameters: Object.keys(recordOf(properties ?? shape)) });
      this.names.add(name);
    }
  }

  /** Tools that were always in the list, then the others in the order in which they came: as many as have room. */
  listed(offered: ModelRequest["tools"], state: AgentState): ModelRequest["tools"] {
    const loaded = Object.entries(recordOf(state[LOADED_TOOLS])).filter(([name]) => this.names.has(name));
    const always = offered.filter(({ name }) => !this.names.has(name));
    const newest = loaded.toSorted(([, one], [, other]) => searchesBefore(other) - searchesBefore(one));
    const kept = new Set(newest.slice(0, Math.max(1, ROOM.tools - always.length)).map(([name]) => name));
    const byName = new Map(offered.map((tool) => [tool.name, tool]));
    return [...always, ...loaded.flatMap(([name]) => (kept.has(name) ? (byName.get(name) ?? []) : []))];
  }

  /** Lists as many tools of each server as have room in its share of the prompt. */
  get prompt(): string {
    if (this.#prompt.tools === this.tools.length) return this.#prompt.text;
    const serverOf = (name: string): string => name.split("__", 1)[0] ?? name;
    const used = new Map(this.tools.map(({ name }) => [serverOf(name), 0]));
    const lines = this.tools.flatMap((tool) => {
      const [server, line] = [serverOf(tool.name), toolLine(tool)];
      const characters = (used.get(server) ?? 0) + line.length + 1;
      if (characters > ROOM.characters / used.size) return [];
      used.set(server, characters);
      return [line];
    });
    const more = this.tools.length - lines.length;
    const rest = more > 0 ? [`${more} more are not listed here; find_tools finds them.`] : [];
    const heading = "These tools exist too. Get the ones that you need with `find_tools`.";
    this.#prompt = { tools: this.tools.length, text: [heading, ...lines, ...rest].join("\n") };
    return this.#prompt.text;
  }
}

/** Reads the number of searches before the one that found a tool; earlier versions stored a word. */
const searchesBefore = (stored: unknown): number => Number(stored) || 0;

/**
 * Shows the model names of tools, and tools once it has found or called them. The list only grows, for the cache, until
 * it has as many as providers take: then those that were found first leave it.
 */
export function toolsOnDemandMiddleware(
  { names, tokens = 0 }: ToolsOnDemand,
  tools: readonly AgentTool[],
): Middleware[] {
  const chosen = new Set(names);
  if (!tools.some(({ name }) => chosen.has(name))) return [];
  const hidden = new HiddenTools();
  const finder = specTool(findToolsTool(hidden.tools));
  return [
    {
      name: "ToolsOnDemandMiddleware",
      channels: { [LOADED_TOOLS]: { kind: "texts" } },
      tools: [finder],
      selectTools: (offered, state) => {
        hidden.hide(offered, chosen, tokens);
        return hidden.listed(offered, state);
      },
      wrapModelCall: (request, next) => {
        hidden.hide(request.tools, chosen, tokens);
        for (const { name } of request.tools) hidden.known.add(name);
        const tools = hidden.listed(request.tools, request.state);
        if (hidden.tools.length > 0) return next(appendSystemPrompt({ ...request, tools }, hidden.prompt));
        return next({ ...request, tools: tools.filter(({ name }) => name !== finder.name) });
      },
      wrapCall: async (request, next) => {
        const result = await next(request);
        if (request.isInner) return result;
        const { name } = request.toolCall;
        const found = recordOf(result.artifact)["tools"];
        const loaded = recordOf(request.state[LOADED_TOOLS]);
        const own = hidden.names.has(name) && !(name in loaded) ? [name] : [];
        const added = name === finder.name && Array.isArray(found) ? found.map(String) : own;
        if (added.length === 0) return result;
        const age = String(Math.max(0, ...Object.values(loaded).map(searchesBefore)) + 1);
        const update = Object.fromEntries(added.map((one) => [one, age]));
        return { ...result, update: { ...result.update, [LOADED_TOOLS]: update } };
      },
    },
  ];
}
