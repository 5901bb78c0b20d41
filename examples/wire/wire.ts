// What goes over the wire when a client delegates a task, in both protocol eras, with the approval accepted
// and rejected. Plays the client by hand, in raw JSON-RPC over stdio; checks what it says and exits non-zero
// when it is not so.
// Usage: npm run build && node examples/run.mjs wire
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const bin = fileURLToPath(
  new URL("dist/bin/deepagent-mcp.js", import.meta.resolve("deepagent-mcp/package.json")),
);

type Decision = "approve" | "reject";
/** A message of the protocol, as far as it is looked at here. */
interface Message {
  id?: number | string;
  method?: string;
  params?: Record<string, unknown>;
  result?: Result;
}
interface Result {
  resultType?: string;
  inputRequests?: Record<string, unknown>;
  requestState?: string;
  structuredContent?: { status?: string };
}
type Client = ReturnType<typeof open>;

const TASK = "List every TODO and write a report.";
const MODERN = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "transcript", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } },
};

/** One server on a folder of its own, and the lines that pass in both directions. */
function open() {
  const home = mkdtempSync(join(tmpdir(), "deepagent-wire-"));
  const workspace = join(home, "project");
  mkdirSync(workspace);
  writeFileSync(join(workspace, "app.js"), "// TODO: mind the gap\nexport const gap = 1;\n");
  const args = [
    "--workspace",
    workspace,
    "--data-dir",
    join(home, "data"),
    "--model",
    "offline",
    "--log-level",
    "error",
  ];
  const server = spawn(process.execPath, [bin, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const waiting: Array<(message: Message) => void> = [];
  const arrived: Message[] = [];
  createInterface({ input: server.stdout }).on("line", (line) => {
    const message = JSON.parse(line) as Message; // checked where it is used
    console.log(`← ${shorten(message)}`);
    const next = waiting.shift();
    if (next) next(message);
    else arrived.push(message);
  });
  return {
    workspace,
    send(message: Message | object): void {
      console.log(`→ ${shorten(message)}`);
      server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    },
    async next(matches: (message: Message) => boolean): Promise<Message> {
      for (;;) {
        const message = arrived.shift() ?? (await new Promise<Message>((resolve) => waiting.push(resolve)));
        if (matches(message)) return message;
      }
    },
    async close(): Promise<void> {
      const exited = new Promise((resolve) => server.once("exit", resolve));
      server.stdin.end();
      await exited;
      rmSync(home, { recursive: true, force: true });
    },
  };
}

function shorten(message: object): string {
  const text = JSON.stringify(message, (_key, value: unknown) =>
    typeof value === "string" && value.length > 160
      ? `${value.slice(0, 120)}… (${value.length} characters)`
      : value,
  );
  return text.length > 900 ? `${text.slice(0, 900)}… (${text.length} characters)` : text;
}

const call = (id: number, extra: object) => ({
  id,
  method: "tools/call",
  params: { name: "run_deep_agent", arguments: { task: TASK }, ...extra },
});

/** 2025 era: a handshake, then the server asks while the call stays open. */
async function legacy(decision: Decision): Promise<void> {
  const client = open();
  const capabilities = { elicitation: {} };
  const clientInfo = { name: "transcript", version: "1" };
  client.send({
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities, clientInfo },
  });
  await client.next(({ id }) => id === 1);
  client.send({ method: "notifications/initialized" });
  client.send(call(2, { _meta: { progressToken: 0 } }));
  const asked = await client.next(({ method }) => method === "elicitation/create");
  await new Promise((resolve) => setTimeout(resolve, 1200)); // a person reads before they decide
  client.send({ id: asked.id, result: { action: "accept", content: { decision } } });
  const { result } = await client.next(({ id, method }) => id === 2 && method === undefined);
  return check(client, result, decision);
}

/** 2026-07-28: no handshake; the call ends with the question and is repeated with the answer. */
async function modern(decision: Decision): Promise<void> {
  const client = open();
  client.send(call(1, { _meta: { ...MODERN, progressToken: "p1" } }));
  const { result: asked } = await client.next(({ id }) => id === 1);
  assert.equal(asked?.resultType, "input_required");
  const inputResponses = Object.fromEntries(
    Object.keys(asked.inputRequests ?? {}).map((key) => [key, { action: "accept", content: { decision } }]),
  );
  const { requestState } = asked;
  client.send(call(2, { inputResponses, requestState, _meta: { ...MODERN, progressToken: "p2" } }));
  const { result } = await client.next(({ id }) => id === 2);
  return check(client, result, decision);
}

async function check(client: Client, result: Result | undefined, decision: Decision): Promise<void> {
  const written = existsSync(join(client.workspace, "deepagent-report.md"));
  await client.close();
  assert.equal(result?.structuredContent?.status, "completed");
  assert.equal(written, decision === "approve", "the report is written when it was approved, and only then");
}

const ERAS = { "2025-11-25": legacy, "2026-07-28": modern };
for (const [era, play] of Object.entries(ERAS)) {
  for (const decision of ["approve", "reject"] as const) {
    console.log(`\n== ${era}, ${decision}`);
    await play(decision);
    console.log(`== ${era}, ${decision}: as expected`);
  }
}
