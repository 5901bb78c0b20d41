import type { Transport } from "@modelcontextprotocol/client";
import type { Logger } from "../../core/logger.ts";
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
      fetch: sameOriginFetch,
    });
    return { transport, pid: () => null };
  }
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
  return { transport, pid: () => transport.pid };
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
