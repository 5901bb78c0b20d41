// Tokens that the hints of an agent cost, each in the case in which it is given, against the same run without it.
// Counted with OpenAI's o200k_base encoding over what Anthropic's client sends. Usage: npm run build && node bench/hints/bench.mjs
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ChatAnthropic } from "@langchain/anthropic";
import { Tiktoken } from "js-tiktoken/lite";
import o200k from "js-tiktoken/ranks/o200k_base";
import { CompositeBackend, FilesystemBackend, StateBackend, createDeepAgent } from "../../dist/index.js";

const encoding = new Tiktoken(o200k);
const tokens = (text) => encoding.encode(text, [], []).length;

const scratch = mkdtempSync(join(tmpdir(), "hints-"));
process.on("exit", () => rmSync(scratch, { recursive: true }));

function folderOf(name, files) {
  const folder = join(scratch, name);
  mkdirSync(folder);
  for (const file of files) writeFileSync(join(folder, file), "");
  return folder;
}

const write = ["write_file", { file_path: "/workspace/notes.md", content: "One line.\n" }];
const missing = (name) => ["read_file", { file_path: `/workspace/${name}.md` }];
const todos = ["write_todos", { todos: [{ content: "Write the notes", status: "in_progress" }] }];
const ANSWER = "The notes are written. ".repeat(40);
const empty = folderOf("empty", []);

/** Hint, case, its folder, and the calls of the model before it answers. */
/** @type {Array<[hint: string, name: string, folder: string, calls: Array<[name: string, input: object]>]>} */
const CASES = [
  ["listing", "an empty folder", empty, []],
  ["listing", "this repository", process.cwd(), []],
  [
    "listing",
    "500 long names",
    folderOf(
      "large",
      Array.from({ length: 500 }, (_, at) => `${at}-${"name".repeat(12)}`),
    ),
    [],
  ],
  ["ending", "a changed file that nothing checked", empty, [write]],
  ["ending", "an open todo", empty, [todos]],
  ["ending", "nothing open", empty, [missing("a")]],
  ["failures", "four files that are missing, one after the other", empty, ["a", "b", "c", "d"].map(missing)],
];

/** The requests of one run. */
async function requestsOf(folder, calls, hints) {
  const requests = [];
  if (folder === empty) rmSync(join(folder, "notes.md"), { force: true });
  const fetch = async (_url, { body }) => {
    const { tools, system, messages } = JSON.parse(body, (key, value) =>
      key === "cache_control" ? undefined : value,
    );
    const [name, input] = calls[requests.length] ?? [];
    requests.push([tools, system, ...messages].map((part) => JSON.stringify(part)).join("\n"));
    const content = name
      ? [{ type: "tool_use", id: `call_${requests.length}`, name, input }]
      : [{ type: "text", text: ANSWER }];
    const usage = { input_tokens: 10, output_tokens: 5 };
    const facts = {
      id: `m_${requests.length}`,
      type: "message",
      role: "assistant",
      model: "claude-sonnet-4-5",
    };
    const reply = { ...facts, stop_reason: name ? "tool_use" : "end_turn", usage, content };
    return new Response(JSON.stringify(reply), { headers: { "content-type": "application/json" } });
  };
  const disk = new FilesystemBackend({ rootDir: folder, virtualMode: true });
  const agent = createDeepAgent({
    model: new ChatAnthropic({ model: "claude-sonnet-4-5", apiKey: "none", clientOptions: { fetch } }),
    backend: new CompositeBackend(new StateBackend(), { "/workspace/": disk }),
    hints,
  });
  await agent.invoke({ messages: [{ role: "user", content: "Write the notes." }] });
  return requests;
}

/** Tokens of all requests, and those that do not repeat the beginning of the request before. */
function costOf(requests) {
  let fresh = 0;
  for (const [index, request] of requests.entries()) {
    const before = requests[index - 1] ?? "";
    let at = 0;
    while (at < before.length && before[at] === request[at]) at += 1;
    fresh += tokens(request.slice(at));
  }
  return { calls: requests.length, sent: requests.reduce((sum, one) => sum + tokens(one), 0), fresh };
}

const OFF = { workspace: "/workspace", listing: false, ending: false, failures: false };
console.log("| hint | case | more requests | more tokens sent | of them not in the request before |");
console.log("|---|---|---|---|---|");
for (const [hint, name, folder, calls] of CASES) {
  const [off, on] = [
    costOf(await requestsOf(folder, calls, OFF)),
    costOf(await requestsOf(folder, calls, { ...OFF, [hint]: true })),
  ];
  console.log(
    `| \`${hint}\` | ${name} | ${on.calls - off.calls} | ${on.sent - off.sent} | ${on.fresh - off.fresh} |`,
  );
}
