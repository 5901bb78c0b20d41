import { describe, expect, it } from "vitest";
import {
  type Exchange,
  json,
  olderSse,
  ordinary,
  refuse,
  sloppyHttp,
  sloppyProcess,
  to,
} from "../../support/sloppy-mcp-server.ts";
import { FINE, OWN, at, connect, run, used } from "./connect-to.ts";

describe("a server from before server/discover gets initialize, whatever it answers", () => {
  const answers: Array<[answer: string, answered: (exchange: Exchange) => boolean | undefined]> = [
    ["modelcontextprotocol/rust-sdk#1040: method not found", () => undefined],
    [
      "modelcontextprotocol/go-sdk#1014: an error of another code",
      ({ message, response }) =>
        json(response, { jsonrpc: "2.0", id: message.id, error: { code: -32_000, message: "Unsupported" } }),
    ],
    [
      "modelcontextprotocol/rust-sdk#1040: an error without a code",
      ({ message, response }) =>
        json(response, { jsonrpc: "2.0", id: message.id, error: { message: "unknown method" } }),
    ],
    [
      "ai-ecoverse/slicc#3001: 400 with an error for nobody",
      ({ response }) =>
        refuse(
          response,
          400,
          '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Mcp-Session-Id header is required"}}',
        ),
    ],
    [
      "modelcontextprotocol/csharp-sdk#1765: 404",
      ({ response }) => refuse(response, 404, "Invalid session ID"),
    ],
    ["rahmanef63/mso#42: 405", ({ response }) => refuse(response, 405)],
    [
      "modelcontextprotocol/go-sdk#1014: 500 with a page",
      ({ response }) => refuse(response, 500, "<h1>error</h1>"),
    ],
    ["503", ({ response }) => refuse(response, 503)],
    ["202 without a body", ({ response }) => refuse(response, 202)],
    ["204", ({ response }) => refuse(response, 204)],
    ["200 without a body", ({ response }) => refuse(response, 200)],
    [
      "modelcontextprotocol/python-sdk#1382: 200 with a page",
      ({ response }) => json(response, "<!doctype html><title>Welcome</title>", "text/html"),
    ],
    ["a closed connection", ({ request }) => Boolean(request.socket.destroy())],
    ["MayDay-wpf/snow-app#56: nothing", () => true],
  ];

  it.each(answers)("%s", async (_answer, answer) => {
    const { url, seen } = await sloppyHttp(to("server/discover", answer));
    expect(await used(at(url))).toMatchObject({ names: ["a"], answer: FINE, note: undefined });
    expect(seen).toContain("initialize");
  });

  it("MayDay-wpf/snow-app#56: and is not asked again when its connection is opened again", async () => {
    let isGone = false;
    const { url, seen } = await sloppyHttp(({ message, response, request }) => {
      if (message.method === "server/discover") return true;
      if (message.method === "initialize") response.setHeader("mcp-session-id", isGone ? "two" : "one");
      else if (isGone && request.headers["mcp-session-id"] === "one") return refuse(response, 404);
      return undefined;
    });
    const { connection, call } = connect(at(url));
    await connection.listTools();
    isGone = true;
    expect(await call()).toEqual(FINE);
    expect(seen.filter((method) => method === "server/discover")).toHaveLength(1);
  });

  it("github/copilot-cli#4809: a process is never asked first, so it cannot end because of it", async () => {
    const program = sloppyProcess(`
let isInitialized = false;
const plain = take;
take = (message) => {
  if (message.method !== "initialize" && !isInitialized) process.exit(1);
  isInitialized = true;
  plain(message);
};`);
    expect(await used(run(program))).toMatchObject({ names: ["a"], answer: FINE });
  });
});

