import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { countWords } from "./count-words.js";

const data = mkdtempSync(join(tmpdir(), "agent-test-"));
after(() => rmSync(data, { recursive: true, force: true, maxRetries: 10 }));

/** Starts a program of this folder as a client does, and ends it after `use`. */
async function withServer(file, use) {
  const client = new Client({ name: "test", version: "1.0.0" });
  const env = {
    ...process.env,
    DEEPAGENT_MODEL: "offline",
    DEEPAGENT_DATA_DIR: data,
    DEEPAGENT_PAGE: "false",
  };
  const args = [join(import.meta.dirname, file)];
  await client.connect(new StdioClientTransport({ command: process.execPath, args, env, stderr: "ignore" }));
  try {
    await use(client);
  } finally {
    await client.close();
  }
}

const textOf = ({ content }) => content.map(({ text = "" }) => text).join("\n");

test("words are counted", () => {
  assert.equal(countWords("One, two – and three."), 4);
});

test("the tool is offered, and may be used without asking", () =>
  withServer("tools.js", async (client) => {
    const [tool] = (await client.listTools()).tools;
    assert.equal(tool.name, "count_words");
    assert.equal(tool.annotations.readOnlyHint, true);
    const result = await client.callTool({ name: "count_words", arguments: { text: "one two" } });
    assert.equal(textOf(result), "2 words");
  }));

test("the agent has its skill and its memory, and answers", () =>
  withServer("agent.js", async (client) => {
    const { resources } = await client.listResources();
    assert(resources.some(({ uri }) => uri.includes("plain-report")));
    const memory = { name: "read_agent_file", arguments: { path: "/workspace/AGENTS.md" } };
    assert.match(textOf(await client.callTool(memory)), /Reports go into the folder/);
    const task = "Which TODO is in the notes? Do not change anything.";
    const result = await client.callTool({ name: "run_deep_agent", arguments: { task } });
    assert.match(textOf(result), /completed/);
    assert.match(textOf(result), /notes\.md/);
  }));
