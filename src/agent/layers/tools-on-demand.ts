/** Tools that the model finds when it needs them: their names are in the prompt, and their schemas come later. */
import { findToolsTool, toolLine } from "../../tools/find-tools.ts";
import { specTool } from "../calls/tool.ts";
import { ESTIMATE } from "../compaction/compacted-view.ts";
import type { AgentTool, Middleware, ModelRequest } from "../contracts/middleware.ts";
import { CONTEXT_CHANNELS } from "../contracts/state.ts";
import { appendSystemPrompt } from "../messages/system-prompt.ts";
import { recordOf } from "../../core/unknown.ts";

export interface ToolsOnDemand {
  /** Tools that may be left out of the list at first. */
  names: readonly string[];
  /** Tokens that they may take in each request and stay in the list. Default 0. */
  tokens?: number;
}

/** OpenAI, Azure and Groq take 128 tools in a request. */
const MOST_TOOLS = 128;

const { loadedTools: LOADED_TOOLS } = CONTEXT_CHANNELS;

/** Shows the model names of tools, and tools once it has found or called them. The list only grows, for the cache. */
export function toolsOnDemandMiddleware(
  { names, tokens = 0 }: ToolsOnDemand,
  tools: readonly AgentTool[],
): Middleware[] {
  const chosen = new Set(names);
  const given = tools.filter(({ name }) => chosen.has(name));
  if (given.length === 0) return [];
  const isSmall = ESTIMATE.ofTools(given.map(({ offered }) => offered)) <= tokens;
  const hidden: Array<Parameters<typeof toolLine>[0]> = [];
  const isHidden = new Set<string>();
  const finder = specTool(findToolsTool(hidden));
  /** Names of all tools of earlier requests; absent before the first. */
  let known: Set<string> | undefined;
  // If the list becomes too long later, only the new tools are hidden.
  const hide = (all: ModelRequest["tools"]): void => {
    const isMany = all.length - hidden.length > MOST_TOOLS;
    for (const { name, description = "", schema } of all) {
      if (known ? !isMany || known.has(name) : (isSmall && !isMany) || !chosen.has(name)) continue;
      const { properties, shape } = recordOf(schema);
      hidden.push({ name, description, parameters: Object.keys(recordOf(properties ?? shape)) });
      isHidden.add(name);
    }
    known = new Set([...(known ?? []), ...all.map(({ name }) => name)]);
  };
  return [
    {
      name: "ToolsOnDemandMiddleware",
      channels: { [LOADED_TOOLS]: { kind: "texts" } },
      tools: [finder],
      wrapModelCall: (request, next) => {
        hide(request.tools);
        if (hidden.length === 0)
          return next({ ...request, tools: request.tools.filter(({ name }) => name !== finder.name) });
        const loaded = Object.keys(recordOf(request.state[LOADED_TOOLS]));
        const byName = new Map(request.tools.map((tool) => [tool.name, tool]));
        // Tools that were always in the list, then the others in the order in which they came.
        const shown = [
          ...request.tools.filter(({ name }) => !isHidden.has(name)),
          ...loaded.flatMap((name) => (isHidden.has(name) ? (byName.get(name) ?? []) : [])),
        ];
        // Characters for the lines about tools in the prompt.
        let left = 8000;
        const lines = hidden.map(toolLine).filter((line) => (left -= line.length + 1) >= 0);
        const more = hidden.length - lines.length;
        const rest = more > 0 ? [`${more} more are not listed here; find_tools finds them.`] : [];
        const heading = "These tools exist too. Get the ones that you need with `find_tools`.";
        const prompt = [heading, ...lines, ...rest].join("\n");
        return next(appendSystemPrompt({ ...request, tools: shown }, prompt));
      },
      wrapCall: async (request, next) => {
        const result = await next(request);
        if (request.isInner) return result;
        const { name } = request.toolCall;
        const listed = recordOf(result.artifact)["tools"];
        const own = name === finder.name && Array.isArray(listed) ? listed.map(String) : [];
        const known = recordOf(request.state[LOADED_TOOLS]);
        const added = (isHidden.has(name) ? [name] : own).filter((one) => !(one in known));
        if (added.length === 0) return result;
        const loaded = Object.fromEntries(added.map((one) => [one, "shown"]));
        return { ...result, update: { ...result.update, [LOADED_TOOLS]: loaded } };
      },
    },
  ];
}
