import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { IS_LONG } from "./effort.ts";
import type { CallOutcome, FormAnswer, TestClient } from "./clients.ts";
import { play, type Line, type Think } from "./harness-brain.ts";

/** Text that has hurt programs, each as the unit that is repeated. */
const UNITS = {
  "no blanks": "x",
  blanks: " ",
  newlines: "\n",
  asterisks: "***",
  parentheses: "(",
  "halves of surrogate pairs": "\ud800",
  "combining characters": "e\u0301",
  "zero-width characters": "\u200b\u200d",
  nesting: '{"a":[',
  "200,000 keys": '"k":1,',
  "a key that is redacted": "sk-ant-",
} as const;

const CONTENTS = Object.entries(UNITS).map(([name, unit]) => ({
  name,
  /** About `size` bytes as JSON. */
  text: (size: number): string =>
    unit.repeat(Math.ceil(size / (Buffer.byteLength(JSON.stringify(unit)) - 2))),
}));

/** One way for text from outside to get in. */
export interface Entry {
  name: string;
  /** Most bytes that can get in here. */
  most?: number;
  /** The text does not matter, only how long it is. */
  anyText?: true;
  /** What the model says about the task `Go`. */
  lines?: (text: string) => Line[];
  /** The file of the workspace that has the text, or the name of an empty one. */
  file?: (text: string) => { name: string; content: string };
  /** The text of the file of a skill. */
  skill?: (text: string) => string;
  /** What the other MCP server does with the text. */
  server?:
    | "result"
    | "error"
    | "stderr"
    | "description"
    | "name"
    | "schema"
    | "output"
    | "output without an end"
    | "result of keys"
    | "schema of keys";
  /** What the person answers to the first form; they approve all others. */
  answer?: (text: string) => Record<string, unknown>;
  /** What the client does. Default: it runs the task `Go`. */
  act?: (client: TestClient, text: string) => Promise<CallOutcome>;
}

const done: Line = { text: "done" };
const calls = (name: string, args: Record<string, unknown> | string): Line[] => [
  { toolCalls: [{ name, args }] },
  done,
];
const call =
  (name: string, argument: string, others: Record<string, unknown> = {}) =>
  (text: string): Line[] =>
    calls(name, { ...others, [argument]: text });
const client = (name: string, tool: string, args: (text: string) => Record<string, unknown>): Entry => ({
  name: `client: ${name}`,
  most: BODY,
  act: (to, text) => to.call(tool, args(text)),
});
const file = (content: string) => ({ name: "hostile.txt", content });
const PATH = { file_path: "/workspace/hostile.txt" };
const many = (count: number): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`key${n}`, n]));

/**
 * Texts of up to `size` bytes for an entry, one of so many that there are: six in the long run of tests, otherwise
 * two, others for the next entry.
 */
export function textsFor(
  entry: Entry,
  size: number,
  every: number = IS_LONG ? 2 : 6,
): { name: string; text: string }[] {
  const first = ENTRIES.indexOf(entry);
  const isChosen = (index: number): boolean => (index + first) % every === 0;
  const contents = entry.anyText ? CONTENTS.slice(0, 1) : CONTENTS.filter((_, index) => isChosen(index));
  return contents.map(({ name, text }) => ({ name, text: text(Math.min(size, entry.most ?? size)) }));
}

/** A message of a client is smaller than 768 KiB. */
const BODY = 750_000;
/** Entries of many keys. */
const KEYS = { most: 200_000, anyText: true } as const;

