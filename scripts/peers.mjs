/**
 * Installs the packed library beside the oldest and the newest LangChain that its `peerDependencies` allow, and uses
 * it there: an agent with a tool, a subagent, an approval, files and a checkpointer; and looks for a second copy.
 * Usage: npm run build && node scripts/peers.mjs [oldest|newest]
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const { peerDependencies, optionalDependencies } = JSON.parse(
  readFileSync(join(ROOT, "package.json"), "utf8"),
);

/** What a user of the library has. */
const SHARED = [
  "langchain",
  "zod",
  ...["core", "langgraph", "langgraph-checkpoint"].map((name) => `@langchain/${name}`),
];
/** The first version of a range. */
const first = (range) => range.replace("^", "");
const KINDS = {
  oldest: {
    versionOf: (name) => first(peerDependencies[name]),
    // A Node that brings SQLite does not use this package.
    others: process.versions.node.startsWith("20.")
      ? [`better-sqlite3@${first(optionalDependencies["better-sqlite3"])}`]
      : [],
  },
  /** A user gets these who names no version. */
  newest: { versionOf: () => "latest", others: [] },
};

const USE = `
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { tool } from "@langchain/core/tools";
import { Command, MemorySaver } from "@langchain/langgraph";
import { createDeepAgent, createCheckpointer, openDatabase, StateBackend } from "deepagent-mcp";
import { z } from "zod";

class Scripted extends FakeListChatModel {
  constructor(replies) { super({ responses: ["-"] }); this.replies = replies; this.asked = 0; }
  bindTools() { return this; }
  async _generate() {
    const message = this.replies[this.asked++] ?? new AIMessage("done");
    return { generations: [{ message, text: message.text }] };
  }
  async *_streamResponseChunks() { throw new Error("it does not stream"); }
}
const calls = (...list) => new AIMessage({ content: "", tool_calls: list.map(([name, args], index) => ({ name, args, id: name + index + Math.random() })) });
const weather = tool(async ({ city }) => "sunny in " + city, { name: "weather", description: "Tells the weather.", schema: z.object({ city: z.string() }) });

const saver = process.argv[2] === "sqlite" ? createCheckpointer(openDatabase("agent.db")) : new MemorySaver();
const agent = createDeepAgent({
  model: new Scripted([
    calls(["weather", { city: "Oslo" }], ["task", { description: "Look at the files.", subagent_type: "general-purpose" }]),
    calls(["ls", { path: "/" }]),
    new AIMessage("there is nothing"),
    calls(["write_file", { file_path: "/report.md", content: "sunny" }]),
    new AIMessage("written"),
  ]),
  tools: [weather],
  interruptOn: { write_file: true },
  checkpointer: saver,
  backend: StateBackend,
});
const config = { configurable: { thread_id: "1" } };
const first = await agent.invoke({ messages: [new HumanMessage("Go")] }, config);
const [interrupt] = first.__interrupt__ ?? [];
if (!interrupt) throw new Error("nobody was asked");
const decisions = { decisions: [{ type: "approve" }] };
const last = await agent.invoke(new Command({ resume: { [interrupt.id]: decisions } }), config);
const texts = last.messages.map((message) => message.text);
if (!texts.some((text) => text.includes("sunny in Oslo"))) throw new Error("the tool was not used");
if (!texts.includes("there is nothing")) throw new Error("the subagent did not answer");
if (!last.messages.every((message) => message instanceof AIMessage || message.getType() !== "ai")) throw new Error("a second LangChain made a message");
if (last.files?.["/report.md"] === undefined) throw new Error("the file was not written");
console.log("ok");
`;

const folder = mkdtempSync(join(tmpdir(), "deepagent-peers-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
const run = (program, args, cwd) => execFileSync(program, args, { cwd, encoding: "utf8", stdio: "pipe" });

run("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], ROOT);
const tarball = join(
  folder,
  readdirSync(folder).find((name) => name.endsWith(".tgz")),
);
const wanted = process.argv[2];
for (const [kind, { versionOf, others }] of Object.entries(KINDS)) {
  if (wanted !== undefined && wanted !== kind) continue;
  const place = join(folder, kind);
  mkdirSync(place);
  writeFileSync(join(place, "package.json"), JSON.stringify({ type: "module" }));
  const packages = SHARED.map((name) => `${name}@${versionOf(name)}`);
  run("npm", ["install", "--no-audit", "--no-fund", tarball, ...packages, ...others], place);
  writeFileSync(join(place, "use.mjs"), USE);
  for (const saver of ["memory", "sqlite"]) run(process.execPath, ["use.mjs", saver], place);
  const copies = run("npm", ["ls", "@langchain/core", "--all", "--parseable"], place).trim().split("\n");
  if (copies.length > 1)
    throw new Error(`There are ${copies.length} copies of @langchain/core: ${copies.join(", ")}`);
  const versions = SHARED.map((name) => `${name} ${versionIn(place, name)}`);
  console.log(`${kind}: ${versions.join(", ")}, Node ${process.version}: ok`);
}

function versionIn(place, name) {
  return JSON.parse(readFileSync(join(place, "node_modules", name, "package.json"), "utf8")).version;
}
