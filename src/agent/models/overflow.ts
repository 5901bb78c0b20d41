import { failureFacts } from "./failure-facts.ts";

/** How providers tell the tokens of a request and of their window, and of the answer where it counts too. */
const TOLD: readonly RegExp[] = [
  /(?<request>[\d,]+) \+ (?<answer>[\d,]+) > (?<window>[\d,]+)/,
  /(?<request>[\d,]+) tokens? > (?<window>[\d,]+)/i,
  /maximum (?:context|prompt) length is (?<window>[\d,]+).*?(?:resulted in|requested|contains) (?<request>[\d,]+)/is,
  /token count(?: of)? \(?(?<request>[\d,]+)\)? exceeds .*?(?<window>[\d,]+)/is,
];

/** Part of a refused request that would have fitted, as far as the provider's words tell; else undefined. */
export function fittingPart(error: unknown): number | undefined {
  const { text } = failureFacts(error);
  for (const pattern of TOLD) {
    const { request, window, answer = "0" } = pattern.exec(text)?.groups ?? {};
    if (request === undefined || window === undefined) continue;
    const part = (tokens(window) - tokens(answer)) / tokens(request);
    if (part > 0 && part < 1) return part;
  }
  return undefined;
}

const tokens = (digits: string): number => Number(digits.replaceAll(",", ""));
