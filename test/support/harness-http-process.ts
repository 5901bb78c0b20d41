import { StreamableHTTPClientTransport as ModernHttp } from "@modelcontextprotocol/client";
import { StreamableHTTPClientTransport as FirstHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { expect } from "vitest";
import type { Connector } from "./clients.ts";
import type { Home } from "./harness.ts";
import { startProgram, type Child } from "./harness-process.ts";

export interface HttpProcess {
  readonly child: Child;
  readonly url: string;
  readonly connector: Connector;
}

/** `serve --http` as a process of its own, on a free port. `script`: another program than that of the sources. */
export async function serveHttp(
  { env }: Pick<Home, "env">,
  args: readonly string[] = [],
  script?: string,
): Promise<HttpProcess> {
  const child = await startProgram(["serve", "--http", "--port", "0", ...args], env, script);
  const find = (): string => /Serving MCP at (\S+)/.exec(child.errors())?.[1] ?? "";
  const gone = child.exited.then(() => Promise.reject(new Error(`the program has ended: ${child.errors()}`)));
  await Promise.race([expect.poll(find).not.toBe(""), gone]);
  const url = find();
  return {
    child,
    url,
    connector: httpConnector(url),
  };
}

/** Reaches a server at `url`, with a token where it wants one. */
export function httpConnector(url: string, token?: string): Connector {
  const init = token === undefined ? {} : { requestInit: { headers: { authorization: `Bearer ${token}` } } };
  return {
    first: () => new FirstHttp(new URL(url), init),
    modern: () => new ModernHttp(new URL(url), init),
  };
}
