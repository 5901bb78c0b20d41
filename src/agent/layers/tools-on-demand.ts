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
  const hidden: Array<Parameters<typeof toolLine>[0]> = [];
  const isHidden = new Set<string>();
  const finder = specTool(findToolsTool(hidden));
  /** Names of all tools of earlier requests; empty before the first. */
  const known = new Set<string>();
  // If the list becomes too long later, only the new tools are hidden.
  const hide = (offered: ModelRequest["tools"]): void => {
    const isFirst = known.size === 0;
    const shown = offered.filter(({ name }) => !isHidden.has(name));
    const fresh = shown.filter(({ name }) => (isFirst ? chosen.has(name) : !known.has(name)));
    if (shown.length <= ROOM.tools && (!isFirst || ESTIMATE.ofTools(fresh) <= tokens)) return;
    for (const { name, description = "", schema } of fresh) {
      const { properties, shape } = recordOf(schema);
      hidden.push({ name, description, parameters: Object.keys(recordOf(properties ?? shape)) });
      isHidden.add(name);
    }
  };
  // Counts the searches before the one that found a tool; earlier versions stored a word.
  const ageOf = (stored: unknown): number => Number(stored) || 0;
  /** Tools that were always in the list, then the others in the order in which they came. */
  const listed = (offered: ModelRequest["tools"], state: AgentState): ModelRequest["tools"] => {
    const loaded = Object.entries(recordOf(state[LOADED_TOOLS])).filter(([name]) => isHidden.has(name));
    const always = offered.filter(({ name }) => !isHidden.has(name));
    const newest = loaded.toSorted(([, one], [, other]) => ageOf(other) - ageOf(one));
    const kept = new Set(newest.slice(0, Math.max(1, ROOM.tools - always.length)).map(([name]) => name));
    const byName = new Map(offered.map((tool) => [tool.name, tool]));
    return [...always, ...loaded.flatMap(([name]) => (kept.has(name) ? (byName.get(name) ?? []) : []))];
  };
  /** Lists as many tools of each server as have room in its share of the prompt. */
  const makePrompt = (): string => {
    const serverOf = (name: string): string => name.split("__", 1)[0] ?? name;
    const used = new Map(hidden.map(({ name }) => [serverOf(name), 0]));
    const lines = hidden.flatMap((tool) => {
      const [group, line] = [serverOf(tool.name), toolLine(tool)];
      const characters = (used.get(group) ?? 0) + line.length + 1;
      if (characters > ROOM.characters / used.size) return [];
      used.set(group, characters);
      return [line];
    });
    const more = hidden.length - lines.length;
    const rest = more > 0 ? [`${more} more are not listed here; find_tools finds them.`] : [];
    const heading = "These tools exist too. Get the ones that you need with `find_tools`.";
    return [heading, ...lines, ...rest].join("\n");
  };
  let prompt = { tools: 0, text: "" };
  return [
    {
      name: "ToolsOnDemandMiddleware",
      channels: { [LOADED_TOOLS]: { kind: "texts" } },
      tools: [finder],
      selectTools: (offered, state) => {
        hide(offered);
        return listed(offered, state);
      },
      wrapModelCall: (request, next) => {
        hide(request.tools);
        for (const { name } of request.tools) known.add(name);
        const offered = listed(request.tools, request.state);
        if (hidden.length === 0)
          return next({ ...request, tools: offered.filter(({ name }) => name !== finder.name) });
        if (prompt.tools !== hidden.length) prompt = { tools: hidden.length, text: makePrompt() };
        return next(appendSystemPrompt({ ...request, tools: offered }, prompt.text));
      },
      wrapCall: async (request, next) => {
        const result = await next(request);
        if (request.isInner) return result;
        const { name } = request.toolCall;
        const found = recordOf(result.artifact)["tools"];
        const loaded = recordOf(request.state[LOADED_TOOLS]);
        const added =
          name === finder.name && Array.isArray(found)
            ? found.map(String)
            : isHidden.has(name) && !(name in loaded)
              ? [name]
              : [];
        if (added.length === 0) return result;
        const age = Math.max(0, ...Object.values(loaded).map(ageOf)) + 1;
        const update = Object.fromEntries(added.map((one) => [one, String(age)]));
        return { ...result, update: { ...result.update, [LOADED_TOOLS]: update } };
      },
    },
  ];
}
