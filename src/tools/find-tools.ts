import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
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

/** Further tools that fit a search and are named in its result. */
const MOST_NAMED = 20;

/** Finds tools by words or by name. Its artifact names those that the model may use from now on. */
export const findToolsTool = (index: ToolIndex): ToolSpec =>
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
      const fitting = await index.find(query);
      const [found, others] = [fitting.slice(0, limit), fitting.slice(limit)];
      if (found.length === 0) {
        const groups = [...new Set(index.tools.map(({ name }) => groupOf(name)))].join(", ");
        return { content: `No tool fits. Try other words, or the name of a group: ${groups}.` };
      }
      const names = others.slice(0, MOST_NAMED).map(({ name }) => name);
      const more = `${others.length} more fit, the best first: ${names.join(", ")}. Get one by its name, or search with more words.`;
      return {
        content: [
          `In your list from now on:\n${found.map(toolLine).join("\n")}`,
          ...(others.length > 0 ? [more] : []),
        ].join("\n\n"),
        artifact: { tools: found.map(({ name }) => name) },
      };
    },
  });

/** The server of a tool, whose name is before the tool's own. */
export const groupOf = (name: string): string => name.split("__", 1)[0] ?? name;

/** Words of a query that are searched. */
const MOST_WORDS = 40;
/** Weights of a word of the name, and of the description and the parameters. */
const WEIGHT = { name: 4, text: 1 };
/** `issues` and `issue` fit, too. */
const PARTLY = 0.6;
/** Shortest word that fits as the beginning of another one. */
const SHORTEST = 3;

/** Tools added by turns of the event loop, which has other work. */
const AT_ONCE = 200;

/** Tools by the words of their names, descriptions and parameters. A search visits only the words of its query. */
export class ToolIndex {
  readonly tools: HiddenTool[] = [];
  /** Positions of the tools with a word in the name, and of those that have it elsewhere. */
  readonly #words = new Map<string, { inName: number[]; inText: number[] }>();
  readonly #names = new Map<string, number[]>();
  /** All words in order; empty after words were added. */
  #sorted: string[] = [];
  #read = 0;
  #reading: Promise<void> = Promise.resolve();

  /** Tools that a query names come first, then those that fit its words best; a rare word counts more. */
  async find(query: string): Promise<HiddenTool[]> {
    await (this.#reading = this.#reading.then(() => this.#readAdded()));
    const asked = query.toLowerCase();
    const listed = asked.split(/[\s,;`"']+/).filter((name) => ownName(name) !== name);
    const scores = new Float64Array(this.#read);
    for (const word of [...new Set(searchWords(query))].slice(0, MOST_WORDS)) {
      const { fits, count } = this.#fitting(word);
      if (count === 0) continue;
      const rarity = Math.log1p(this.#read / count);
      for (const [at, fit] of fits.entries()) scores[at] = (scores[at] ?? 0) + fit * rarity;
    }
    for (const name of [asked, ...listed])
      for (const at of this.#names.get(name) ?? []) scores[at] = Infinity;
    const found = [...scores.keys()].filter((at) => scores[at] !== 0);
    const byScore = found.sort((one, other) => (scores[other] ?? 0) - (scores[one] ?? 0) || one - other);
    return byScore.flatMap((at) => this.tools[at] ?? []);
  }

  async #readAdded(): Promise<void> {
    for (; this.#read < this.tools.length; this.#read += 1) {
      const tool = this.tools[this.#read];
      if (tool) this.#add(tool, this.#read);
      if (this.#read % AT_ONCE === AT_ONCE - 1) await nextTurn();
    }
  }

  #add(tool: HiddenTool, at: number): void {
    const lower = tool.name.toLowerCase();
    for (const name of new Set([lower, ownName(lower)])) entryOf(this.#names, name, () => []).push(at);
    const inName = new Set(searchWords(tool.name));
    const inText = new Set([tool.description, ...tool.parameters].flatMap(searchWords));
    for (const word of inName) this.#entry(word).inName.push(at);
    for (const word of inText) if (!inName.has(word)) this.#entry(word).inText.push(at);
    this.#sorted = [];
  }

  /** How well a word fits each tool, and how many it fits. */
  #fitting(word: string): { fits: Float64Array; count: number } {
    const fits = new Float64Array(this.#read);
    let count = 0;
    for (const [found, part] of this.#alike(word)) {
      const { inName = [], inText = [] } = this.#words.get(found) ?? {};
      for (const [positions, weight] of [[inName, WEIGHT.name] as const, [inText, WEIGHT.text] as const])
        for (const at of positions) {
          const known = fits[at] ?? 0;
          if (known === 0) count += 1;
          fits[at] = Math.max(known, weight * part);
        }
    }
    return { fits, count };
  }

  /** The word itself, the words with which it begins, and those that begin with it. */
  *#alike(word: string): Generator<[string, number]> {
    yield [word, 1];
    for (let end = SHORTEST; end < word.length; end += 1) yield [word.slice(0, end), PARTLY];
    if (word.length < SHORTEST) return;
    if (this.#sorted.length === 0) this.#sorted = [...this.#words.keys()].sort();
    let [low, high] = [0, this.#sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#sorted[middle] ?? "") <= word) low = middle + 1;
      else high = middle;
    }
    for (; this.#sorted[low]?.startsWith(word); low += 1) yield [this.#sorted[low] ?? "", PARTLY];
  }

  #entry = (word: string) => entryOf(this.#words, word, () => ({ inName: [], inText: [] }));
}

/** The name without the server's. */
const ownName = (name: string): string => name.replace(/^[^]*?__/, "");

function entryOf<Value>(map: Map<string, Value>, key: string, make: () => Value): Value {
  const known = map.get(key) ?? make();
  map.set(key, known);
  return known;
}

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
