import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import { byIdentity } from "../core/by-identity.ts";
import { firstSentence } from "../core/text.ts";
import { type ToolSpec, defineTool } from "./tool.ts";
import texts from "./texts.json" with { type: "json" };

/** A tool that is not in the list of the model from the beginning. */
export interface HiddenTool {
  name: string;
  description: string;
  parameters: readonly string[];
}

/** `- name: first sentence`. */
export const toolLine = ({ name, description }: HiddenTool): string =>
  `- ${name}: ${firstSentence(description, 140)}`;

/** Further tools that a result names, words that are searched, and tools that are searched in one turn of the event loop. */
const SEARCH = { named: 20, words: 20, atOnce: 200 };

/** Finds tools by words or by name. Its artifact names those that the model may use from now on. */
export const findToolsTool = (tools: readonly HiddenTool[]): ToolSpec =>
  defineTool({
    name: "find_tools",
    kind: "read",
    description: texts.findTools,
    schema: z.strictObject({
      query: z.string().min(1).max(500).describe("An exact name, several, or words such as `create issue`."),
      limit: z.int().min(1).max(20).default(5).describe("Number of tools to get at most."),
    }),
    async handle({ query, limit }) {
      const fitting = await findTools(tools, query);
      const [found, others] = [fitting.slice(0, limit), fitting.slice(limit)];
      const groups = [...new Set(tools.map(({ name }) => name.split("__", 1)[0] ?? name))].join(", ");
      if (found.length === 0)
        return { content: `No tool fits. Try other words, or the name of a group: ${groups}.` };
      const names = others.slice(0, SEARCH.named).map(({ name }) => name);
      const more = `\n\n${others.length} more fit, the best first: ${names.join(", ")}. Get one by its name, or search with more words.`;
      return {
        content: `In your list from now on:\n${found.map(toolLine).join("\n")}${others.length > 0 ? more : ""}`,
        artifact: { tools: found.map(({ name }) => name) },
      };
    },
  });

/** Tools that a query names come first, then those that fit its words best; a rare word counts more. */
export async function findTools(tools: readonly HiddenTool[], query: string): Promise<HiddenTool[]> {
  const asked = query.toLowerCase();
  const named = new Set(asked.split(/[\s,;`"']+/));
  const words = [...new Set(searchWords(query))].slice(0, SEARCH.words);
  const fits = new Map<HiddenTool, readonly number[]>();
  const counts = words.map(() => 0);
  for (const [at, tool] of tools.entries()) {
    if (at % SEARCH.atOnce === SEARCH.atOnce - 1) await nextTurn();
    const lower = tool.name.toLowerCase();
    const own = lower.replace(/^[^]*?__/, "");
    const fields = searchedFields(tool);
    const fit = words.map((word) =>
      Math.max(
        ...fields.map(
          ([weight, field]) =>
            weight *
            (field.includes(word)
              ? 1
              : field.some((other) => isBeginning(word, other) || isBeginning(other, word))
                ? 0.6
                : 0),
        ),
      ),
    );
    for (const [index, found] of fit.entries()) if (found > 0) counts[index] = (counts[index] ?? 0) + 1;
    const isNamed = lower === asked || own === asked || named.has(lower);
    if (isNamed || fit.some((found) => found > 0)) fits.set(tool, isNamed ? [Infinity] : fit);
  }
  const rarity = counts.map((count) => Math.log1p(tools.length / Math.max(count, 1)));
  const scored = [...fits].map(([tool, fit]) => ({
    tool,
    score: fit.reduce((sum, found, index) => sum + found * (rarity[index] ?? 1), 0),
  }));
  return scored
    .sort((one, other) => (one.score === other.score ? 0 : other.score - one.score))
    .map(({ tool }) => tool);
}

/** The fields of a tool that are searched, with their weights. */
const searchedFields = byIdentity(
  ({ name, description, parameters }: HiddenTool): ReadonlyArray<readonly [number, readonly string[]]> => [
    [4, searchWords(name)],
    [1, [...new Set([description, ...parameters].flatMap(searchWords))]],
  ],
);

/** `issues` and `issue` fit, too. */
const isBeginning = (short: string, long: string): boolean => short.length >= 3 && long.startsWith(short);

/** Words in lower case, also those of `camelCase` and `snake_case`. */
const searchWords = (text: string): string[] =>
  text
    .replace(/(\p{Ll}|\d)(\p{Lu})/gu, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "" && !COMMON.has(word));

const COMMON: ReadonlySet<string> = new Set(
  "a an and by can for from in into is it of on or that the this to tool tools use with".split(" "),
);
