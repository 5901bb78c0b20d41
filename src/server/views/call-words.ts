/** Tool calls in the words of people: `Read src/a.ts` where the journal has `read_file /workspace/src/a.ts`. */
import words from "./words.json" with { type: "json" };

/** `many`: several calls in a row. `isPlain`: a successful result adds nothing to the call. */
interface Words {
  does: string;
  did: string;
  many: string;
  isPlain?: boolean;
}

const WORDS: ReadonlyMap<string, Words> = new Map(Object.entries<Words>(words.calls));

const wordsOf = (tool: string): Words =>
  WORDS.get(tool) ?? { does: `Calling ${tool}`, did: `Called ${tool}`, many: `Called ${tool} {n} times` };

/** A call, read from the journal. */
export interface ToldCall {
  tool: string;
  /** Begins with the name of the tool. */
  summary: string;
}

/** Returns the verb and its object; empty if the summary names the tool alone. */
export function callWords({ tool, summary }: ToldCall, isOver: boolean): { verb: string; about: string } {
  const { does, did } = wordsOf(tool);
  const about = summary.startsWith(tool) ? summary.slice(tool.length).trim() : summary;
  // The summary has a pattern as JSON: it gets the quotes that people write.
  const quoted = about.replace(/^"((?:[^"\\]|\\.)*)"(?=$| in )/, "“$1”");
  return { verb: isOver ? did : does, about: quoted.replace(/(^| in )\/workspace\/(?=\S)/, "$1") };
}

export const manyCalls = (tool: string, count: number): string =>
  wordsOf(tool).many.replace("{n}", String(count));

/** True if the result of a successful call only repeats the call. */
export const isPlainResult = (tool: string): boolean => wordsOf(tool).isPlain === true;
