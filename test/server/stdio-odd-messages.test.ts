import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import { paramsProblem } from "../../src/server/protocol/create-server.ts";
import { serveStdioServer } from "../../src/server/stdio/stdio.ts";
import { depsFor } from "./support.ts";

/** A server on streams of the test; `ask` sends lines and returns what comes before the answer to a last ping. */
function serve() {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const server = serveStdioServer(
    depsFor(() => Promise.reject(new Error("no runs here"))),
    { stdin, stdout, stderr: new PassThrough(), signals: new EventEmitter(), close: async () => {} },
  );
  onTestFinished(() => server.close());
  const seen: unknown[] = [];
  const arrived = new EventEmitter();
  let rest = "";
  stdout.setEncoding("utf8").on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    seen.push(...lines.map((line): unknown => JSON.parse(line)));
    arrived.emit("line");
  });
  let pings = 0;
  const ask = async (text: string, count: number): Promise<unknown[]> => {
    stdin.write(`${text}\n`);
    while (seen.length < count) await new Promise((resolve) => arrived.once("line", resolve));
    const id = `ping ${(pings += 1)}`;
    stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method: "ping" })}\n`);
    const isPing = (message: unknown): boolean => Object(message).id === id;
    while (!seen.some(isPing)) await new Promise((resolve) => arrived.once("line", resolve));
    return seen.splice(0).filter((message) => !isPing(message));
  };
  return { ask };
}

const request = (method: string, params?: unknown, id: unknown = 7): string =>
  JSON.stringify({ jsonrpc: "2.0", id, method, ...(params === undefined ? {} : { params }) });
const initialize = (params: unknown): string => request("initialize", params, 0);
const HANDSHAKE = { capabilities: {}, clientInfo: { name: "t", version: "1" } };

const TOOLS = { id: 7, result: { tools: expect.any(Array) } };
const DONE = { id: 7, result: {} };
/** An error that names what is wrong in one sentence, and shows nothing of a validator. */
const error = (code: number, words: string | RegExp, id: unknown = 7) => ({
  jsonrpc: "2.0",
  id,
  error: { code, message: expect.stringMatching(words) },
});
const invalid = (words: string | RegExp, id?: unknown) => error(-32_602, words, id);
const malformed = (words: string | RegExp, id?: unknown) => error(-32_600, words, id);

/** Where it was seen, or why; the line; the answers, in any order. */
type Row = readonly [source: string, line: string, answers: readonly unknown[]];

const LIST = "tools/list";
const CHECK = "check_deep_agent";
/** Without arguments the tool lists runs, which the server of this test cannot open. */
const CALLED = {
  id: 7,
  result: { isError: true, content: [{ type: "text", text: expect.stringContaining("look for") }] },
};

const ODD: readonly Row[] = [
  ["lizqwerscott/mcp.el#85", request(LIST, null), [TOOLS]],
  ["afrise/MCPSharp#6", request(LIST, []), [TOOLS]],
  ["elgorro/aiquila#442", request("ping", []), [DONE]],
  ["a serializer that writes every member", request(LIST, { _meta: null, cursor: null }), [TOOLS]],
  ["PHP writes an empty object as a list", request(LIST, { _meta: [] }), [TOOLS]],
  ["LIghtJUNction/OniMods#291", request(LIST, { _meta: { progressToken: null } }), [TOOLS]],
  [
    "LIghtJUNction/OniMods#291",
    request(LIST, { _meta: { progressToken: {} } }),
    [invalid("progressToken must be")],
  ],
  [
    "a token that is a fraction",
    request(LIST, { _meta: { progressToken: 0.5 } }),
    [invalid("progressToken must be")],
  ],
  ["_meta as text", request(LIST, { _meta: "x" }), [invalid("_meta must be an object")]],
  ["KeeperHub/keeperhub#2108", request("tools/call", { name: CHECK, arguments: null }), [CALLED]],
  ["cline/cline#10553", request("tools/call", { name: CHECK }), [CALLED]],
  ["PHP writes an empty object as a list", request("tools/call", { name: CHECK, arguments: [] }), [CALLED]],
  [
    "models write null for what they leave out",
    request("tools/call", { name: CHECK, arguments: { run_id: null } }),
    [CALLED],
  ],
  [
    "guangxiangdebizi/MySQL_MCP#5",
    request("tools/call", { name: CHECK, arguments: "{}" }),
    [invalid(/^Invalid params: arguments: expected object, received string$/)],
  ],
  [
    "no name",
    request("tools/call", { arguments: {} }),
    [invalid(/^Invalid params: name: expected string, but it is missing$/)],
  ],
  ["params by position", request("tools/call", [CHECK]), [invalid("params must be an object")]],
  ["params as text", request(LIST, "x"), [invalid("params must be an object")]],
  [
    "modelcontextprotocol/typescript-sdk#2284",
    request(LIST, { cursor: 5 }),
    [invalid(/^Invalid params: cursor: expected string, received number$/)],
  ],
  [
    "modelcontextprotocol/typescript-sdk#2284",
    request("resources/read", {}),
    [invalid(/^Invalid params: uri: expected string, but it is missing$/)],
  ],
  [
    "modelcontextprotocol/typescript-sdk#2284",
    request("prompts/get", { name: "delegate", arguments: { task: 5 } }),
    [invalid(/^Invalid params: arguments.task: expected string, received number$/)],
  ],
  [
    "modelcontextprotocol/typescript-sdk#2284",
    request("completion/complete", {}),
    [invalid(/^Invalid params: ref: Invalid input$/)],
  ],
  [
    "modelcontextprotocol/python-sdk#1561",
    request("invalid/method", {}),
    [error(-32_601, "Method not found")],
  ],
  ["no version of JSON-RPC", '{"id":7,"method":"ping"}', [malformed('jsonrpc must be "2.0"')]],
  ["JSON-RPC 1.0", '{"jsonrpc":"1.0","id":7,"method":"ping"}', [malformed('jsonrpc must be "2.0"')]],
  ["the version as a number", '{"jsonrpc":2.0,"id":7,"method":"ping"}', [malformed('jsonrpc must be "2.0"')]],
  [
    "a method that is not text",
    '{"jsonrpc":"2.0","id":7,"method":1}',
    [malformed("method must be a string")],
  ],
  ["no method", '{"jsonrpc":"2.0","id":7}', [malformed("method must be a string")]],
  ["no method and no id", '{"jsonrpc":"2.0"}', [malformed("method must be a string", null)]],
  ["an id that is null", request("ping", {}, null), [malformed("id must be", null)]],
  ["an id that is an object", request("ping", {}, {}), [malformed("id must be", null)]],
  ["an id that is true", request("ping", {}, true), [malformed("id must be", null)]],
  ["an id that is a fraction", request("ping", {}, 1.5), [malformed("id must be", 1.5)]],
  [
    "an id beyond what JSON numbers hold",
    '{"jsonrpc":"2.0","id":1e300,"method":"ping"}',
    [malformed("id must be", 1e300)],
  ],
  [
    "one class for requests and answers",
    '{"jsonrpc":"2.0","id":7,"method":"ping","params":null,"result":null,"error":null}',
    [DONE],
  ],
  ["members of its own", '{"jsonrpc":"2.0","id":7,"method":"ping","trace":"x"}', [DONE]],
  ["modelcontextprotocol/typescript-sdk#2790", `\uFEFF${request("ping")}`, [DONE]],
  ["jonnyzzz/mcp-steroid#461", `${request("ping")}\r`, [DONE]],
  ["blank lines", "\n\r\n  \n\uFEFF\r", []],
  ["Ataraxy-Labs/sem#168", "garbage", [error(-32_700, "one message as JSON", null)]],
  [
    "modelcontextprotocol/servers#4206",
    '{"jsonrpc":"2.0", "method": "test", "params": ',
    [error(-32_700, "one message as JSON", null)],
  ],
  ["not an object", "5", [malformed("must be a JSON object", null)]],
  ["null", "null", [malformed("must be a JSON object", null)]],
  [
    "a notification with an id that is null",
    '{"jsonrpc":"2.0","method":"notifications/initialized","id":null,"params":null}',
    [],
  ],
  ["an unknown notification", '{"jsonrpc":"2.0","method":"notifications/other"}', []],
  ["a notification with odd params", '{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}', []],
  ["a notification of another version", '{"method":"notifications/initialized"}', []],
  ["an answer to nothing", '{"jsonrpc":"2.0","id":99,"result":null,"error":null}', []],
  ["an error about nothing", '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}', []],
  [
    "elements of a batch",
    `[${request("ping", {}, 1)},${request(LIST, null, 2)},${request("ping", {}, {})},{"jsonrpc":"2.0","method":"notifications/other"}]`,
    [malformed("no batches", 1), malformed("no batches", 2), malformed("id must be", null)],
  ],
  ["an empty batch", "[]", [malformed("1 to 100 messages", null)]],
];

test.each(ODD)("%s: %s", async (_source, line, answers) => {
  const { ask } = serve();
  await ask(initialize({ ...HANDSHAKE, protocolVersion: "2025-06-18" }), 1);
  const got = await ask(line, answers.length);
  expect(got).toHaveLength(answers.length);
  for (const answer of answers) expect(got).toContainEqual(expect.objectContaining(answer));
  expect(JSON.stringify(got)).not.toMatch(/invalid_|-32603/);
});

const batch = (...messages: string[]): string => `[${messages.join(",")}]`;

test.each<Row>([
  [
    "requests",
    batch(request("ping", null, 1), request(LIST, [], 2)),
    [{ id: 1 }, { id: 2, result: { tools: expect.any(Array) } }],
  ],
  [
    "one that is wrong",
    batch(request("ping", {}, 1), '{"id":2,"method":"ping"}', "7"),
    [{ id: 1, result: {} }, malformed("jsonrpc", 2), malformed("JSON object", null)],
  ],
  ["nothing right", "[1]", [malformed("JSON object", null)]],
  ["notifications", batch('{"jsonrpc":"2.0","method":"notifications/other"}'), []],
  ["nothing at all", "[]", [malformed("1 to 100 messages", null)]],
])(
  "modelcontextprotocol/python-sdk#934: each request of a batch of 2025-03-26 is answered: %s",
  async (_title, line, answers) => {
    const { ask } = serve();
    await ask(initialize({ ...HANDSHAKE, protocolVersion: "2025-03-26" }), 1);
    const got = await ask(line, answers.length);
    expect(got).toHaveLength(answers.length);
    for (const answer of answers) expect(got).toContainEqual(expect.objectContaining(answer));
  },
);

describe("initialize", () => {
  const AGREED = (protocolVersion: string) => ({ id: 0, result: { protocolVersion } });
  test.each<[source: string, params: unknown, answer: object]>([
    [
      "containers/kubernetes-mcp-server#844",
      { protocolVersion: "2025-06-18", capabilities: {} },
      AGREED("2025-06-18"),
    ],
    ["no params", undefined, AGREED("2025-11-25")],
    ["params that are null", null, AGREED("2025-11-25")],
    ["an unknown revision", { ...HANDSHAKE, protocolVersion: "2030-01-01" }, AGREED("2025-11-25")],
    ["a revision that is null", { ...HANDSHAKE, protocolVersion: null }, AGREED("2025-11-25")],
    ["a revision that is a number", { ...HANDSHAKE, protocolVersion: 2025 }, invalid("protocolVersion", 0)],
    [
      "capabilities that are null",
      { protocolVersion: "2025-06-18", capabilities: null, clientInfo: null },
      AGREED("2025-06-18"),
    ],
    [
      "DataZooDE/flapi#100, of a client",
      {
        ...HANDSHAKE,
        protocolVersion: "2025-06-18",
        capabilities: { roots: null, sampling: null, elicitation: null },
      },
      AGREED("2025-06-18"),
    ],
    [
      "capabilities as text",
      { ...HANDSHAKE, protocolVersion: "2025-06-18", capabilities: "all" },
      invalid("capabilities", 0),
    ],
    [
      "a client without a version",
      { protocolVersion: "2025-06-18", clientInfo: { name: "x", title: null } },
      AGREED("2025-06-18"),
    ],
    ["a client as text", { protocolVersion: "2025-06-18", clientInfo: "x" }, invalid("clientInfo", 0)],
  ])("with %s is answered", async (_source, params, answer) => {
    const { ask } = serve();
    const line = JSON.stringify({
      jsonrpc: "2.0",
      id: 0,
      method: "initialize",
      ...(params === undefined ? {} : { params }),
    });
    expect(await ask(line, 1)).toMatchObject([answer]);
  });
});

test.each([
  ["Resource not found: [x]", undefined],
  ['Tool "params" [1] not found', undefined],
  ['[{"path":["other"],"message":"m","x":"params"}]', undefined],
  ['[{"path":["params"],"message":"Too big"}]', "params: Too big"],
])("%j is a list of a validator: %j", (text, problem) => {
  expect(paramsProblem(text)).toBe(problem);
});
