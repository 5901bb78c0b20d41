import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";

const REVISION = "2026-07-28";
/** What the test made and its sender must not reach. */
export interface Foreign {
  runId: string;
  threadId: string;
  approvalId: string;
}

/** One message as it is sent, and what kind of trouble it is. */
export interface Hostile {
  kind: string;
  /** The message itself; not always JSON. */
  text: string;
  /** Method and name for the headers that 2026-07-28 wants over HTTP. */
  method: string;
  name: string;
}

const envelope = (revision = REVISION) => ({
  "io.modelcontextprotocol/protocolVersion": revision,
  "io.modelcontextprotocol/clientInfo": { name: "hostile", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {
    elicitation: { form: {} },
    extensions: { "io.modelcontextprotocol/tasks": {} },
  },
});

function request(method: string, params: object, id: unknown = 1, revision = REVISION): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta: envelope(revision) } });
}

const call = (name: string, args: unknown, extra: object = {}): Omit<Hostile, "kind"> => ({
  text: request("tools/call", { name, arguments: args, ...extra }),
  method: "tools/call",
  name,
});
const ask = (method: string, params: object, name = ""): Omit<Hostile, "kind"> => ({
  text: request(method, params),
  method,
  name,
});
const raw = (text: string, method = "", name = ""): Omit<Hostile, "kind"> => ({ text, method, name });

const TOOLS = ["run", "check", "answer", "cancel"].map((verb) => `${verb}_deep_agent`);
TOOLS.push("read_agent_file", "search_memories");
const ping = request("tools/list", {});
const nested = (depth: number, open: string, close: string): string =>
  open.repeat(depth) + close.repeat(depth);
const NOT_OBJECTS = ["null", "true", "0", '"x"', "[]", "[[]]", "{}", "[null]", "-1e999"];
const REVISIONS = ["2024-11-05x", "1999-01-01", "", "2026-07-29", "__proto__", "9".repeat(300)];
const URIS = [
  "deepagent://files/%2e%2e%2f%2e%2e%2fetc/passwd",
  "deepagent://files/workspace/%2e%2e/%2e%2e/etc/passwd",
  "deepagent://files/workspace/%00",
  "deepagent://files/workspace/%E0%A4%A",
  "deepagent://runs/",
  "deepagent://runs/%2e%2e/report",
  "file:///etc/passwd",
  "http://169.254.169.254/",
  "ui://x",
  "\u0000",
];

/** Each kind of trouble, as an arbitrary of its messages. */
function kinds(foreign: Foreign): Record<string, fc.Arbitrary<Omit<Hostile, "kind">>> {
  const tool = fc.constantFrom(...TOOLS);
  return {
    "broken JSON": fc.nat(ping.length - 2).map((end) => raw(ping.slice(0, end + 1))),
    "not a message": fc.constantFrom(...NOT_OBJECTS).map((text) => raw(text)),
    "wrong types in the message": fc
      .tuple(fc.jsonValue(), fc.jsonValue(), fc.jsonValue())
      .filter(([, method]) => typeof method !== "string")
      .map(([id, method, params]) => raw(JSON.stringify({ jsonrpc: "2.0", id, method, params }))),
    "wrong types in arguments": fc
      .tuple(tool, fc.jsonValue())
      // Null and an empty list count as no arguments.
      .filter(([, args]) =>
        Array.isArray(args) ? args.length > 0 : args !== null && typeof args !== "object",
      )
      .map(([name, args]) => call(name, args)),
    "unknown arguments": fc
      .tuple(
        // Without the arguments that these need, the unknown ones are named; otherwise they are ignored.
        tool.filter((name) => name !== "check_deep_agent"),
        fc.dictionary(fc.constantFrom("__proto__", "constructor", "toString", "x"), fc.jsonValue()),
      )
      .map(([name, args]) => call(name, { ...args, surprise: 1 })),
    "wrong revision": fc
      .constantFrom(...REVISIONS)
      .map((revision) => raw(request("tools/list", {}, 1, revision), "tools/list")),
    "unknown method": fc
      .constantFrom("tasks/list", "tasks/result", "sampling/createMessage", "__proto__", "tools/callx")
      .map((method) => ask(method, {})),
    "unknown tool": fc.constantFrom("rm", "__proto__", "constructor", "").map((name) => call(name, {})),
    deep: fc
      .tuple(tool, fc.integer({ min: 1000, max: 5000 }))
      .map(([name, depth]) =>
        raw(
          request("tools/call", { name, arguments: "DEEP" }).replace(
            '"DEEP"',
            `{"x":${nested(depth, "[", "]")}}`,
          ),
          "tools/call",
          name,
        ),
      ),
    large: fc
      .tuple(tool, fc.integer({ min: 20_000, max: 60_000 }))
      .map(([name, size]) => call(name, { run_id: "r".repeat(size), path: "p".repeat(size) })),
    "many elements": fc.constant(
      call("check_deep_agent", { run_id: "x", list: Array.from({ length: 12_000 }, () => 0) }),
    ),
    "forged state": fc
      .tuple(fc.constantFrom("run_deep_agent", "check_deep_agent"), fc.base64String({ minLength: 8 }))
      .map(([name, text]) =>
        call(name, { task: "x", run_id: foreign.runId }, { requestState: `v1.${text}.${text}` }),
      ),
    "a foreign run": fc
      .constantFrom("check_deep_agent", "cancel_deep_agent")
      .map((name) => call(name, { run_id: foreign.runId })),
    "a foreign run's file": fc.constant(
      call("read_agent_file", { run_id: foreign.runId, path: "/draft.md" }),
    ),
    "a foreign approval": fc.constant(
      call("answer_deep_agent", {
        run_id: foreign.runId,
        approval_id: foreign.approvalId,
        decision: "approve",
      }),
    ),
    "a foreign thread": fc.constant(call("run_deep_agent", { task: "x", thread_id: foreign.threadId })),
    "a foreign task": fc
      .constantFrom("tasks/get", "tasks/update", "tasks/cancel")
      .map((method) => ask(method, { taskId: foreign.runId }, foreign.runId)),
    "a foreign resource": fc
      .constantFrom("", "/report", "/events", "/todos", "/files/draft.md")
      .map((path) => `deepagent://runs/${foreign.runId}${path}`)
      .map((uri) => ask("resources/read", { uri }, uri)),
    "a hostile resource": fc.constantFrom(...URIS).map((uri) => ask("resources/read", { uri }, uri)),
    "wrong types in a task": fc
      .jsonValue()
      .filter((taskId) => typeof taskId !== "string")
      .map((taskId) => ask("tasks/get", { taskId: taskId as object }, "x")),
  };
}

