import type { ChildProcess } from "node:child_process";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import type { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { bytesShapeProblem } from "../../core/json.ts";
import type { Logger } from "../../core/logger.ts";
import { type LineChecks, checkedBody, checkedEvents, checkedLines } from "../../core/message-lines.ts";
import { decodeUtf8 } from "../../core/text.ts";
import { type ExpandedServer, McpUnavailableError, redacted } from "./server-config.ts";

const MAX_REDIRECTS = 3;

/** A way to reach a server, not yet opened. */
export interface OpenableTransport {
  transport: Transport;
  /** The server's process while it is ours to end; `null`: there is none. */
  pid(): number | null;
}

export async function createTransport(
  name: string,
  { server, secrets }: ExpandedServer,
  log: Logger,
): Promise<OpenableTransport> {
  if ("url" in server) {
    if (!URL.canParse(server.url)) throw new McpUnavailableError("its url is not a valid address");
    const { SSEClientTransport, StreamableHTTPClientTransport } =
      await import("@modelcontextprotocol/client");
    const Http = server.isOlder ? SSEClientTransport : StreamableHTTPClientTransport;
    const transport = new Http(new URL(server.url), {
      requestInit: { headers: { ...server.headers } },
      fetch: async (url, init) => checkedResponse(await sameOriginFetch(url, init)),
    });
    return { transport, pid: () => null };
  }
  const { deserializeMessage } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const { command, args, env, cwd } = server;
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    // The transport adds PATH, HOME and the like, and nothing else of this process.
    env: { ...env },
    stderr: "pipe",
    ...(cwd === undefined ? {} : { cwd }),
  });
  transport.stderr?.on("data", (chunk: Buffer) => {
    log.debug("mcp_server_stderr", () => ({ server: name, text: redacted(chunk.toString("utf8"), secrets) }));
  });
  const start = transport.start.bind(transport);
  transport.start = async () => {
    await start();
    void readMessages(transport, deserializeMessage);
  };
  return { transport, pid: () => transport.pid };
}

function messageOf(line: Buffer, parse: (text: string) => JSONRPCMessage): JSONRPCMessage | undefined {
  try {
    return parse(decodeUtf8(line) ?? line.toString("utf8"));
  } catch {
    return undefined;
  }
}

/** Largest message of a server: as much as media of 5 MB take, and values that are parsed in 25 ms. */
const MAX_BYTES = 8 * 1024 * 1024;
const MAX_SHAPE = { depth: 200, values: 50_000 };
const TOO_LARGE = `its answer was not read: it has more than ${MAX_BYTES} bytes, ${MAX_SHAPE.values} elements and members, or ${MAX_SHAPE.depth} levels; ask it for less at a time`;
/** Longest body over HTTP that is neither JSON nor events, such as the page of a proxy. */
const MAX_OTHER_BYTES = 64 * 1024;

const CHECKS: LineChecks = {
  maxBytes: MAX_BYTES,
  tooLong: TOO_LARGE,
  problemOf: (message) => bytesShapeProblem(message, MAX_SHAPE) && TOO_LARGE,
  refuse: () => undefined,
};

/**
 * Reads a server's messages in the place of the package, which decodes and parses everything that has arrived in one
 * turn of the event loop. Lines that are no messages are ignored, as the package ignores them.
 */
async function readMessages(
  transport: StdioClientTransport,
  parse: (text: string) => JSONRPCMessage,
): Promise<void> {
  // The package keeps the process to itself; its version is exact, and a test reads a message this way.
  const child = Reflect.get(transport, "_process") as ChildProcess | undefined;
  if (!child?.stdout) return;
  child.stdout.removeAllListeners("data");
  const lines = checkedLines(child.stdout, CHECKS);
  try {
    for await (const line of lines) {
      const message = messageOf(line, parse);
      if (message) transport.onmessage?.(message);
    }
  } catch (error) {
    transport.onerror?.(error instanceof Error ? error : new Error(String(error)));
    await transport.close();
  }
}

/** Checks what a server answers over HTTP. A body that is no message, such as a proxy's page, is kept only in part. */
function checkedResponse(response: Response): Response {
  if (response.body === null) return response;
  const [type] = (response.headers.get("content-type") ?? "").split(";", 1);
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(checkFor(type)), { status, statusText, headers });
}

function checkFor(type = ""): TransformStream<Uint8Array, Uint8Array> {
  if (type === "text/event-stream") return checkedEvents(CHECKS);
  return checkedBody(type === "application/json" ? CHECKS : { ...CHECKS, maxBytes: MAX_OTHER_BYTES });
}

/** Ends a server's process at once. */
export function killProcess(pid: number | null): void {
  if (pid === null) return;
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended already.
  }
}

/** `fetch` that follows a redirect only within its origin: the headers may carry a key. */
async function sameOriginFetch(input: string | URL, init?: RequestInit): Promise<Response> {
  let url = new URL(input);
  for (let redirects = 0; ; redirects += 1) {
    const response = await fetch(url, { ...init, redirect: "manual" });
    const location = response.headers.get("location");
    if (response.status < 300 || response.status >= 400 || location === null) return response;
    const next = new URL(location, url);
    // A 301, 302 or 303 would turn a request with a body into one without.
    const keepsMethod = response.status === 307 || response.status === 308;
    if (next.origin !== url.origin || !keepsMethod || redirects === MAX_REDIRECTS) {
      await response.body?.cancel();
      throw new McpUnavailableError(`it redirects to another address; configure the address it answers at`);
    }
    await response.body?.cancel();
    url = next;
  }
}