export const ENTRIES: readonly Entry[] = [
  { name: "provider: error", lines: (text) => [() => ({ status: 400, message: text })] },
  {
    name: "provider: error in a stream",
    lines: (text) => [
      () => ({ fault: "report", error: { status: 400, type: "invalid_request_error", message: text } }),
    ],
  },
  { name: "provider: answer", lines: (text) => [{ text }] },
  { name: "provider: name of a tool", lines: (text) => calls(text, {}) },
  { name: "provider: arguments that are not JSON", lines: (text) => calls("ls", text) },
  {
    ...KEYS,
    name: "provider: arguments of many keys",
    lines: (text) => calls("ls", many(text.length)),
  },
  { name: "ls: path", lines: call("ls", "path") },
  { name: "read_file: path", lines: call("read_file", "file_path") },
  { name: "write_file: path", lines: call("write_file", "file_path", { content: "x" }) },
  { name: "write_file: content", lines: call("write_file", "content", { file_path: "/workspace/new.txt" }) },
  {
    name: "edit_file: text",
    file: () => file("a\n"),
    lines: call("edit_file", "new_string", { ...PATH, old_string: "a" }),
  },
  { name: "glob: pattern", lines: call("glob", "pattern") },
  { name: "grep: pattern", file: () => file("a\n"), lines: call("grep", "pattern") },
  { name: "execute: command", lines: call("execute", "command") },
  { name: "task: assignment", lines: call("task", "description", { subagent_type: "general-purpose" }) },
  {
    name: "write_todos: item",
    lines: (text) => calls("write_todos", { todos: [{ content: text, status: "pending" }] }),
  },
  { name: "file: read", file, lines: () => calls("read_file", PATH) },
  { name: "file: grep", file, lines: () => calls("grep", { pattern: "[^y]", path: "/workspace" }) },
  { name: "file: overwritten", file, lines: () => calls("write_file", { ...PATH, content: "new\n" }) },
  {
    name: "file: edited",
    file: (text) => file(`a${text}`),
    lines: () => calls("edit_file", { ...PATH, old_string: "a", new_string: "b" }),
  },
  {
    name: "file: ignored names",
    file: (text) => ({ name: ".gitignore", content: text }),
    lines: () => calls("glob", { pattern: "**/*" }),
  },
  { name: "file: instructions", file: (text) => ({ name: "AGENTS.md", content: text }), lines: () => [done] },
  {
    name: "file: subagent",
    file: (text) => ({ name: ".claude/agents/hostile.md", content: `---\n${text}` }),
    lines: () => [done],
  },
  { name: "file: skill", skill: (text) => `---\n${text}`, lines: () => [done] },
  {
    name: "file: grep by an expression",
    file: (text) => file(`${text}\nneedle\n`),
    lines: () => calls("grep", { pattern: "need+le$", regex: true, path: "/workspace" }),
  },
  {
    name: "file: name",
    most: 60,
    file: (text) => ({ name: text.toWellFormed(), content: "" }),
    lines: () => calls("ls", { path: "/workspace" }),
  },
  { name: "command: output", file, lines: () => calls("execute", { command: "cat hostile.txt" }) },
  { name: "command: error output", file, lines: () => calls("execute", { command: "cat hostile.txt >&2" }) },
  ...(["result", "error", "stderr", "schema", "output", "output without an end"] as const).map(
    (server): Entry => ({ name: `tool server: ${server}`, server, lines: () => calls("s__hostile", {}) }),
  ),
  ...(["result of keys", "schema of keys"] as const).map((server): Entry => ({
    ...KEYS,
    name: `tool server: ${server}`,
    server,
    lines: () => calls("s__hostile", {}),
  })),
  { name: "tool server: description", server: "description", lines: () => [done] },
  { name: "tool server: name of a tool", server: "name", lines: () => [done] },
  { ...client("task", "run_deep_agent", (text) => ({ task: `Go${text}` })), lines: () => [done] },
  client("id of a run", "check_deep_agent", (text) => ({ run_id: text })),
  client("path of a file", "read_agent_file", (text) => ({ path: `/workspace/${text}` })),
  {
    name: "client: answer to a form",
    most: BODY,
    answer: (text) => ({ decision: "reject", message: text }),
    lines: () => calls("write_file", { ...PATH, content: "new" }),
  },
  {
    name: "client: arguments in a form",
    most: BODY,
    answer: (text) => ({ decision: "edit", edited_args: text }),
    lines: () => calls("write_file", { ...PATH, content: "new" }),
  },
  client("query", "search_memories", (text) => ({ query: text })),
  client("unknown argument", "run_deep_agent", (text) => ({ task: "Go", [text]: 1 })),
  {
    ...client("many keys", "check_deep_agent", (text) => ({ run_id: "run_none", ...many(text.length) })),
    ...KEYS,
  },
  {
    name: "client: reads the file",
    file,
    act: (to) => to.call("read_agent_file", { path: "/workspace/hostile.txt" }),
  },
  {
    name: "client: resource",
    most: BODY / 3,
    act: (to, text) => read(to, `deepagent://files/workspace/${encodeURIComponent(text.toWellFormed())}`),
  },
  {
    name: "client: reads the resource",
    file,
    act: (to) => read(to, "deepagent://files/workspace/hostile.txt"),
  },
];