/** How often a kind is sent, where it is more or less than usual: by how long it takes to answer. */
const WEIGHTS: Readonly<Record<string, number>> = {
  "broken JSON": 12,
  "not a message": 12,
  "wrong types in the message": 12,
  "wrong revision": 12,
  "unknown method": 12,
  deep: 1,
  large: 1,
  "many elements": 1,
};

/** `count` messages, the same ones for the same seed, with ids from 1 to 50: most are used many times. */
export function hostileMessages(foreign: Foreign, count: number, seed: number): Hostile[] {
  const arbitraries = Object.entries(kinds(foreign)).map(([kind, arbitrary]) => ({
    weight: WEIGHTS[kind] ?? 4,
    arbitrary: fc.tuple(arbitrary, fc.integer({ min: 1, max: 50 })).map(([message, id]): Hostile => ({
      kind,
      ...message,
      text: message.text.replace('"id":1,', `"id":${id},`),
    })),
  }));
  return fc.sample(fc.oneof(...arbitraries), { numRuns: count, seed });
}

export const HOSTILE_KINDS = Object.keys(kinds({ runId: "", threadId: "", approvalId: "" }));

/** Numbers of the errors that JSON-RPC and MCP give to each kind; `refused`: a tool's own refusal, in words. */
export const EXPECTED: Readonly<Record<string, readonly (number | "refused")[]>> = {
  "broken JSON": [-32_700],
  "not a message": [-32_600],
  "wrong types in the message": [-32_600],
  "wrong types in arguments": [-32_602],
  "unknown arguments": ["refused"],
  "wrong revision": [-32_020, -32_022],
  "unknown method": [-32_601],
  "unknown tool": [-32_602],
  deep: [-32_600],
  large: ["refused"],
  "many elements": [-32_600],
  "forged state": [-32_602],
  "a foreign run": ["refused"],
  "a foreign run's file": ["refused"],
  "a foreign approval": ["refused"],
  "a foreign thread": ["refused"],
  "a foreign task": [-32_602],
  "a foreign resource": [-32_602],
  "a hostile resource": [-32_602],
  "wrong types in a task": [-32_602],
};

interface Answer {
  error?: { code: number; message: string };
  result?: { isError?: boolean; content?: { text?: string }[] };
}

/** How a message was answered, or what is wrong with the answer. */
export function answerTo(reply: unknown): number | string {
  const { error, result } = reply as Answer; // any other answer shows as one that fits nothing
  const text = JSON.stringify(reply);
  if (/\n\s+at |root:x|node_modules|"stack"/.test(text)) return `leaks: ${text.slice(0, 300)}`;
  if (error !== undefined) return error.code;
  return result?.isError === true ? "refused" : `accepted: ${text.slice(0, 300)}`;
}

/** Memory that is in use after everything that can go has gone, in MiB. */
export function usedMemory(): number {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect !== "function") throw new Error("garbage cannot be collected on demand");
  collect();
  collect();
  return process.memoryUsage().heapUsed / 1024 / 1024;
}
