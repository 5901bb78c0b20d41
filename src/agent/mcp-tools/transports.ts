/** Ways to reach another MCP server: its process, or its address over one of two transports. */
import type { ChildProcess } from "node:child_process";
import { setTimeout as wait } from "node:timers/promises";
import type { Transport } from "@modelcontextprotocol/client";
import type { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { bytesShapeProblem } from "../../core/json.ts";
import type { Logger } from "../../core/logger.ts";
import { type LineChecks, checkedLines } from "../../core/message-lines.ts";
import { tailOf } from "../../core/text.ts";
import { McpUnavailableError, findHttpStatus, isFinal, lastWords } from "./failure-reasons.ts";
import { parseMessages } from "./messages.ts";
import type { Redactor } from "./redactor.ts";
import type { McpServerConfig, RemoteMcpServer } from "./server-config.ts";
import type { ServerLogin } from "./login.ts";
import { serverFetch, withLogin } from "./server-fetch.ts";
import { defined, parsedUrl } from "../../core/unknown.ts";

/**
 * A way to begin with a server: ask which revisions it speaks (`discover`, from 2026-07-28 on), `initialize` it at
 * once, or `initialize` it over the transport with two addresses (`sse`).
 */
export type Way = "discover" | "initialize" | "sse";

/** Lists the ways to try, the best first. A process that is asked for its revisions may end, so it is asked last. */
export function waysTo(config: McpServerConfig): readonly Way[] {
  if ("command" in config) return ["initialize", "discover"];
  return config.isOlder ? ["sse", "discover", "initialize"] : ["discover", "initialize", "sse"];
}

/** True if the server may answer the next way, after an attempt failed with `error`. */
export function mayAnswer(next: Way, error: unknown, config: McpServerConfig): boolean {
  // Only a process that answered knows another way; one that ended needs its command corrected.
  if ("command" in config) return error instanceof Error && typeof Reflect.get(error, "code") === "number";
  const status = findHttpStatus(error) ?? 0;
  return !isFinal(error) && !(next === "sse" && status >= 500 && status !== 501);
}

/** True for a way over another transport than the configured one. */
export const isDetour = (way: Way, config: McpServerConfig): boolean =>
  "url" in config && (way === "sse") !== (config.isOlder ?? false);

/** A way to reach a server, not yet opened. */
interface OpenableTransport {
  transport: Transport;
  /** The server's process while it is ours to end; `null` without one. */
  pid(): number | null;
  /** The end of the server's process and its last words; `undefined` while it runs, and without a process. */
  end(): Promise<string | undefined>;
  /** The last lines of the process's standard output that are not messages. */
  noise(): string;
}

interface TransportOptions {
  name: string;
  log: Logger;
  redactor: Redactor;
  /** The log-in that requests to an address carry. Default: none. */
  login?: ServerLogin | undefined;
  /** Called before the first line of a server's output that is not a message. */
  isFirstNoise(): boolean;
}

export async function createTransport(
  server: McpServerConfig,
  way: Way,
  options: TransportOptions,
): Promise<OpenableTransport> {
  if (!("url" in server)) return processTransport(server, options);
  const url = parsedUrl(server.url);
  if (url === undefined) throw new McpUnavailableError("its url is not a valid address");
  const { SSEClientTransport, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const plain = serverFetch(checksBy);
  const fetch = options.login === undefined ? plain : withLogin(plain, options.login, url);
  const settings = { requestInit: { headers: { ...server.headers } }, fetch };
  const transport =
    way === "sse"
      ? new SSEClientTransport(url, settings)
      : tellingEnds(new StreamableHTTPClientTransport(url, settings));
  return { transport, pid: () => null, end: async () => undefined, noise: () => "" };
}

/** Sends an initialize request, and returns the answer unchanged: a server that wants a log-in answers HTTP 401. */
export function askForChallenge({ url, headers }: RemoteMcpServer): Promise<Response> {
  const clientInfo = { name: "deepagent-mcp", version: "1" };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  return serverFetch(checksBy)(url, {
    method: "POST",
    headers: {
      ...headers,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
    signal: AbortSignal.timeout(20_000),
  });
}

/** Data of the error that a request gets if its stream ended without an answer. No server can send a symbol. */
export const BROKEN_OFF = Symbol("broken off");

/** Ends each request whose stream ended without an answer. The package leaves it waiting for its time-out. */
function tellingEnds<T extends Transport>(transport: T): T {
  const send: Transport["send"] = transport.send.bind(transport);
  transport.send = (message, options) => {
    const id = "method" in message && "id" in message ? message.id : undefined;
    const error = { code: 0, message: "the stream ended", data: BROKEN_OFF };
    const onRequestStreamEnd = (): void => {
      if (id !== undefined) transport.onmessage?.({ jsonrpc: "2.0", id, error });
    };
    return send(message, { ...options, onRequestStreamEnd });
  };
  return transport;
}

/** Characters of a process's standard error, and of its other output, that are kept. */
const MAX_STDERR = 4000;

async function processTransport(
  { command, args, env, cwd }: Extract<McpServerConfig, { command: string }>,
  options: TransportOptions,
): Promise<OpenableTransport> {
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    // The transport adds PATH, HOME and the like, and nothing else of this process.
    env: { ...env },
    stderr: "pipe",
    ...defined({ cwd }),
  });
  const { name: server, log, redactor } = options;
  // Paths are shortened last: a secret may look like one.
  const lastWordsOf = (output: string): string => redactor.reason(lastWords(redactor.text(output)));
  let stderr = "";
  let noise = "";
  transport.stderr?.on("data", (chunk: Buffer) => {
    stderr = tailOf(stderr + chunk.toString("utf8"), MAX_STDERR);
    log.debug("mcp_server_stderr", () => ({ server, text: redactor.reason(chunk.toString("utf8")) }));
  });
  let child: ChildProcess | undefined;
  let reading: Promise<void> | undefined;
  const start = transport.start.bind(transport);
  transport.start = async () => {
    await start();
    // The package keeps the process to itself; its version is exact, and a test reads a message this way.
    child = Reflect.get(transport, "_process") as ChildProcess | undefined;
    reading = readMessages(transport, child, (line) => {
      noise = tailOf(`${noise}${line}\n`, MAX_STDERR);
      if (options.isFirstNoise()) log.warn("mcp_server_noise", { server, text: redactor.reason(line) });
    });
  };
  const end = async (): Promise<string | undefined> => {
    const status = child?.exitCode ?? child?.signalCode;
    if (status === undefined || status === null) return undefined;
    // A program that it has started may hold its output.
    await Promise.race([reading, wait(500, undefined, { ref: false })]);
    // Many programs print their usage on standard output.
    const words = lastWordsOf(stderr) || lastWordsOf(noise);
    return `its process ended (${typeof status === "number" ? `exit code ${status}` : status})${words === "" ? "" : `: ${words}`}`;
  };
  return { transport, pid: () => transport.pid, end, noise: () => lastWordsOf(noise) };
}

function checksFor(most: { bytes: number; depth: number; values: number }): LineChecks {
  const tooLong = `its answer was not read: it has more than ${most.bytes} bytes, ${most.values} elements and members, or ${most.depth} levels; ask it for less at a time`;
  const problemOf = (message: Uint8Array): string | undefined =>
    message.length > most.bytes || bytesShapeProblem(message, most) !== undefined ? tooLong : undefined;
  return { maxBytes: most.bytes, tooLong, problemOf, refuse: () => undefined };
}

const [ANSWERS, LISTS] = [
  // The bytes are those of media of 5 MB, and the values are parsed in 25 ms.
  checksFor({ bytes: 8 * 1024 * 1024, depth: 200, values: 50_000 }),
  // Most servers send all their tools in one page, and runs seldom ask for it.
  checksFor({ bytes: 32 * 1024 * 1024, depth: 200, values: 500_000 }),
];
const checksBy = (method?: string): LineChecks => (method === "tools/list" ? LISTS : ANSWERS);

/**
 * Reads a server's messages in the place of the package, which decodes and parses everything that has arrived in one
 * turn of the event loop, and takes strict messages only.
 */
async function readMessages(
  transport: StdioClientTransport,
  child: ChildProcess | undefined,
  noise: (line: string) => void,
): Promise<void> {
  if (!child?.stdout) return;
  child.stdout.removeAllListeners("data");
  const lists = new Set<unknown>();
  const send = transport.send.bind(transport);
  transport.send = async (message) => {
    if ("method" in message && message.method === "tools/list" && "id" in message) lists.add(message.id);
    return send(message);
  };
  const problemOf = (line: Uint8Array) => (lists.size > 0 ? LISTS : ANSWERS).problemOf(line);
  try {
    for await (const bytes of checkedLines(withLineFeeds(child.stdout), { ...LISTS, problemOf })) {
      const line = bytes.toString("utf8");
      const messages = parseMessages(line);
      for (const message of messages ?? []) {
        if (!("method" in message)) lists.delete(message.id);
        transport.onmessage?.(message);
      }
      if (!messages && /\S/.test(line)) noise(line);
    }
  } catch (error) {
    transport.onerror?.(error instanceof Error ? error : new Error(String(error)));
    await transport.close();
  }
}

/** Ends lines with line feeds, whatever ended them: JSON on one line has carriage returns nowhere else. */
async function* withLineFeeds(output: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of output) {
    for (let at = chunk.indexOf(0x0d); at !== -1; at = chunk.indexOf(0x0d, at + 1)) chunk[at] = 0x0a;
    yield chunk;
  }
}