async function read(to: TestClient, uri: string): Promise<CallOutcome> {
  const { contents } = await to.readResource(uri);
  return {
    text: JSON.stringify(contents).slice(0, 100),
    structured: {},
    isError: false,
    raw: contents.length,
  };
}

/** A model that speaks the lines of the case at hand. */
export function hostileModel(): { think: Think; say(lines: readonly Line[]): void } {
  let think = play({});
  return {
    think: (thought) => think(thought),
    say: (lines) => {
      think = (thought) => (thought.step < lines.length ? play({ "": lines })(thought) : { text: "end" });
    },
  };
}

/** A person who answers the first form of each case as its entry says. */
export function hostilePerson(): { answer: () => FormAnswer; expect(entry: Entry, text: string): void } {
  let first: Record<string, unknown> | undefined;
  return {
    answer: () => {
      const content = first ?? { decision: "approve" };
      first = undefined;
      return { action: "accept", content } as FormAnswer; // fields that the form does not have are the point
    },
    expect: ({ answer }, text) => {
      first = answer?.(text);
    },
  };
}

/** Puts a case into the folders of the product and lets the client act. What the client is refused is an outcome. */
export async function enter(
  entry: Entry,
  text: string,
  { workspace, folder, to, say }: Stage,
): Promise<CallOutcome> {
  writeFileSync(join(folder, "text"), JSON.stringify({ place: entry.server ?? "", text }));
  writeFileSync(join(folder, SKILL), entry.skill?.(text) ?? "");
  const { name, content } = entry.file?.(text) ?? file("");
  try {
    mkdirSync(dirname(join(workspace, name)), { recursive: true });
    writeFileSync(join(workspace, name), content);
  } catch {
    // No file can have that name.
  }
  say(entry.lines?.(text) ?? [done]);
  try {
    return await (entry.act?.(to, text) ?? to.call("run_deep_agent", { task: "Go" }));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { text: message, structured: {}, isError: true, raw: message };
  }
}

export interface Stage {
  workspace: string;
  /** Where the other MCP server finds what to do. */
  folder: string;
  to: TestClient;
  say(lines: readonly Line[]): void;
}

/** Settings with an MCP server, called `s`, that does what the case at hand says; `folder` is theirs. */
export function hostileSettings(folder: string): Record<string, string> {
  const [script, config] = [join(folder, "server.mjs"), join(folder, "config.json")];
  mkdirSync(dirname(join(folder, SKILL)), { recursive: true });
  writeFileSync(join(folder, "text"), JSON.stringify({ place: "", text: "" }));
  writeFileSync(script, SERVER);
  const server = { command: process.execPath, args: [script, join(folder, "text")], approve: "none" };
  writeFileSync(config, JSON.stringify({ mcpServers: { s: server } }));
  return {
    DEEPAGENT_SKILLS: join(folder, "skills"),
    DEEPAGENT_RESPECT_GITIGNORE: "true",
    DEEPAGENT_CONFIG: config,
    DEEPAGENT_LIMITS_MODEL_PATIENCE: "0",
  };
}

/** Where the skill of the case at hand is, in the folder of the settings. */
const SKILL = "skills/hostile/SKILL.md";

const SERVER = `
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const keys = (text) => Object.fromEntries(Array.from({ length: text.length }, (_, n) => ["key" + n, {}]));
function answer({ method, params }, { place, text }) {
  if (method === "initialize") {
    const { protocolVersion } = params;
    return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } };
  }
  if (method === "tools/list") {
    const description = place === "description" ? text : "d";
    const properties = place === "schema" ? { a: { type: "string", description: text, pattern: text } } : place === "schema of keys" ? keys(text) : {};
    const tool = { name: "hostile", description, inputSchema: { type: "object", properties }, annotations: { readOnlyHint: true } };
    return { tools: place === "name" ? [tool, { ...tool, name: text }] : [tool] };
  }
  if (place === "stderr") process.stderr.write(text);
  if (place === "output") process.stdout.write(text + "\\n");
  if (place === "result of keys") return { content: [], structuredContent: keys(text) };
  return { content: [{ type: "text", text: place === "result" ? text : "said" }] };
}
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.id === undefined) continue;
  const now = JSON.parse(readFileSync(process.argv[2], "utf8"));
  const isCall = message.method === "tools/call";
  if (isCall && now.place === "error") send({ id: message.id, error: { code: -32000, message: now.text } });
  else if (isCall && now.place === "output without an end") process.stdout.write(now.text, () => process.exit());
  else send({ id: message.id, result: answer(message, now) });
}
`;