describe("answers in a form of their own are understood", () => {
  const forms: Array<[form: string, text: (answer: Record<string, unknown>) => string]> = [
    ["datalust/seqcli#108: a byte order mark", (answer) => `\uFEFF${JSON.stringify(answer)}`],
    [
      "leehack/mcp_dart#238: error: null beside the result",
      (answer) => JSON.stringify({ error: null, ...answer }),
    ],
    ["an empty error beside the result", (answer) => JSON.stringify({ error: {}, ...answer })],
    [
      "result: null beside an error, and an unknown field",
      (answer) => JSON.stringify({ ...answer, ...("error" in answer ? { result: null } : {}), took: 3 }),
    ],
    ["Quantum3-Labs/ARBuilder#2: no jsonrpc", (answer) => JSON.stringify({ ...answer, jsonrpc: undefined })],
    [
      "cognizant-ai-lab/neuro-san#526: the id as a string",
      (answer) => JSON.stringify({ ...answer, id: String(answer["id"]) }),
    ],
    ["a batch", (answer) => JSON.stringify([answer])],
    ["DeusData/codebase-memory-mcp#1424: blanks around it", (answer) => `  ${JSON.stringify(answer)}  \r`],
    [
      "_meta: null",
      (answer) =>
        JSON.stringify({
          ...answer,
          ...("result" in answer ? { result: { ...Object(answer["result"]), _meta: null } } : {}),
        }),
    ],
  ];

  it.each(forms)("%s, over HTTP", async (_form, text) => {
    const { url } = await sloppyHttp(({ message, request, response }) =>
      request.method === "POST" && message.id !== undefined
        ? json(response, text({ ...ordinary(message) }))
        : undefined,
    );
    expect(await used(at(url))).toMatchObject({ names: ["a"], answer: FINE });
  });

  it.each(forms)("%s, from a process", async (_form, text) => {
    const program = sloppyProcess(`const text = ${String(text)};
say = (answer) => process.stdout.write(text(answer) + "\\n");`);
    expect(await used(run(program))).toMatchObject({ names: ["a"], answer: FINE });
  });

  const streams: Array<[form: string, text: (answer: object) => string]> = [
    [
      "envoyproxy/ai-gateway#1398: lines that end with CRLF",
      (answer) => `event: message\r\ndata: ${JSON.stringify(answer)}\r\n\r\n`,
    ],
    [
      "zhu1090093659/deepseek-pp#471: lines that end with CR",
      (answer) => `: hello\r\rid: 1\rdata: ${JSON.stringify(answer)}\r\r`,
    ],
    ["an end without a blank line", (answer) => `data: ${JSON.stringify(answer)}`],
    [
      "a byte order mark, and error: null",
      (answer) => `\uFEFFdata: ${JSON.stringify({ error: null, ...answer })}\n\n`,
    ],
  ];

  it.each(streams)("%s, in a stream", async (_form, text) => {
    const { url } = await sloppyHttp(({ message, request, response }) =>
      request.method === "POST" && message.id !== undefined
        ? json(response, text(ordinary(message)), "text/event-stream; charset=utf-8")
        : undefined,
    );
    expect(await used(at(url))).toMatchObject({ names: ["a"], answer: FINE });
  });

  it.each([
    ["junjiem/dify-plugin-agent-mcp_sse#79", "text/plain"],
    ["helidon-io/helidon-mcp#97", ""],
    [OWN, "application/json-rpc; charset=utf-8"],
  ])("%s: content type %j", async (_source, type) => {
    const { url } = await sloppyHttp(({ message, request, response }) =>
      request.method === "POST" && message.id !== undefined
        ? json(response, ordinary(message), type)
        : undefined,
    );
    expect(await used(at(url))).toMatchObject({ names: ["a"], answer: FINE });
  });

  it.each([
    ["outline/outline#13775", 400],
    ["modelcontextprotocol/typescript-sdk#1303", 204],
    ["MaterializeInc/materialize#38556", 200],
    [OWN, 500],
  ])("%s: a notification answered with %i, and its stream refused", async (_source, status) => {
    const { url } = await sloppyHttp(({ message, request, response }) =>
      request.method === "GET" || message.method === "notifications/initialized"
        ? refuse(response, status)
        : undefined,
    );
    expect(await used(at(url))).toMatchObject({ names: ["a"], answer: FINE });
  });

  const SPOKEN = { protocolVersion: "2025-06-18", capabilities: { tools: {} } };
  const beginnings: Array<[form: string, beginning: object]> = [
    [
      "springfall2008/batpred#3501: a list as a capability",
      { ...SPOKEN, capabilities: { tools: [{ name: "a" }], prompts: null, logging: true } },
    ],
    ["ian-cowley/MCPSqlServer#3: no revision and no name", { capabilities: { tools: {} } }],
    ["no version", { ...SPOKEN, serverInfo: { name: "s" } }],
    ["a version that is a number", { ...SPOKEN, serverInfo: { name: "s", version: 1 } }],
    [
      "fields that are null",
      { ...SPOKEN, serverInfo: { name: "s", version: "1", icons: null, title: null }, instructions: null },
    ],
    ["nothing at all", {}],
  ];

  it.each(beginnings)("%s in the answer to initialize", async (_form, beginning) => {
    const { url } = await sloppyHttp(
      to("initialize", ({ message, response }) =>
        json(response, { jsonrpc: "2.0", id: message.id, result: beginning }),
      ),
    );
    expect(await used(at(url))).toMatchObject({ names: ["a"], answer: FINE });
  });

  it("helidon-io/helidon-mcp#65: an error for nobody answers the request", async () => {
    const { url } = await sloppyHttp(
      to("tools/call", ({ response }) =>
        json(response, { jsonrpc: "2.0", id: null, error: { code: "-32602", message: "no such word" } }),
      ),
    );
    const { call } = connect(at(url));
    await expect(call()).rejects.toMatchObject({ code: -32_602, message: "no such word" });
  });

  it("an error under a status of HTTP is the server's answer, and leaves the connection open", async () => {
    const { url, seen } = await sloppyHttp(
      to("tools/call", ({ message, response }) =>
        refuse(response, 400, JSON.stringify({ id: message.id, error: { message: "no such word" } })),
      ),
    );
    const { call } = connect(at(url));
    for (let count = 0; count < 2; count += 1) await expect(call()).rejects.toMatchObject({ code: -32_603 });
    expect(seen.filter((method) => method === "initialize")).toHaveLength(1);
  });

  it.each([
    ["nothing", "undefined", []],
    ["null", "null", []],
    ["words", '"four words of it"', [{ type: "text", text: "four words of it" }]],
    ["a list", "[1,2]", [{ type: "text", text: "[1,2]" }]],
  ])("a result that is %s is the result of a call that was made", async (_name, result, content) => {
    const program = sloppyProcess(`RESULTS["tools/call"] = true;
say = (answer) => {
  if (answer.result === true) answer.result = ${result};
  process.stdout.write(JSON.stringify(answer) + "\\n");
};`);
    const { call } = connect(run(program));
    expect(await call().catch((error: unknown) => error)).toEqual(content);
  });
});

