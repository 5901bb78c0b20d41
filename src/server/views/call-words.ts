/** Tool calls in the words of people: `Read src/a.ts` where the journal has `read_file /workspace/src/a.ts`. */

interface Words {
  does: string;
  did: string;
  /** Several calls in a row. */
  many: (count: number) => string;
  /** True if a successful result says nothing that the call does not say. */
  isPlain?: true;
}

const times = (verb: string) => (count: number) => `${verb} ${count} times`;

const WORDS: ReadonlyMap<string, Words> = new Map([
  ["read_file", { does: "Reading", did: "Read", many: (count) => `Read ${count} files` }],
  ["write_file", { does: "Writing", did: "Wrote", many: (count) => `Wrote ${count} files`, isPlain: true }],
  ["edit_file", { does: "Changing", did: "Changed", many: times("Changed files"), isPlain: true }],
  ["delete", { does: "Deleting", did: "Deleted", many: times("Deleted files"), isPlain: true }],
  ["ls", { does: "Listing", did: "Listed", many: (count) => `Listed ${count} folders` }],
  ["glob", { does: "Looking for files like", did: "Looked for files like", many: times("Looked for files") }],
  ["grep", { does: "Searching for", did: "Searched for", many: times("Searched files") }],
  ["execute", { does: "Running", did: "Ran", many: (count) => `Ran ${count} commands` }],
  [
    "run_program",
    { does: "Running a program", did: "Ran a program", many: (count) => `Ran ${count} programs` },
  ],
  ["task", { does: "Subagent at work:", did: "Subagent:", many: (count) => `${count} subagents started` }],
  [
    "write_todos",
    { does: "Updating the plan", did: "Updated the plan", many: times("Updated the plan"), isPlain: true },
  ],
  ["web_fetch", { does: "Reading", did: "Read", many: (count) => `Read ${count} pages of the web` }],
  [
    "web_search",
    { does: "Searching the web for", did: "Searched the web for", many: times("Searched the web") },
  ],
  [
    "find_tools",
    { does: "Looking for tools for", did: "Looked for tools for", many: times("Looked for tools") },
  ],
  [
    "search_memories",
    { does: "Searching memories for", did: "Searched memories for", many: times("Searched memories") },
  ],
]);

const wordsOf = (tool: string): Words =>
  WORDS.get(tool) ?? { does: `Calling ${tool}`, did: `Called ${tool}`, many: times(`Called ${tool}`) };

/** A call as the journal tells it. */
export interface ToldCall {
  tool: string;
  /** Begins with the name of the tool. */
  summary: string;
}

/** The verb, and what the call is about; empty if the summary names the tool alone. */
export function callWords({ tool, summary }: ToldCall, isOver: boolean): { verb: string; about: string } {
  const { does, did } = wordsOf(tool);
  const about = summary.startsWith(tool) ? summary.slice(tool.length).trim() : summary;
  return { verb: isOver ? did : does, about: quoted(about).replace(/(^| in )\/workspace\/(?=\S)/, "$1") };
}

/** A pattern is told as JSON: it gets the quotes that people write. */
const quoted = (about: string): string => about.replace(/^"((?:[^"\\]|\\.)*)"(?=$| in )/, "“$1”");

export const manyCalls = (tool: string, count: number): string => wordsOf(tool).many(count);

/** True if the result of a successful call only repeats the call. */
export const isPlainResult = (tool: string): boolean => wordsOf(tool).isPlain === true;
