import { EventEmitter, once } from "node:events";
import { PassThrough, Writable } from "node:stream";
import { expect, onTestFinished, test, vi } from "vitest";
import type { RunService } from "../../src/runs/service.ts";
import { lazyRuns, type ServerDeps } from "../../src/server/contracts/deps.ts";
import { serveStdioServer, type StdioOptions } from "../../src/server/stdio/stdio.ts";
import { databaseFile, ME, openServer, reach } from "../runs/support.ts";
import { deferred } from "../support/harness-deferred.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { depsFor } from "./support.ts";

const INITIALIZE = {
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } },
};
const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

/** A server on streams of the test, and the client's end of them. */
function serve(deps: ServerDeps, options: Partial<StdioOptions> = {}) {
  const stdin = new PassThrough();
  const stdout = new PassThrough();
  const signals = new EventEmitter();
  const closes: string[] = [];
  const server = serveStdioServer(deps, {
    stdin,
    stdout,
    stderr: new PassThrough(),
    signals,
    close: async () => void closes.push("closed"),
    ...options,
  });
  const lines: string[] = [];
  const arrived = new EventEmitter();
  let rest = "";
  stdout.setEncoding("utf8").on("data", (chunk: string) => {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts);
    arrived.emit("line");
  });
  let id = 0;
  const request = async (message: object): Promise<Record<string, unknown>> => {
    id += 1;
    const own = id;
    stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: own, ...message })}\n`);
    for (;;) {
      const found = lines
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .find((line) => line["id"] === own);
      if (found) return found;
      await once(arrived, "line");
    }
  };
  return { server, stdin, stdout, signals, closes, lines, request };
}

const noRuns = (): Promise<RunService> => Promise.reject(new Error("no runs here"));

test("the handshake is answered without runs; they are loaded after it, when the client is quiet", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  let opened = 0;
  const deps = depsFor(async () => {
    opened += 1;
    return noRuns();
  });
  const { request, server } = serve(deps);
  vi.advanceTimersByTime(60_000);
  expect(await request(INITIALIZE)).toMatchObject({ result: { serverInfo: { name: "deepagent-mcp" } } });
  vi.advanceTimersByTime(150);
  await request({ method: "tools/list" });
  vi.advanceTimersByTime(150);
  expect(opened).toBe(0);
  vi.advanceTimersByTime(50);
  expect(opened).toBe(1);
  await request({ method: "tools/list" });
  vi.advanceTimersByTime(60_000);
  expect(opened).toBe(1);
  await server.close();
});

test("a probe by server/discover is answered, and so is the handshake after it", async () => {
  const { request, server, lines } = serve(depsFor(noRuns));
  const discovered = await request({ method: "server/discover", params: { _meta: META } });
  expect(discovered).toMatchObject({ result: { supportedVersions: expect.arrayContaining(["2026-07-28"]) } });
  expect(await request(INITIALIZE)).toMatchObject({ result: { protocolVersion: "2025-11-25" } });
  expect(lines.every((line) => "jsonrpc" in (JSON.parse(line) as object))).toBe(true);
  await server.close();
});

test("the end of input closes everything once and gives the reason", async () => {
  const { request, server, stdin, closes, signals } = serve(depsFor(noRuns));
  await request(INITIALIZE);
  stdin.end();
  expect(await server.closed).toBe("the client closed the connection");
  expect(closes).toEqual(["closed"]);
  expect(signals.listenerCount("SIGINT") + signals.listenerCount("SIGTERM")).toBe(0);
  await server.close();
  expect(closes).toEqual(["closed"]);
});

test.each(["SIGINT", "SIGTERM"])("%s closes everything", async (signal) => {
  const { request, server, closes, signals } = serve(depsFor(noRuns));
  await request(INITIALIZE);
  signals.emit(signal, signal);
  expect(await server.closed).toBe(signal);
  expect(closes).toEqual(["closed"]);
});

test("signals before any message, and both at once, close it once", async () => {
  const { server, closes, signals, stdin } = serve(depsFor(noRuns));
  signals.emit("SIGTERM", "SIGTERM");
  stdin.end();
  expect(await server.closed).toBe("SIGTERM");
  expect(closes).toEqual(["closed"]);
});

test("a release that hangs or fails does not keep the server", async () => {
  const hanging = serve(depsFor(noRuns), { close: () => new Promise<never>(() => {}) });
  const failing = serve(depsFor(noRuns), { close: () => Promise.reject(new Error("disk full")) });
  hanging.stdin.end();
  failing.stdin.end();
  await Promise.all([hanging.server.closed, failing.server.closed]);
});

test("a client that stops reading ends the server without an exception", async () => {
  const stdout = new Writable({
    write: (_chunk, _encoding, done) => done(Object.assign(new Error("write EPIPE"), { code: "EPIPE" })),
  });
  const { server, stdin } = serve(depsFor(noRuns), { stdout });
  stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, ...INITIALIZE })}\n`);
  expect(await server.closed).toBe("the client closed the connection");
});

test("a broken line is answered without an id, and the next one is served", async () => {
  const { request, server, stdin, lines } = serve(depsFor(noRuns));
  stdin.write("this is no JSON\n");
  expect(await request(INITIALIZE)).toMatchObject({ result: {} });
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ id: null, error: { code: -32_700 } });
  await server.close();
});

test("a run in progress is parked when the client leaves, and found again", async () => {
  const file = databaseFile();
  const thinking = deferred();
  const model = scriptedModel(async () => {
    await thinking.promise;
    return { text: "done" };
  });
  const first = openServer(file, { model });
  const runs = lazyRuns(() => Promise.resolve(first.service));
  const { request, server, stdin } = serve(depsFor(runs.runs), { close: runs.close });
  await request(INITIALIZE);
  const args = { name: "run_deep_agent", arguments: { task: "x", wait_seconds: 0 } };
  const { result } = await request({ method: "tools/call", params: args });
  const { run_id: id } = (result as { structuredContent: { run_id: string } }).structuredContent;
  stdin.end();
  await server.closed;
  await expect(runs.runs()).rejects.toThrow("shutting down");
  const second = openServer(file, { model: scriptedModel(() => ({ text: "done later" })) });
  expect((await reach(second.service, id, "completed")).run).toMatchObject({
    answer: "done later",
    principal: ME,
  });
});