it("requests name their sender, and ask for plain answers on a connection of their own", async () => {
  const sent: unknown[] = [];
  const { url } = await sloppyHttp(({ request }) => {
    const { "user-agent": sender, "accept-encoding": coding, connection } = request.headers;
    sent.push({ sender, coding, connection });
    return undefined;
  });
  expect(await used(at(url, { headers: { "User-Agent": "mine" } }))).toMatchObject({ answer: FINE });
  expect(sent.slice(0, 1)).toEqual([{ sender: "mine", coding: "identity", connection: "close" }]);
  sent.length = 0;
  await used(at(url));
  expect(sent[0]).toMatchObject({ sender: "deepagent-mcp" });
});

it.each([
  ["microsoft/azure-devops-mcp#147", "Azure DevOps MCP Server version : 1.0"],
  ["NuGet/Home#14591", '{"level":"info","id":1,"result":"Initializing"}'],
  [OWN, "\u0000\u0001 \uFFFD { not json"],
  [OWN, "x".repeat(100_000)],
])("%s: a noisy process is understood, and its noise is logged once", async (_source, noise) => {
  const program = sloppyProcess(`const noise = ${JSON.stringify(noise)};
const plain = say;
say = (answer) => {
process.stdout.write("\\n\\r\\n  \\n" + noise + "\\r\\n");
process.stdout.write(Buffer.from([0xff, 0xfe, 0x0a]));
process.stdout.write("\\u001b[2K" + JSON.stringify(answer) + "\\r");
process.stdout.write(JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params: null }) + "\\n");
};`);
  const { names, answer, log } = await used(run(program));
  expect({ names, answer }).toEqual({ names: ["a"], answer: FINE });
  const lines = log.split("\n").filter((line) => line.includes("mcp_server_noise"));
  expect(lines).toHaveLength(1);
  expect(lines[0]?.length).toBeLessThan(600);
});

describe("a server that speaks the other transport", () => {
  it.each([
    ["labring/FastGPT#7154", 400],
    ["labring/FastGPT#7154", 404],
    ["labring/FastGPT#7154", 405],
    [OWN, 406],
    [OWN, 501],
  ])("%s: is reached over HTTP+SSE after %i, and that is noted", async (_source, status) => {
    const { url } = await sloppyHttp(olderSse(status));
    const { names, answer, note, log } = await used(at(url));
    expect({ names, answer }).toEqual({ names: ["a"], answer: FINE });
    expect(note).toBe(
      "The MCP server 'sloppy' was reached over the older HTTP+SSE transport. Set its type to \"sse\" to connect at once.",
    );
    expect(log).toContain("the older HTTP+SSE transport");
  });

  it("microsoft/vscode#249914: also if it begins its stream whatever the method is", async () => {
    const older = olderSse(405);
    const { url } = await sloppyHttp((exchange) => {
      if (exchange.request.method === "POST" && exchange.request.url === "/mcp") {
        exchange.response.writeHead(200, { "content-type": "text/event-stream" });
        exchange.response.write("event: endpoint\ndata: /messages?sessionId=0\n\n");
        return true;
      }
      return older(exchange);
    });
    expect(await used(at(url))).toMatchObject({ names: ["a"], answer: FINE });
  });

  it("higress-group/higress#3800: is reached over Streamable HTTP if its type is wrong", async () => {
    const { url } = await sloppyHttp(() => undefined);
    const { names, answer, note } = await used(at(url, { isOlder: true }));
    expect({ names, answer }).toEqual({ names: ["a"], answer: FINE });
    expect(note).toContain('Set its type to "http"');
  });

  it("has no note if its type says so", async () => {
    const { url } = await sloppyHttp(olderSse(405));
    expect(await used(at(url, { isOlder: true }))).toMatchObject({ answer: FINE, note: undefined });
  });
});
