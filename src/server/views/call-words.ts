/** Tool calls in the words of people: `Read src/a.ts` where the journal has `read_file /workspace/src/a.ts`. */

interface Words {
  does: string;
  did: string;
  /** Several calls in a row. */
  many: (count: number) => string;
  /** True if a successful result adds nothing to the call. */
  isPlain: boolean;
}

const times = (verb: string) => (count: number) => `${verb} ${count} times`;

const words = (does: string, did: string, many: Words["many"] = times(did), isPlain = false): Words => ({
  does,
  did,
  many,
  isPlain,
});

const WORDS: ReadonlyMap<string, Words> = new Map([
  ["read_file", words("Reading", "Read", (count) => `Read ${count} files`)],
  ["write_file", words("Writing", "Wrote", (count) => `Wrote ${count} files`, true)],
  ["edit_file", words("Changing", "Changed", times("Changed files"), true)],
  ["delete", words("Deleting", "Deleted", times("Deleted files"), true)],
  ["ls", words("Listing", "Listed", (count) => `Listed ${count} folders`)],
  ["glob", words("Looking for files like", "Looked for files like", times("Looked for files"))],
  ["grep", words("Searching for", "Searched for", times("Searched files"))],
  ["execute", words("Running", "Ran", (count) => `Ran ${count} commands`)],
  ["run_program", words("Running a program", "Ran a program", (count) => `Ran ${count} programs`)],
  ["task", words("Subagent:", "Subagent:", (count) => `${count} subagents started`)],
  ["write_todos", words("Updating the plan", "Updated the plan", undefined, true)],
  ["web_fetch", words("Reading", "Read", (count) => `Read ${count} pages of the web`)],
  ["web_search", words("Searching the web for", "Searched the web for", times("Searched the web"))],
  ["find_tools", words("Looking for tools for", "Looked for tools for", times("Looked for tools"))],
  ["search_memories", words("Searching memories for", "Searched memories for", times("Searched memories"))],
]);

const wordsOf = (tool: string): Words => WORDS.get(tool) ?? words(`Calling ${tool}`, `Called ${tool}`);

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

export const manyCalls = (tool: string, count: number): string => wordsOf(tool).many(count);

/** True if the result of a successful call only repeats the call. */
export const isPlainResult = (tool: string): boolean => wordsOf(tool).isPlain;
