import { McpServer } from "@modelcontextprotocol/server";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { silentLogger } from "../../../src/core/logger.ts";
import { serveHttp, type HttpOptions } from "../../../src/server/http/http.ts";
import { createResourceChanges } from "../../../src/server/resources/changes.ts";
import { openStreams } from "../../../src/storage/sqlite/streams.ts";
import { deferred } from "../../support/harness-deferred.ts";

/** A server whose tool `echo` repeats its text, and whose tool `wait` answers when `gate` opens. */
export async function serve(options: Partial<HttpOptions> = {}) {
  const [gate, entered] = [deferred(), deferred()];
  const factory = (): McpServer => {
    const capabilities = { resources: { subscribe: true } };
    const mcp = new McpServer({ name: "fixture", version: "1" }, { capabilities });
    mcp.registerTool("echo", { inputSchema: z.object({ text: z.string() }) }, ({ text }) => ({
      content: [{ type: "text", text }],
    }));
    mcp.registerTool("wait", { inputSchema: z.object({}) }, async () => {
      entered.resolve();
      await gate.promise;
      return { content: [{ type: "text", text: "waited" }] };
    });
    return mcp;
  };
  const server = await serveHttp({
    openStreams: () => openStreams(":memory:"),
    host: "127.0.0.1",
    port: 0,
    allowedHosts: [],
    allowedOrigins: [],
    factory,
    changes: createResourceChanges({ logger: silentLogger, runs: () => Promise.reject(new Error("none")) }),
    logger: silentLogger,
    ...options,
  });
  onTestFinished(async () => {
    gate.resolve();
    await server.close();
  });
  return { ...server, origin: new URL(server.url).origin, gate, entered };
}
