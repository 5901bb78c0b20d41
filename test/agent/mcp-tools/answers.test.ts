import { join } from "node:path";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { readResult, readTool } from "../../../src/agent/mcp-tools/answers.ts";
import { openMcpTools } from "../../../src/agent/mcp-tools/open-mcp-tools.ts";
import { schemaChecks } from "../../../src/agent/mcp-tools/schema-checks.ts";
import { modelResult } from "../../../src/agent/mcp-tools/tool.ts";
import { reportMissingTools } from "../../../src/agent/mcp-tools/server-layers.ts";
import { createLogger } from "../../../src/core/logger.ts";
import { collect, toolMessages } from "../../support/run-agent.ts";
import { callingOnce, scriptedModel } from "../../support/scripted-model.ts";
import { filesIn } from "../../support/files-in.ts";

const plain = { type: "object" };
const text = (words: string) => ({ type: "text", text: words });

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const resource = (content: object) => ({
  content: [{ type: "resource", resource: { uri: "x://y", ...content } }],
});

describe("an entry of tools/list", () => {
  it.each<[string, object, object]>([
    ["description null, title a number", { description: null, title: 5 }, {}],
    [
      "anthropics/claude-code#10030: outputSchema without type",
      { outputSchema: { anyOf: [] } },
      { outputSchema: { anyOf: [] } },
    ],
    ["outputSchema null", { outputSchema: null }, {}],
    [
      "a hint null",
      { annotations: { readOnlyHint: null, destructiveHint: true } },
      { annotations: { destructiveHint: true } },
    ],
    ["a hint as text", { annotations: { readOnlyHint: "true" } }, {}],
    ["annotations as a list", { annotations: [] }, {}],
    ["inputSchema missing", { inputSchema: undefined }, {}],
    ["inputSchema null", { inputSchema: null }, {}],
    ["inputSchema true", { inputSchema: true }, {}],
    [
      "inputSchema without type",
      { inputSchema: { properties: {} } },
      { inputSchema: { properties: {}, type: "object" } },
    ],
    ["a list of types", { inputSchema: { type: ["object", "null"] } }, {}],
    ["a type in capitals", { inputSchema: { type: "OBJECT" } }, {}],
    ["a title only", { title: "T" }, { title: "T", description: "T" }],
    ["_meta and execution", { _meta: null, execution: null, icons: null }, {}],
  ])("%s: is kept", (_source, given, kept) => {
    const tool = readTool({ name: "t", inputSchema: plain, ...given });
    expect(tool).toEqual({ name: "t", inputSchema: plain, annotations: {}, ...kept });
  });

  it.each<[string, unknown, string, string]>([
    ["null", null, "(no name)", "it has no name"],
    ["a number as name", { name: 5 }, "(no name)", "it has no name"],
    [
      "sandialabs/atlas-ui-3#727",
      { name: "lookup", inputSchema: { type: "string" } },
      "lookup",
      "its arguments are not an object",
    ],
    ["a text as schema", { name: "t", inputSchema: "{}" }, "t", "its inputSchema is not a JSON Schema"],
  ])("%s: is left out, with its reason", (_source, given, tool, reason) => {
    expect(readTool(given)).toEqual({ tool, reason });
  });
});

