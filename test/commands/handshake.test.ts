import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { memberOf, parsedJson } from "../../src/core/unknown.ts";
import { filesIn } from "../support/files-in.ts";
import { BIN, cleanEnv, ROOT } from "./built-bin.ts";

/** Pieces of what a client sends: text, bytes, or a pause in ms. */
type Input = readonly (string | Buffer | number)[];

interface Case {
  readonly input: Input;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Sent when all requests are answered. Default: the end of the input. */
  readonly signal?: NodeJS.Signals;
  /** Milliseconds until the client reads. */
  readonly readsAfter?: number;
}

const line = (message: object): string => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`;
const lines = (...messages: object[]): string => messages.map(line).join("");
const clientInfo = { name: "t", version: "1" };
const initialize = (protocolVersion = "2025-11-25", id: unknown = 1, more: object = {}) => ({
  id,
  method: "initialize",
  params: { protocolVersion, capabilities: {}, clientInfo, ...more },
});
const ready = { method: "notifications/initialized" };
const list = (id: unknown = 2, params?: object) => ({ id, method: "tools/list", ...(params && { params }) });
const ping = (id: unknown) => ({ id, method: "ping" });
const call = (id: unknown, args: object = {}, name = "check_deep_agent", more: object = {}) => ({
  id,
  method: "tools/call",
  params: { name, arguments: args, ...more },
});
const P = "io.modelcontextprotocol/";
const envelope = (revision = "2026-07-28", name = "t") => ({
  _meta: {
    [`${P}protocolVersion`]: revision,
    [`${P}clientInfo`]: { ...clientInfo, name },
    [`${P}clientCapabilities`]: {},
  },
});
const discover = (id: unknown = 1) => ({ id, method: "server/discover", params: envelope() });
const many = Array.from({ length: 300 }, (_, at) => list(at + 2));
const split = Buffer.from(lines(initialize("2025-11-25", "é€"), list("ü")));
const middle = split.indexOf("€") + 1;

const DAILY: Record<string, Case> = {
  "a usual client": { input: [lines(initialize()), 60, lines(ready, list()), 60, lines(call(3))] },
  "all at once": { input: [lines(initialize(), ready, list(), call(3), ping(4))] },
  "the latest revision": {
    input: [lines(discover(), list(2, envelope()), call(3, {}, undefined, envelope()))],
  },
  "a client whose results are text": {
    input: [
      lines(initialize(undefined, 1, { clientInfo: { name: "codex-mcp-client", version: "1" } }), list()),
    ],
  },
  "wrong settings": { input: [lines(initialize())], args: ["--approvals-write", "maybe"] },
};

const LONG: Record<string, Case> = {
  "a client whose name begins like one, in the latest revision": {
    input: [lines(discover(), list(2, envelope(undefined, "qwen-cli-mcp-client-x")), list(3, envelope()))],
  },
  "a client that reads late": { input: [lines(initialize(), ready, ...many, call(900))], readsAfter: 1500 },
  "an id that comes again": { input: [lines(initialize(), ready, list(2), ping(1), call(1), ping(2))] },
  "byte by byte": { input: lines(initialize(), ready, list()).split("") },
  "split inside a letter": { input: [split.subarray(0, middle), 40, split.subarray(middle)] },
  "carriage returns": { input: [lines(initialize(), ready, list(), call(3)).replaceAll("\n", "\r\n")] },
  "blank lines": { input: [`\n\n${lines(initialize())}\n \n${lines(ready, list(), call(3))}`] },
  "a byte order mark": { input: [`\uFEFF${lines(initialize(), ready, list())}`] },
  ...Object.fromEntries(
    ["2024-10-07", "2025-03-26", "2025-06-18", "2099-01-01", "2026-07-28"].map((revision): [string, Case] => [
      `the revision ${revision}`,
      { input: [lines(initialize(revision), ready, list(), call(3))] },
    ]),
  ),
  "no parameters": { input: [lines({ id: 1, method: "initialize" }, list())] },
  "a wrong capability": {
    input: [lines(initialize(undefined, 1, { capabilities: { elicitation: true } }), list())],
  },
  "two handshakes": { input: [lines(initialize(), ready, initialize("2025-06-18", 2), list(3))] },
  "two handshakes with one id": {
    input: [lines(initialize()), 80, lines(initialize("2025-06-18", 1), list(3))],
  },
  "the id 0": { input: [lines(initialize(undefined, 0), ready, list('a"\\b'), list(-1))] },
  "a fraction as id": { input: [lines(initialize(undefined, 1.5), list(2))] },
  "no handshake": { input: [lines(list(1), ping(2), call(3))] },
  "a ping first": { input: [lines(ping(1), initialize(undefined, 2), list(3))] },
  "a notification first": { input: [lines(ready, initialize(), list(2))] },
  "a cursor": { input: [lines(initialize(), ready, list(2, { cursor: "x" }), list(3))] },
  "a token for progress": { input: [lines(initialize(), ready, list(2, { _meta: { progressToken: 1 } }))] },
  "lists of everything": {
    input: [lines(initialize(), ready, list(2), { id: 3, method: "prompts/list" }, list(4))],
  },
  "an unknown method": { input: [lines(initialize(), ready, { id: 2, method: "no/such" }, list(3))] },
  "a broken line first": { input: [`{nope\n${lines(initialize(), list(2))}`] },
  "a broken line later": { input: [`${lines(initialize())}{nope\n${lines(list(2), call(3))}`] },
  "a batch": {
    input: [`[${line(initialize()).trim()},${line(list(2)).trim()}]\n${line(initialize(undefined, 5))}`],
  },
  "a cancelled handshake": {
    input: [
      lines(initialize(), { method: "notifications/cancelled", params: { requestId: 1 } }, list(2)),
      50,
      line(ping(1)),
    ],
  },
  "a long line": { input: [lines(initialize(), ready, call(2, { x: "x".repeat(300_000) }), list(3))] },
  "a long first line": {
    input: [
      lines(initialize(undefined, 1, { clientInfo: { name: "x".repeat(200_000), version: "1" } }), list(2)),
    ],
  },
  "no line end at the end": { input: [lines(initialize(), ready, list(2)) + line(ping(3)).trim()] },
  "the end at once": { input: [] },
  "the end after the handshake": { input: [lines(initialize())] },
  "the end within a line": { input: [`${lines(initialize())}{"jsonrpc"`] },
  "the latest list first": { input: [lines(list(1, envelope()), discover(2))] },
  "two revisions": { input: [lines(discover(), list(2, envelope("2025-11-25")), list(3, envelope()))] },
  "no envelope later": { input: [lines(discover(), list(2), ping(3), list(4, envelope()))] },
  "an envelope later": { input: [lines(initialize(), ready, list(2, envelope()), list(3))] },
  "an answer that nobody asked for": { input: [lines(initialize(), ready, { id: 7, result: {} }, list(2))] },
  "many pings": { input: [lines(initialize(), ready, ...many.map(({ id }) => ping(id)))] },
  "tools of Codex": { input: [lines(initialize(), ready, list(2))], args: ["--codex-tools"] },
  "tools of Codex in the latest revision": {
    input: [lines(discover(), list(2, envelope()))],
    args: ["--codex-tools"],
  },
  "tools of Codex by a variable": {
    input: [lines(initialize(), list(2))],
    env: { DEEPAGENT_CODEX_TOOLS: "true" },
  },
  "a wrong flag": { input: [lines(initialize())], args: ["--wrong"] },
  "a folder that does not exist": { input: [lines(initialize())], args: ["--workspace", "/no/such"] },
  "an unknown variable": { input: [lines(initialize())], env: { DEEPAGENT_NO_SUCH: "1" } },
  "a signal after the list": { input: [lines(initialize(), ready, list(2)), 400], signal: "SIGTERM" },
  "a signal after the handshake": { input: [lines(initialize()), 600], signal: "SIGINT" },
};

test.each(Object.entries(DAILY))("answers as the program does: %s", compare);
test.each(Object.entries(LONG))("answers as the program does: %s", { tags: ["long"] }, compare);

test("a client that sends nothing more and leaves ends it before the program is loaded", async () => {
  const seen = await talk(BIN, { input: [lines(initialize(), ready)] });
  expect(seen).toMatchObject({ code: 0, log: "" });
  expect(seen.answers).toHaveLength(1);
});

async function compare(_name: string, given: Case): Promise<void> {
  const program = join(filesIn(), "program.mjs");
  const main = pathToFileURL(join(ROOT, "dist/bin/main.js")).href;
  writeFileSync(program, `await (await import(${JSON.stringify(main)})).run();`);
  const [expected, seen] = await Promise.all([talk(program, given), talk(BIN, given)]);
  expect(seen.answers).toEqual(expected.answers);
  expect(seen.code).toBe(expected.code);
}

/** Sends a case to a program, and waits for all answers, then for its end. */
async function talk(program: string, { input, args = [], env = {}, signal, readsAfter = 0 }: Case) {
  const home = filesIn();
  const workspace = join(home, "w");
  mkdirSync(workspace);
  const folders = [
    "--data-dir",
    join(home, "data"),
    ...(args.includes("--workspace") ? [] : ["--workspace", workspace]),
  ];
  const child = spawn(process.execPath, [program, "serve", ...folders, ...args], {
    cwd: workspace,
    env: { ...cleanEnv(), HOME: home, XDG_CACHE_HOME: join(home, "cache"), ...env },
  });
  const ended = once(child, "close");
  let output = "";
  let log = "";
  child.stderr.on("data", (bytes) => (log += String(bytes)));
  child.stdin.on("error", () => undefined);
  setTimeout(
    () => child.stdout.setEncoding("utf8").on("data", (text) => (output += String(text))),
    readsAfter,
  );
  for (const piece of input)
    if (typeof piece === "number") await pause(piece);
    else await new Promise((resolve) => child.stdin.write(piece, resolve));
  await answered(child, new Set(idsOf(input)), () => output);
  if (signal === undefined) child.stdin.end();
  else child.kill(signal);
  const [code] = await ended;
  const answers = output.split("\n").filter((text) => text !== "" && !text.includes('"method"'));
  return { code: code as number | null, answers, log };
}

const idsOf = (input: Input): string[] =>
  [
    ...input
      .filter((piece) => typeof piece !== "number")
      .join("")
      .matchAll(/"id":("(?:[^"\\]|\\.)*"|-?\d+),"method"/g),
  ].map(([, id = ""]) => id);

/** Waits until each id was answered, or no answer is to be expected any more. */
async function answered(child: ChildProcess, ids: ReadonlySet<string>, output: () => string): Promise<void> {
  for (let ticks = 0; ticks < 600 && child.exitCode === null; ticks += 1) {
    const seen = output()
      .split("\n")
      .map((text) => JSON.stringify(memberOf(parsedJson(text), "id")));
    if (ids.size > 0 && [...ids].every((id) => seen.includes(id))) return;
    if (ids.size === 0 && ticks > 2) return;
    await pause(100);
  }
}
