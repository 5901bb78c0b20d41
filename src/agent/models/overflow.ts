import { failureFacts } from "./failure-facts.ts";

/**
 * How providers tell the tokens of a request and of their window, and of the answer where it counts too; patterns
 * of one list follow each other in the text.
 */
const TOLD: readonly (readonly RegExp[])[] = [
  [/(?<![\d,])(?<request>[\d,]+) \+ (?<answer>[\d,]+) > (?<window>[\d,]+)/],
  [/(?<![\d,])(?<request>[\d,]+) tokens? > (?<window>[\d,]+)/i],
  [
    /maximum (?:context|prompt) length is (?<window>[\d,]+)/i,
    /(?:resulted in|requested|contains) (?<request>[\d,]+)/i,
  ],
  [/token count(?: of)? \(?(?<request>[\d,]+)\)? exceeds /i, /(?<window>[\d,]+)/],
];

/** Part of a refused request that would have fitted, as far as the provider's words tell; else undefined. */
export function fittingPart(error: unknown): number | undefined {
  const { text } = failureFacts(error);
  for (const patterns of TOLD) {
    const { request, window, answer = "0" } = inTurn(patterns, text);
    if (request === undefined || window === undefined) continue;
    const part = (tokens(window) - tokens(answer)) / tokens(request);
    if (part > 0 && part < 1) return part;
  }
  return undefined;
}

/** The named parts of patterns that follow each other, each looked for behind the one before. */
function inTurn(patterns: readonly RegExp[], text: string): Record<string, string | undefined> {
  let rest = text;
  let named: Record<string, string | undefined> = {};
  for (const pattern of patterns) {
    const found = pattern.exec(rest);
    if (found === null) return {};
    named = { ...named, ...found.groups };
    rest = rest.slice(found.index + found[0].length);
  }
  return named;
}

const tokens = (digits: string): number => Number(digits.replaceAll(",", ""));