describe("a result of tools/call", () => {
  const kept = { blocks: [text("fine")], structuredContent: undefined, isError: false, isOdd: false };

  it.each<[string, object, object]>([
    ["Azure/data-api-builder#3599", { content: [{ ...text("fine"), annotations: null, _meta: null }] }, {}],
    ["anthropics/claude-code#14465", { content: [text("fine")], structuredContent: null, isError: null }, {}],
    ["isError as text", { content: [text("fine")], isError: "true" }, { isError: true }],
    ["content null", { content: null, structuredContent: [1] }, { blocks: [], structuredContent: [1] }],
    ["content missing", {}, { blocks: [] }],
    ["content as text", { content: "fine" }, { isOdd: true }],
    ["content as one block", { content: text("fine") }, { isOdd: true }],
    ["texts as blocks", { content: ["fine", null] }, { isOdd: true }],
    ["a block without type", { content: [{ text: "fine" }] }, { isOdd: true }],
    [
      "waldzellai/waldzell-mcp#44",
      { content: [{ type: "application/json", a: 1 }] },
      { blocks: [text('{"type":"application/json","a":1}')], isOdd: true },
    ],
    [
      "a number as text",
      { content: [{ type: "text", text: 5 }] },
      { blocks: [text('{"type":"text","text":5}')], isOdd: true },
    ],
    [
      "anthropics/claude-ai-mcp#647",
      {
        content: [
          { type: "resource_link", uri: "x://y", name: "n", title: null, size: null, annotations: null },
        ],
      },
      { blocks: [text("[Resource x://y: n]")] },
    ],
    [
      "kirodotdev/Kiro#8960",
      {
        content: [
          { type: "resource_link", uri: "x://y", name: "n", description: "A clip.", mimeType: "video/mp4" },
        ],
      },
      { blocks: [text("[Resource x://y: n. A clip. (video/mp4)]")] },
    ],
    [
      "open-webui/open-webui#26351",
      resource({ mimeType: "image/png", blob: PIXEL }),
      { blocks: [text("[Resource x://y]"), { type: "image", mimeType: "image/png", data: PIXEL }] },
    ],
    [
      "RooCodeInc/Roo-Code#1962, with a wrong type",
      resource({ mimeType: "image/jpeg", blob: `data:image/jpeg;base64,${PIXEL}` }),
      {
        blocks: [
          text("[Resource x://y]"),
          { type: "image", mimeType: "image/png", data: `data:image/jpeg;base64,${PIXEL}` },
        ],
      },
    ],
    [
      "danny-avila/LibreChat#15601",
      resource({ mimeType: "text/plain", blob: Buffer.from("class Ä {}").toString("base64") }),
      { blocks: [text("[Resource x://y]\nclass Ä {}")] },
    ],
    [
      "bytes that are neither",
      resource({ mimeType: "model/stl", blob: Buffer.from("a\0b").toString("base64") }),
      { blocks: [text("[Resource x://y: model/stl, not shown]")] },
    ],
    ["a resource without content", resource({}), { blocks: [text("[Resource x://y: binary, not shown]")] }],
    [
      "toolResult, of the first revision",
      { toolResult: "fine" },
      { blocks: [text('{"toolResult":"fine"}')], isOdd: true },
    ],
    ["a bare object", { order: 4711, _meta: null }, { blocks: [text('{"order":4711}')], isOdd: true }],
    ["structuredContent as text", { structuredContent: "fine" }, { blocks: [], structuredContent: "fine" }],
  ])("%s: is kept", (_source, given, result) => {
    expect(readResult({ ...given })).toEqual({ ...kept, ...result });
  });
});

test.each<[source: string, result: object, content: unknown]>([
  ["nicobailon/pi-mcp-adapter#146", { content: [], structuredContent: { n: 1 } }, '{"n":1}'],
  ["jonigl/mcp-client-for-ollama#309", { content: [text(" ")], structuredContent: { n: 1 } }, '{"n":1}'],
  [
    "MeshInspector/MeshLib#6151",
    {
      content: [{ type: "image", mimeType: "image/png", data: PIXEL }],
      structuredContent: { width: 1 },
    },
    [text('{"width":1}'), { type: "image", mimeType: "image/png", data: PIXEL }],
  ],
  ["text as well", { content: [text("one")], structuredContent: { n: 1 } }, "one"],
  [
    "an error with fields",
    { isError: true, content: [text("no seat")], structuredContent: { code: 7 } },
    'Error: no seat\n\n{"code":7}',
  ],
  [
    "an error that repeats its fields",
    { isError: true, content: [text('{ "code": 7 }')], structuredContent: { code: 7 } },
    'Error: { "code": 7 }',
  ],
])("%s: structured content is shown unless there is text", (_source, result, content) => {
  expect(modelResult(readResult({ ...result })).content).toEqual(content);
});

const SOURCE = `
const { MODE, KEY } = process.env;
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const tool = (name, more) => ({ name, inputSchema: { type: "object" }, ...more });
const promised = { outputSchema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] } };
const PAGES = {
  first: { tools: [tool("a", { description: "Uses " + KEY }), null, tool("b", { inputSchema: { type: "string" } })], nextCursor: "second" },
  second: { tools: [tool("promised", promised), tool("broken", { outputSchema: { $ref: "#/$defs/Gone" } })], nextCursor: "third" },
  third: { tools: [tool("c"), tool("d", { inputSchema: { type: "object", properties: { "$filter": { type: "string" } } } })], nextCursor: MODE === "loop" ? "second" : null },
};
const ANSWERS = {
  a: { result: { isError: true, content: [{ type: "text", text: "401 " + KEY }] } },
  b: { result: { content: [] } },
  promised: { result: { content: [{ type: "text", text: "order 4711" }], structuredContent: { n: "4711" } } },
  broken: { result: { content: [{ type: "resource_link", uri: "x://y?k=" + encodeURIComponent(KEY), name: "n" }], structuredContent: { [KEY]: [KEY] } } },
  c: { error: { code: -32603, message: "no: " + KEY, data: { KEY } } },
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === "initialize") return send({ id, result: { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "odd", version: "1" } } });
  if (method === "tools/list") return send({ id, result: PAGES[params.cursor ?? "first"] });
  send({ id, ...(ANSWERS[params.name] ?? { result: { content: [{ type: "text", text: JSON.stringify(params.arguments) }] } }) });
});
`;

