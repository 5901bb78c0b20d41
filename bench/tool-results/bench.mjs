// Tokens of what tools answer on one fixed trajectory over the sources of zod, which is installed with this
// project. Counted with OpenAI's o200k_base encoding; other models' counts differ, the shares hardly do.
// Usage: npm run build && node bench/tool-results/bench.mjs
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ChatAnthropic } from "@langchain/anthropic";
import * as theirs from "deepagents";
import { Tiktoken } from "js-tiktoken/lite";
import o200k from "js-tiktoken/ranks/o200k_base";
import * as ours from "../../dist/index.js";

const encoding = new Tiktoken(o200k);
const tokens = (text) => encoding.encode(text, [], []).length;

const workspace = mkdtempSync(join(tmpdir(), "tool-results-"));
cpSync("node_modules/zod/src/v4/core", workspace, { recursive: true, filter: (path) => !/tests/.test(path) });
process.on("exit", () => rmSync(workspace, { recursive: true }));

const READ = ["api.ts", "checks.ts", "errors.ts", "parse.ts", "util.ts", "visit.ts"];
const STEPS = ["Find where issues are made", "Read how they are formatted", "Change the text", "Check it"];
const todos = (done) => ({
  todos: STEPS.map((content, index) => ({
    content,
    status: index < done ? "completed" : index === done ? "in_progress" : "pending",
  })),
});
const read = (name, more = {}) => ["read_file", { file_path: `/workspace/${name}`, limit: 2000, ...more }];

/** The calls of each reply. */
const TRAJECTORY = [
  [["write_todos", todos(0)]],
  [
    ["ls", { path: "/" }],
    ["ls", { path: "/workspace" }],
    ["glob", { pattern: "**/*.ts", path: "/workspace" }],
  ],
  [["grep", { pattern: "ZodIssue", path: "/workspace" }]],
  [["write_todos", todos(1)]],
  READ.slice(0, 3).map((name) => read(name)),
  READ.slice(3).map((name) => read(name)),
  [read("schemas.ts", { offset: 1200, limit: 400 })],
  [["write_todos", todos(2)]],
  [
    [
      "edit_file",
      { file_path: "/workspace/visit.ts", old_string: "import", new_string: "// changed\nimport" },
    ],
  ],
  [["write_file", { file_path: "/workspace/notes.md", content: "# Notes\n\nOne line.\n" }]],
  [read("notes.md")],
  [["write_file", { file_path: "/workspace/notes.md", content: "# Notes\n\nTwo lines.\nAnd more.\n" }]],
  [["write_todos", todos(3)]],
  [["ls", { path: "/workspace" }]],
  [["write_todos", todos(4)]],
];

/** A model that makes these calls, and keeps the last request. */
function scripted() {
  const seen = {};
  const fetch = async (_url, { body }) => {
    seen.last = JSON.parse(body);
    const turn = seen.last.messages.filter(({ role }) => role === "assistant").length;
    seen.first ??= seen.last;
    const calls = TRAJECTORY[turn];
    const answer = {
      id: `msg_${turn}`,
      type: "message",
      role: "assistant",
      model: "claude-sonnet-4-5",
      stop_reason: calls ? "tool_use" : "end_turn",
      usage: { input_tokens: 10, output_tokens: 5 },
      content: calls
        ? calls.map(([name, input], index) => ({
            type: "tool_use",
            id: `call_${turn}_${index}`,
            name,
            input,
          }))
        : [{ type: "text", text: "done" }],
    };
    return new Response(JSON.stringify(answer), { headers: { "content-type": "application/json" } });
  };
  return {
    seen,
    model: new ChatAnthropic({ model: "claude-sonnet-4-5", apiKey: "none", clientOptions: { fetch } }),
  };
}

const textOf = (content) =>
  typeof content === "string" ? content : content.map(({ text = "" }) => text).join("\n");

/** The text of the file that a call asked for. */
function pageOf({ file_path: path, offset = 0, limit }) {
  const text = readFileSync(join(workspace, path.replace("/workspace/", "")), "utf8");
  return text
    .split("\n")
    .slice(offset, offset + limit)
    .join("\n");
}

async function measure({ createDeepAgent, CompositeBackend, StateBackend, FilesystemBackend }) {
  const { seen, model } = scripted();
  const disk = new FilesystemBackend({ rootDir: workspace, virtualMode: true });
  const mounts = { "/workspace/": disk };
  const agent = createDeepAgent({ model, backend: new CompositeBackend(new StateBackend(), mounts) });
  await agent.invoke(
    { messages: [{ role: "user", content: "Improve the texts." }] },
    { recursionLimit: 1000 },
  );
  const { messages } = seen.last;
  const calls = new Map(
    messages
      .flatMap(({ content }) => (Array.isArray(content) ? content : []))
      .flatMap((block) => (block.type === "tool_use" ? [[block.id, block]] : [])),
  );
  const byTool = {};
  let [shown, own] = [0, 0];
  for (const block of messages.flatMap(({ content }) => (Array.isArray(content) ? content : []))) {
    if (block.type !== "tool_result") continue;
    const { name, input } = calls.get(block.tool_use_id);
    const [text, row] = [textOf(block.content), (byTool[name] ??= { calls: 0, tokens: 0 })];
    row.calls += 1;
    row.tokens += tokens(text);
    if (name !== "read_file" || input.file_path.endsWith("notes.md")) continue;
    shown += tokens(text);
    own += tokens(pageOf(input));
  }
  const prompt = tokens(JSON.stringify(seen.first.system ?? "")) + tokens(JSON.stringify(seen.first.tools));
  rmSync(join(workspace, "notes.md"), { force: true });
  cpSync("node_modules/zod/src/v4/core/visit.ts", join(workspace, "visit.ts"));
  return { byTool, share: 1 - own / shown, prompt };
}

const results = [await measure(ours), await measure(theirs)];
const names = [...new Set(results.flatMap(({ byTool }) => Object.keys(byTool)))];
console.log("| results of | calls | deepagent-mcp (tokens) | deepagents 1.14.1 (tokens) |");
console.log("|---|---|---|---|");
for (const name of names) {
  const rows = results.map(({ byTool }) => byTool[name] ?? { calls: 0, tokens: 0 });
  console.log(`| \`${name}\` | ${rows[0].calls} | ${rows.map((row) => row.tokens).join(" | ")} |`);
}
const sum = ({ byTool }) => Object.values(byTool).reduce((all, row) => all + row.tokens, 0);
const percent = ({ share }) => `${(100 * share).toFixed(1)} %`;
console.log(`| all tools | | ${results.map(sum).join(" | ")} |`);
console.log(`| share of \`read_file\` that is not the file's text | | ${results.map(percent).join(" | ")} |`);
console.log(`| system prompt and tool schemas | | ${results.map(({ prompt }) => prompt).join(" | ")} |`);
