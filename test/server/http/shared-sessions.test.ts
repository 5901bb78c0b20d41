import { setTimeout as delay } from "node:timers/promises";
import { McpServer } from "@modelcontextprotocol/server";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { StorageError } from "../../../src/core/errors.ts";
import { silentLogger as logger } from "../../../src/core/logger.ts";
import { type HttpOptions, serveHttp } from "../../../src/server/http/http.ts";
import { createResourceChanges } from "../../../src/server/resources/changes.ts";
import { openPostgres } from "../../../src/storage/postgres/storage.ts";
import { bearer, send, sessionHeaders } from "../../support/clients-raw.ts";
import { postgresSuite } from "../../storage/postgres-suite.ts";
import { entry, withTokens } from "../auth/support.ts";

describe("a 2025-era session of servers on one Postgres", { tags: "postgres" }, () => {
  const { url: postgres, newSchema } = postgresSuite();

  /** Two servers whose tool asks for a word, and says it. */
  async function serveTwo(options: Partial<HttpOptions> = {}) {
    const schema = newSchema();
    const factory = (): McpServer => {
      const mcp = new McpServer({ name: "fixture", version: "1.0.0" });
      const inputSchema = z.object({ about: z.string() });
      mcp.registerTool("ask", { inputSchema }, async ({ about }, { mcpReq }) => {
        const form = { type: "object" as const, properties: { word: { type: "string" as const } } };
        const asked = { message: about, requestedSchema: form };
        const { content } = await mcpReq.elicitInput(asked, { relatedRequestId: mcpReq.id });
        return { content: [{ type: "text", text: `${about}: ${String(content?.["word"])}` }] };
      });
      return mcp;
    };
    const serveOne = async () => {
      const storage = await openPostgres({ url: postgres(), schema, connections: 3, logger });
      const changes = createResourceChanges({ logger, runs: () => Promise.reject(new Error("none")) });
      const server = await serveHttp({
        openStreams: () => storage.openStreams(),
        openShared: async () => storage,
        host: "127.0.0.1",
        port: 0,
        allowedHosts: [],
        allowedOrigins: [],
        factory,
        changes,
        logger,
        ...options,
      });
      onTestFinished(async () => {
        await server.close();
        await storage.close();
      });
      return { url: server.url };
    };
    return { one: await serveOne(), other: await serveOne() };
  }

  const initialize = (url: string, headers: Record<string, string> = {}) =>
    send(url, {
      headers,
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 0,
        method: "initialize",
        params: {
          protocolVersion: "2025-11-25",
          capabilities: { elicitation: {} },
          clientInfo: { name: "raw", version: "1" },
        },
      }),
    });
  const post = (url: string, headers: Record<string, string>, message: object) =>
    send(url, { headers, body: JSON.stringify({ jsonrpc: "2.0", ...message }) });
  const LIST = { id: 9, method: "tools/list", params: {} };

  /** Calls the tool; gives the id of its question, and its stream up to the end. */
  async function ask(url: string, headers: Record<string, string>, id: number, about: string) {
    const params = { name: "ask", arguments: { about } };
    const response = await fetch(url, {
      method: "POST",
      headers: {
        ...headers,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params }),
    });
    const parts = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    const until = async (pattern: RegExp): Promise<string> => {
      for (;;) {
        const [, found] = pattern.exec(text) ?? [];
        if (found !== undefined) return found;
        const { done, value } = await parts.read();
        if (done) throw new Error(`the stream ended: ${text}`);
        text += value;
      }
    };
    const question = await until(/"id":("[^"]+"|\d+)/);
    return { question: JSON.parse(question) as string | number, answer: () => until(/"text":"([^"]*)"/) };
  }
  const word = (id: string | number, text: string) => ({
    id,
    result: { action: "accept", content: { word: text } },
  });

  test("an answer counts at the server that asked, and never for another question", async () => {
    const { one, other } = await serveTwo();
    const headers = sessionHeaders(await initialize(one.url));
    const first = await ask(one.url, headers, 1, "first");
    const second = await ask(other.url, headers, 2, "second");
    expect(first.question).not.toEqual(second.question);
    for (const [url, question] of [
      [one.url, second.question],
      [other.url, first.question],
    ] as const) {
      const refused = await post(url, headers, word(question, "wrong"));
      expect(refused.status).toBe(409);
      expect(refused.body).toContain("Another server asked this question.");
      expect(refused.body).toContain("Mcp-Session-Id");
    }
    expect((await post(other.url, headers, word(second.question, "two"))).status).toBe(202);
    expect((await post(other.url, headers, word(0, "nobody's"))).status).toBe(202);
    expect((await post(other.url, headers, word("0", "nobody's"))).status).toBe(202);
    expect((await post(one.url, headers, word(first.question, "one"))).status).toBe(202);
    expect(await first.answer()).toBe("first: one");
    expect(await second.answer()).toBe("second: two");
  });

  test("DELETE ends it everywhere", async () => {
    const { one, other } = await serveTwo();
    const headers = sessionHeaders(await initialize(one.url));
    expect((await post(other.url, headers, LIST)).status).toBe(200);
    expect((await send(other.url, { method: "DELETE", headers })).status).toBe(200);
    for (const { url } of [one, other]) expect((await post(url, headers, LIST)).status).toBe(404);
  });

  test("nobody else and no token with fewer scopes may use it, at any server", async () => {
    const tokens = [entry("a", "alice"), entry("less", "alice", ["read"]), entry("b", "bob")];
    const { one, other } = await serveTwo({ authenticator: withTokens(...tokens) });
    const headers = sessionHeaders(await initialize(one.url, bearer("a")));
    for (const token of ["b", "less"]) {
      const refused = await post(other.url, { ...headers, ...bearer(token) }, LIST);
      const unknown = await post(other.url, { ...headers, ...bearer(token), "mcp-session-id": "x" }, LIST);
      expect([refused.status, refused.body]).toEqual([404, unknown.body]);
    }
    expect((await post(other.url, { ...headers, ...bearer("a") }, LIST)).status).toBe(200);
  });

  test("a token with more scopes takes it over at all servers", async () => {
    const tokens = [entry("a", "alice"), entry("less", "alice", ["read"])];
    const { one, other } = await serveTwo({ authenticator: withTokens(...tokens) });
    const headers = sessionHeaders(await initialize(one.url, bearer("less")));
    expect((await post(other.url, { ...headers, ...bearer("a") }, LIST)).status).toBe(200);
    expect((await post(one.url, { ...headers, ...bearer("less") }, LIST)).status).toBe(404);
  });

  test("the limit of a principal holds over all servers", async () => {
    const tokens = [entry("a", "alice"), entry("b", "bob")];
    const authenticator = withTokens(...tokens);
    const { one, other } = await serveTwo({ authenticator, sessionsPerPrincipal: 3 });
    const opened = await Promise.all([one, other, one, other].map(({ url }) => initialize(url, bearer("a"))));
    expect(opened.map(({ status }) => status).sort()).toEqual([200, 200, 200, 429]);
    expect((await initialize(one.url, bearer("b"))).status).toBe(200);
  });

  test("the limit of requests is counted over all servers", async () => {
    const { one, other } = await serveTwo({ requestsPerMinute: 200 });
    const statusAt = async (url: string) =>
      (await send(new URL("/nothing", url).href, { method: "GET" })).status;
    for (let n = 0; n < 200; n += 1) expect(await statusAt(one.url)).toBe(404);
    let allowed = 0;
    while ((await statusAt(other.url)) !== 429) {
      allowed += 1;
      await delay(50);
    }
    expect(allowed).toBeLessThan(150);
  });

  test("while the storage is gone, requests are told to come again", async () => {
    const openShared = async (): Promise<never> => {
      throw new StorageError("storage_io", "Postgres does not answer.");
    };
    const { one } = await serveTwo();
    const { other } = await serveTwo({ openShared });
    const headers = sessionHeaders(await initialize(one.url));
    const { status, body } = await post(other.url, headers, LIST);
    expect(status).toBe(503);
    expect(body).toContain("Try again in a moment.");
  });
});