const KEY = "k3y-of/the+odd";

function oddServer(mode = "") {
  const script = join(filesIn({ "odd.cjs": SOURCE }), "odd.cjs");
  const lines: string[] = [];
  const env = { KEY: "${ODD_KEY}", MODE: mode };
  const server = { command: process.execPath, args: [script], env, approve: "none" as const, timeout: 30 };
  const log = createLogger("debug", (line) => void lines.push(line));
  const mcp = openMcpTools({ odd: server }, { env: { ODD_KEY: KEY }, version: "0.0.0-test", log });
  onTestFinished(() => mcp.close());
  return { mcp, log: () => lines.join("") };
}

describe("a sloppy server", () => {
  it("loses the tools that cannot be used, by name, and no others", async () => {
    const { mcp } = oddServer();
    const { tools, problems, leftOut } = await mcp.forAgent();
    expect(problems).toEqual([]);
    expect(tools.map(({ name }) => name)).toEqual([
      "odd__a",
      "odd__promised",
      "odd__broken",
      "odd__c",
      "odd__d",
    ]);
    const reason = "its arguments are not an object";
    expect(leftOut).toEqual([
      { server: "odd", tool: "(no name)", reason: "it has no name" },
      { server: "odd", tool: "b", reason },
    ]);
    const model = scriptedModel(() => ({ text: "end" }));
    const middleware = reportMissingTools({ problems, leftOut });
    const agent = buildAgent({ model, tools, middleware, checkpointer: new MemorySaver() });
    const events = await collect(agent, { kind: "task", task: "go" });
    const warnings = events.flatMap((event) => (event.kind === "warning" ? [event.message] : []));
    expect(warnings).toContain(`The tool 'b' of the MCP server 'odd' is left out: ${reason}.`);
    expect(model.requests[0]?.messages[0]?.text).toContain(
      "These tools of MCP servers cannot be used: (no name) of odd, b of odd.",
    );
  });

  it("ends its list where a page comes again", async () => {
    const { tools } = await oddServer("loop").mcp.forAgent();
    expect(tools).toHaveLength(5);
  });

  it("is quoted with what does not fit, never as having refused, and without its secrets", async () => {
    const { mcp, log } = oddServer();
    const { tools } = await mcp.forAgent();
    const names = ["a", "promised", "broken", "c", "d"];
    const toolCalls = names.map((name) => ({
      name: `odd__${name}`,
      args: name === "d" ? { $filter: "x" } : {},
    }));
    const model = callingOnce(...toolCalls);
    const agent = buildAgent({ model, tools, checkpointer: new MemorySaver() });
    const events = await collect(agent, { kind: "task", task: "go" });
    expect((await toolMessages(agent)).map((message) => message.text)).toEqual([
      "Error: 401 [hidden]",
      expect.stringMatching(
        /^order 4711\n\n\[This answer does not match the tool's outputSchema: .*number\]$/,
      ),
      "[Resource x://y?k=[hidden]: n]",
      "Error: The MCP server odd answered the call with an error, and may have run it anyway: no: [hidden]",
      '{"$filter":"x"}',
    ]);
    const told = JSON.stringify([events, model.requests.map(({ messages }) => messages)]) + log();
    expect(told).not.toContain(KEY);
    expect(told).not.toContain(encodeURIComponent(KEY));
    expect(tools[0]?.offered.description).toBe("Uses [hidden]");
  });
});

it("a call that could not be sent was not made", async () => {
  const { mcp } = oddServer();
  const { tools } = await mcp.forAgent();
  await mcp.close();
  const toolCalls = [{ name: "odd__d", args: {} }];
  const model = callingOnce(...toolCalls);
  const agent = buildAgent({ model, tools, checkpointer: new MemorySaver() });
  await collect(agent, { kind: "task", task: "go" });
  expect((await toolMessages(agent))[0]?.text).toBe(
    "Error: The MCP server odd is not available: this server is shutting down. The call was not made.",
  );
});

const PAIR = [{ type: "number" }, { type: "string" }];

/** Seen with servers of @modelcontextprotocol/server 2.4.0 and sdk 1.32.2, which write the same `z.tuple`. */
test.each([
  ["https://json-schema.org/draft/2020-12/schema", { prefixItems: PAIR, items: false }],
  ["http://json-schema.org/draft-07/schema#", { items: PAIR, additionalItems: false }],
])("a tuple is read in the draft that its schema names: %s", async ($schema, tuple) => {
  const amount = { type: "array", ...tuple, minItems: 2, maxItems: 2 };
  const problem = (await schemaChecks())({ $schema, type: "object", properties: { amount } });
  expect(problem({ amount: [5, "EUR"] })).toBeUndefined();
  expect(problem({ amount: [5, 5] })).toContain("amount/1 must be string");
});
