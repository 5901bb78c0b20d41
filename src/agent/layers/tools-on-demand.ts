/** Tools that the model finds when it needs them: their names are in the prompt, and their schemas come later. */
import { findToolsTool, toolLine } from "../../tools/find-tools.ts";
import { specTool } from "../calls/tool.ts";
import { ESTIMATE } from "../compaction/compacted-view.ts";
import type { AgentTool, Middleware } from "../contracts/middleware.ts";
import { CONTEXT_CHANNELS } from "../contracts/state.ts";
import { appendSystemPrompt } from "../messages/system-prompt.ts";
import { recordOf } from "../../core/unknown.ts";

export interface ToolsOnDemand {
  /** Tools that may be left out of the list at first. */
  names: readonly string[];
  /** Tokens that they may take in each request and stay in the list. Default 0. */
  tokens?: number;
}

/** OpenAI, Azure and Groq take 128 tools in a request; middleware may add some. */
const MOST_TOOLS = 110;

const { loadedTools: LOADED_TOOLS } = CONTEXT_CHANNELS;

/** Shows the model names of tools, and tools once it has found or called them. The list only grows, for the cache. */
export function toolsOnDemandMiddleware(
  { names, tokens = 0 }: ToolsOnDemand,
  tools: readonly AgentTool[],
): Middleware[] {
  const chosen = new Set(names);
  const hidden = tools.filter(({ name }) => chosen.has(name));
  const isSmall = ESTIMATE.ofTools(hidden.map(({ offered }) => offered)) <= tokens;
  if (hidden.length === 0 || (isSmall && tools.length <= MOST_TOOLS)) return [];
  const described = hidden.map(({ name, offered }) => {
    const { properties, shape } = recordOf(offered.schema);
    return { name, description: offered.description, parameters: Object.keys(recordOf(properties ?? shape)) };
  });
  const isHidden = new Set(described.map(({ name }) => name));
  const finder = specTool(findToolsTool(described));
  const lines: string[] = [];
  // Characters for the lines about tools in the prompt.
  let left = 8000;
  for (const line of described.map(toolLine)) {
    left -= line.length + 1;
    if (left < 0) break;
    lines.push(line);
  }
  const more = described.length - lines.length;
  const rest = more > 0 ? [`${more} more are not listed here; find_tools finds them.`] : [];
  const heading = "These tools exist too. Get the ones that you need with `find_tools`.";
  const prompt = [heading, ...lines, ...rest].join("\n");
  return [
    {
      name: "ToolsOnDemandMiddleware",
      channels: { [LOADED_TOOLS]: { kind: "texts" } },
      tools: [finder],
      wrapModelCall: (request, next) => {
        const loaded = Object.keys(recordOf(request.state[LOADED_TOOLS]));
        const byName = new Map(request.tools.map((tool) => [tool.name, tool]));
        // Tools that were always in the list, then the others in the order in which they came.
        const shown = [
          ...request.tools.filter(({ name }) => !isHidden.has(name)),
          ...loaded.flatMap((name) => (isHidden.has(name) ? (byName.get(name) ?? []) : [])),
        ];
        return next(appendSystemPrompt({ ...request, tools: shown }, prompt));
      },
      wrapCall: async (request, next) => {
        const result = await next(request);
        if (request.isInner) return result;
        const { name } = request.toolCall;
        const listed = recordOf(result.artifact)["tools"];
        const own = name === finder.name && Array.isArray(listed) ? listed.map(String) : [];
        const found = isHidden.has(name) ? [name] : own;
        const known = recordOf(request.state[LOADED_TOOLS]);
        const added = found.filter((one) => !(one in known));
        if (added.length === 0) return result;
        const loaded = Object.fromEntries(added.map((one) => [one, "shown"]));
        return { ...result, update: { ...result.update, [LOADED_TOOLS]: loaded } };
      },
    },
  ];
}
