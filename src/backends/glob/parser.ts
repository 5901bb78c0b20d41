/** One element of a pattern segment. */
export type GlobToken =
  | { kind: "char"; value: string }
  | { kind: "any" }
  | { kind: "star" }
  | { kind: "class"; negated: boolean; ranges: readonly (readonly [number, number])[] }
  | { kind: "slash" };

type Part = GlobToken | { kind: "group"; options: Part[][] };

export class GlobSyntaxError extends Error {}

const MAX_PATTERN_LENGTH = 1000;
const MAX_DEPTH = 16;
const MAX_ALTERNATIVES = 256;

/** The alternatives a pattern stands for, braces expanded. Throws `GlobSyntaxError`, whose message is the reason. */
export function parseGlob(pattern: string): GlobToken[][] {
  if (pattern === "") throw new GlobSyntaxError("the pattern is empty");
  if (pattern.length > MAX_PATTERN_LENGTH) {
    throw new GlobSyntaxError(`the pattern is longer than ${MAX_PATTERN_LENGTH} characters`);
  }
  if (pattern.includes("\0")) throw new GlobSyntaxError("the pattern contains a NUL character");
  const reader = { characters: Array.from(pattern), at: 0 };
  const parts = parseSequence(reader, 0);
  return expand(parts);
}

interface Reader {
  characters: string[];
  at: number;
}

/** Reads up to the end, or inside braces up to the `,` or `}` that ends the alternative. */
function parseSequence(reader: Reader, depth: number): Part[] {
  const parts: Part[] = [];
  for (;;) {
    const character = reader.characters[reader.at];
    if (character === undefined) return parts;
    if (depth > 0 && (character === "," || character === "}")) return parts;
    reader.at += 1;
    parts.push(parsePart(reader, character, depth));
  }
}

function parsePart(reader: Reader, character: string, depth: number): Part {
  switch (character) {
    case "*":
      return { kind: "star" };
    case "?":
      return { kind: "any" };
    case "/":
      return { kind: "slash" };
    case "[":
      return parseClass(reader);
    case "{":
      return parseGroup(reader, depth + 1);
    case "\\": {
      const escaped = reader.characters[reader.at];
      if (escaped === undefined) throw new GlobSyntaxError("the pattern ends in a backslash");
      reader.at += 1;
      return escaped === "/" ? { kind: "slash" } : { kind: "char", value: escaped };
    }
    default:
      return { kind: "char", value: character };
  }
}

function parseGroup(reader: Reader, depth: number): Part {
  if (depth > MAX_DEPTH) throw new GlobSyntaxError(`braces are nested more than ${MAX_DEPTH} deep`);
  const options: Part[][] = [];
  for (;;) {
    options.push(parseSequence(reader, depth));
    const end = reader.characters[reader.at];
    if (end === undefined) throw new GlobSyntaxError("a '{' is not closed");
    reader.at += 1;
    if (end === "}") return { kind: "group", options };
  }
}

function parseClass(reader: Reader): GlobToken {
  const first = reader.characters[reader.at];
  const negated = first === "!" || first === "^";
  if (negated) reader.at += 1;
  const ranges: [number, number][] = [];
  for (let start = true; ; start = false) {
    const character = reader.characters[reader.at];
    if (character === undefined || character === "/") throw new GlobSyntaxError("a '[' is not closed");
    if (character === "]" && !start) {
      reader.at += 1;
      return { kind: "class", negated, ranges };
    }
    const low = classMember(reader);
    const isRange =
      reader.characters[reader.at] === "-" && ![undefined, "]"].includes(reader.characters[reader.at + 1]);
    if (isRange) reader.at += 1;
    const high = isRange ? classMember(reader) : low;
    if (high < low) throw new GlobSyntaxError("a range in brackets runs backwards");
    ranges.push([low, high]);
  }
}

function classMember(reader: Reader): number {
  if (reader.characters[reader.at] === "\\") reader.at += 1;
  const code = reader.characters[reader.at]?.codePointAt(0);
  if (code === undefined) throw new GlobSyntaxError("a '[' is not closed");
  reader.at += 1;
  return code;
}

function expand(parts: readonly Part[]): GlobToken[][] {
  let results: GlobToken[][] = [[]];
  for (const part of parts) {
    const tails = part.kind === "group" ? part.options.flatMap(expand) : [[part]];
    if (results.length * tails.length > MAX_ALTERNATIVES) {
      throw new GlobSyntaxError(`the braces stand for more than ${MAX_ALTERNATIVES} patterns`);
    }
    results = results.flatMap((head) => tails.map((tail) => [...head, ...tail]));
  }
  return results;
}
