import { z } from "zod";
import { byIdentity } from "../core/by-identity.ts";
import { firstSentence } from "../core/text.ts";
import { type ToolSpec, defineTool } from "./tool.ts";

/** A tool that is not in the list of the model from the beginning. */
export interface HiddenTool {
  name: string;
  description: string;
  parameters: readonly string[];
}

/** `- name: first sentence`. */
export const toolLine = ({ name, description }: HiddenTool): string =>
  `- ${name}: ${firstSentence(description, 140)}`;

/** Finds tools by words or by name. Its artifact names those that the model may use from now on. */
export const findToolsTool = (tools: readonly HiddenTool[]): ToolSpec =>
  defineTool({
    name: "find_tools",
    kind: "read",
    description:
      "Get tools that are not in your list, by name or by words about their purpose. You can use those that are found from your next reply on.",
    schema: z.strictObject({
      query: z.string().min(1).max(500).describe("An exact name, several, or words such as `create issue`."),
      limit: z.int().min(1).max(20).default(5).describe("Number of tools to get at most."),
    }),
    async handle({ query, limit }) {
      const found = findTools(tools, query, limit);
      if (found.length > 0)
        return {
          content: `In your list from now on:\n${found.map(toolLine).join("\n")}`,
          artifact: { tools: found.map(({ name }) => name) },
        };
      const groups = [...new Set(tools.map(({ name }) => name.split("__", 1)[0] ?? name))].join(", ");
      return { content: `No tool fits. Try other words, or the name of a group: ${groups}.` };
    },
  });

/** Tools that a query names come first, then those that fit its words best. */
export function findTools(tools: readonly HiddenTool[], query: string, limit: number): HiddenTool[] {
  const asked = query.toLowerCase();
  const named = new Set(asked.split(/[\s,;`"']+/));
  const words = searchWords(query);
  return tools
    .map((tool) => {
      const lower = tool.name.toLowerCase();
      const own = lower.slice(lower.indexOf("__") + 2);
      // More than all words together.
      if (lower === asked || own === asked || named.has(lower)) return { tool, score: 1e6 };
      const fields = searchedFields(tool);
      const fits = words.map((word) =>
        fields.map(([weight, field]) => weight * Math.max(0, ...field.map((one) => fit(word, one)))),
      );
      return { tool, score: fits.reduce((sum, scores) => sum + Math.max(...scores), 0) };
    })
    .filter(({ score }) => score > 0)
    .toSorted((left, right) => right.score - left.score)
    .slice(0, limit)
    .map(({ tool }) => tool);
}

/** The fields of a tool that are searched, with their weights. */
const searchedFields = byIdentity(
  ({ name, description, parameters }: HiddenTool): ReadonlyArray<readonly [number, readonly string[]]> => [
    [4, searchWords(name)],
    [1, searchWords(description)],
    [1, parameters.flatMap(searchWords)],
  ],
);

/** `issues` and `issue` fit, too. */
const fit = (word: string, other: string): number =>
  word === other ? 1 : isBeginning(word, other) || isBeginning(other, word) ? 0.6 : 0;

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
