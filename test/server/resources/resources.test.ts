import { describe, expect, test } from "vitest";
import type { FileData } from "../../../src/backends/backend.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { snapshotFiles } from "../../../src/backends/runtime.ts";
import { createLogger } from "../../../src/core/logger.ts";
import type { ServerDeps } from "../../../src/server/contracts/deps.ts";
import { runUri } from "../../../src/server/contracts/uris.ts";
import {
  approve,
  calling,
  cleanUpWith,
  databaseFile,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "../../runs/support.ts";
import { CLIENT_KINDS, connectClient, type ClientKind, type TestClient } from "../../support/clients.ts";
import { deferred } from "../../support/harness-deferred.ts";
import { memoryConnector } from "../../support/harness-memory.ts";
import { scriptedSteps } from "../../support/scripted-model.ts";
import { depsFor } from "../support.ts";

const file = (content: string | Uint8Array, mimeType = "text/plain"): FileData => ({
  content,
  mimeType,
  created_at: "2026-01-01T00:00:00.000Z",
  modified_at: "2026-01-01T00:00:00.000Z",
});

const SECRET = "not for everyone";
const FILES = {
  "/workspace/read me.md": file("# Hello\n", "text/markdown"),
  "/workspace/100%25.txt": file("percent"),
  "/workspace/src/a.ts": file("export {};\n"),
  "/workspace/logo.png": file(new Uint8Array([137, 80, 78, 71, 0, 255]), "image/png"),
  "/memories/notes.md": file("remember"),
  "/memories/%2e%2e/odd.md": file(SECRET),
};

/** A server with shared files; its agent makes the note `a` when a person approves, and answers. */
async function open(kind: ClientKind, principal?: string, shared: Record<string, FileData> = FILES) {
  const tree = () => Promise.resolve(new StateBackend({ files: snapshotFiles(shared) }));
  const notes: string[] = [];
  const { service } = openServer(
    databaseFile(),
    { model: calling(note("a")), tools: [noteTool(notes)], interruptOn: { note: true } },
    { tree },
  );
  const deps = depsFor(service, principal === undefined ? {} : { principalOf: () => principal });
  return { service, client: await connect(deps, { kind }) };
}

async function connect(deps: ServerDeps, { kind }: { kind: ClientKind }): Promise<TestClient> {
  const client = await connectClient(memoryConnector(deps), { kind });
  cleanUpWith(() => client.close());
  return client;
}

const failure = (reading: Promise<unknown>): Promise<unknown> =>
  reading.then(
    () => "it was read",
    (error: unknown) => error,
  );

/** Revisions up to 2025-11-25 have a code of their own, which only the first SDK shows as it came. */
const notFound = (kind: ClientKind): number => (kind === "v1" ? -32_002 : -32_602);

describe.each(CLIENT_KINDS)("%s", (kind) => {
  test("lists the app, the top folders, the runs and the memories", async () => {
    const { client, service } = await open(kind);
    const run = await startRun(service, "note something");
    const uris = (await client.listResources()).map(({ uri }) => uri);
    expect(uris).toEqual([
      "deepagent://files/memories/",
      "deepagent://files/workspace/",
      "deepagent://graph",
      "ui://deepagent/run",
      runUri(run.id),
      "deepagent://files/memories/%252e%252e/odd.md",
      "deepagent://files/memories/notes.md",
    ]);
  });

  test("draws the agent's graph", async () => {
    const { client } = await open(kind);
    expect((await client.readResource("deepagent://graph")).contents).toEqual([
      { uri: "deepagent://graph", mimeType: "text/vnd.mermaid", text: "graph TD;" },
    ]);
  });

  test("reads text, bytes and folders", async () => {
    const { client } = await open(kind);
    const read = async (uri: string) => (await client.readResource(uri)).contents[0];
    expect(await read("deepagent://files/workspace/read%20me.md")).toEqual({
      uri: "deepagent://files/workspace/read%20me.md",
      mimeType: "text/markdown",
      text: "# Hello\n",
    });
    expect(await read("deepagent://files/workspace/logo.png")).toMatchObject({
      mimeType: "image/png",
      blob: Buffer.from([137, 80, 78, 71, 0, 255]).toString("base64"),
    });
    for (const uri of ["deepagent://files/workspace", "deepagent://files/workspace/"]) {
      const listed = await read(uri);
      expect(listed).toMatchObject({ mimeType: "inode/directory" });
      expect(String(listed?.["text"]).split("\n")).toEqual([
        "deepagent://files/workspace/100%2525.txt",
        "deepagent://files/workspace/logo.png",
        "deepagent://files/workspace/read%20me.md",
        "deepagent://files/workspace/src/",
      ]);
    }
    expect(await read("deepagent://files/workspace/100%2525.txt")).toMatchObject({ text: "percent" });
  });

  test.each([
    "deepagent://files/workspace/none.md",
    "deepagent://files/workspace/%2e%2e%2f%2e%2e%2fetc/passwd",
    "deepagent://files/workspace/..%2F..%2Fetc%2Fpasswd",
    "deepagent://files/memories/%252e%252e/none.md",
    "deepagent://files/workspace/%zz",
    "deepagent://files/workspace/a%00b",
    "deepagent://runs/run_unknown",
    "deepagent://runs/run_unknown/report",
    "deepagent://runs/run_unknown/files/workspace/x",
    "deepagent://nothing/here",
  ])("does not find %s", async (uri) => {
    const { client } = await open(kind);
    expect(await failure(client.readResource(uri))).toMatchObject({
      code: notFound(kind),
      message: expect.stringContaining(`Resource not found: ${uri}`) as string,
      data: { uri },
    });
  });

  test("decodes a path once, not twice", async () => {
    const { client } = await open(kind);
    const { contents } = await client.readResource("deepagent://files/memories/%252e%252e/odd.md");
    expect(contents[0]).toMatchObject({ text: SECRET });
  });

  test("shows a run while it waits and after it ended", async () => {
    const { client, service } = await open(kind);
    const { id } = await startRun(service, "note something");
    await reach(service, id, "input_required");
    const text = async (view = "") => {
      const { contents, ...hints } = await client.readResource(`${runUri(id)}${view}`);
      return { text: String(contents[0]?.["text"]), type: contents[0]?.["mimeType"], hints };
    };
    const waiting = await text();
    expect(JSON.parse(waiting.text)).toMatchObject({
      run_id: id,
      status: "input_required",
      task: "note something",
      approvals: [{ tool: "note", status: "pending", decisions: ["approve", "edit", "reject"] }],
    });
    expect((await text("/report")).text).toContain("has not ended (input_required)");

    await approve(service, id, "a");
    await reach(service, id, "completed");
    const ended = await text();
    expect(JSON.parse(ended.text)).toMatchObject({
      status: "completed",
      answer: "noted a",
      approvals: [{ status: "approved", decided_by: "test" }],
    });
    expect(await text("/report")).toMatchObject({ text: "noted a", type: "text/markdown" });
    expect(JSON.parse((await text("/todos")).text)).toEqual([]);
    const events = (await text("/events")).text.trimEnd().split("\n");
    const parsed = events.map((line) => JSON.parse(line) as { seq: number; kind: string });
    expect(parsed.map(({ seq }) => seq)).toEqual(parsed.map((_event, index) => index + 1));
    expect(parsed[0]).toMatchObject({ kind: "run_started", agent: "main agent" });
    expect(parsed.at(-1)).toMatchObject({ kind: "run_completed" });
    for (const after of [0, 1, parsed.length - 1, parsed.length, 1e6]) {
      expect((await text(`/events?after=${after}`)).text).toBe(
        events
          .slice(after)
          .map((line) => `${line}\n`)
          .join(""),
      );
    }
    for (const after of ["", "-1", "x", "1.5", "1&b=2"]) {
      const uri = `${runUri(id)}/events?after=${after}`;
      expect(await failure(client.readResource(uri))).toMatchObject({ code: notFound(kind) });
    }
    if (kind === "v2-modern") {
      expect(waiting.hints).toMatchObject({ ttlMs: 0, cacheScope: "private" });
      expect(ended.hints).toMatchObject({ ttlMs: 86_400_000, cacheScope: "private" });
    }
  });

  test("a run of somebody else looks like one that never was", async () => {
    const { client, service } = await open(kind, "somebody-else");
    const { id } = await startRun(service, "note something");
    for (const view of ["", "/report", "/events", "/events?after=0", "/todos", "/files/a.md"]) {
      const foreign = await failure(client.readResource(`${runUri(id)}${view}`));
      const unknown = await failure(client.readResource(`${runUri("run_none")}${view}`));
      expect(String(foreign).replaceAll(id, "run_none")).toBe(String(unknown));
      expect(foreign).toMatchObject({ code: notFound(kind) });
    }
    expect((await client.listResources()).map(({ name }) => name)).not.toContain(id);
    expect(await client.complete("deepagent://runs/{run_id}", "run_id", "")).toEqual([]);
  });

  test("completes paths and run ids", async () => {
    const { client, service } = await open(kind);
    const { id } = await startRun(service, "note something");
    const files = (typed: string) => client.complete("deepagent://files/{+path}", "path", typed);
    expect(await files("")).toEqual(["memories/", "workspace/"]);
    expect(await files("wor")).toEqual(["workspace/"]);
    expect(await files("workspace/s")).toEqual(["workspace/src/"]);
    expect(await files("workspace/../")).toEqual([]);
    expect(await files("none/")).toEqual([]);
    expect(await client.complete("deepagent://runs/{run_id}", "run_id", id.slice(0, 6))).toEqual([id]);
    expect(await client.complete("deepagent://runs/{run_id}/todos", "run_id", "x")).toEqual([]);
  });

  test("tells who asked about changes of a run until they stop asking", async () => {
    const { client, service } = await open(kind);
    const watched = await startRun(service, "note something");
    const other = await startRun(service, "note something else");
    await reach(service, watched.id, "input_required");
    const uri = `${runUri(watched.id)}/report`;
    const stop = await client.watch(uri);
    await approve(service, watched.id, "a");
    await reach(service, watched.id, "completed");
    await expect.poll(() => client.updates).toContain(uri);
    await stop();
    const count = client.updates.length;
    await reach(service, other.id, "input_required");
    await approve(service, other.id, "a");
    await reach(service, other.id, "completed");
    await client.listResources();
    expect(client.updates).toHaveLength(count);
  });

  test("tells that the list has grown when a call starts a run", async () => {
    const { client } = await open(kind);
    await client.watch("deepagent://files/workspace/read%20me.md");
    await client.call("run_deep_agent", { task: "note something" });
    await expect.poll(() => client.updates).toContain("*");
  });
});

test.each(["v1", "v2-legacy"] as const)("%s: subscribing to a run needs one's own", async (kind) => {
  const { client, service } = await open(kind, "somebody-else");
  const { id } = await startRun(service, "note something");
  const foreign = await failure(client.watch(runUri(id)));
  const unknown = await failure(client.watch(runUri("run_none")));
  expect(String(foreign).replaceAll(id, "run_none")).toBe(String(unknown));
  expect(foreign).toMatchObject({ code: notFound(kind), data: { uri: runUri(id) } });
});

test("tells which files a run changed, in its thread and in the shared tree", async () => {
  const wrote = deferred();
  const steps = [
    { toolCalls: [{ name: "write_file", args: { file_path: "/memories/a b.md", content: "x" } }] },
    async () => {
      await wrote.promise;
      return { text: "done" };
    },
  ];
  const { service } = openServer(databaseFile(), { model: scriptedSteps(steps) });
  const deps = depsFor(service);
  const client = await connect(deps, { kind: "v1" });
  const uri = "deepagent://files/memories/a%20b.md";
  await client.watch(uri);
  const calling = client.call("run_deep_agent", { task: "write" });
  await expect.poll(() => client.updates).toContain(uri);
  wrote.resolve();
  const { structured } = await calling;
  const inRun = `${runUri(String(structured["run_id"]))}/files/memories/a%20b.md`;
  expect((await client.readResource(inRun)).contents[0]).toMatchObject({ uri: inRun, text: "x" });
});

test("a file that is too large to be one message is read in pages", async () => {
  const files = { "/workspace/long.txt": file("x".repeat(3_000_000)), "/workspace/short.txt": file("short") };
  const { service } = openServer(
    databaseFile(),
    { model: calling(note("a")) },
    { tree: () => Promise.resolve(new StateBackend({ files: snapshotFiles(files) })) },
  );
  const client = await connect(depsFor(service), { kind: "v2-modern" });
  const uri = "deepagent://files/workspace/long.txt";
  await expect(client.readResource(uri)).rejects.toThrow(
    `${uri} is too large to be read as a resource. Read it in pages with read_agent_file.`,
  );
  expect(await client.readResource("deepagent://files/workspace/short.txt")).toMatchObject({
    contents: [{ text: "short" }],
  });
});

test("what goes wrong inside stays in the log", async () => {
  const lines: string[] = [];
  const deps: ServerDeps = {
    ...depsFor(() => Promise.reject(new Error("SQLITE_CORRUPT at /home/somebody/data"))),
    logger: createLogger("error", (line) => void lines.push(line)),
  };
  const client = await connect(deps, { kind: "v2-modern" });
  for (const ask of [
    () => client.readResource("deepagent://runs/run_1"),
    () => client.readResource("deepagent://files/workspace/a.md"),
    () => client.listResources(),
    () => client.complete("deepagent://files/{+path}", "path", "wor"),
  ]) {
    const error = String(await failure(ask()));
    expect(error).toContain("failed unexpectedly");
    expect(error).not.toContain("somebody");
    const reference = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(error)?.[0] ?? "none";
    expect(lines.join("")).toContain(reference);
  }
});

test("nothing is loaded before a client asks for it", async () => {
  let opened = 0;
  const deps = depsFor(() => {
    opened += 1;
    return Promise.reject(new Error("no storage here"));
  });
  const client = await connect(deps, { kind: "v2-modern" });
  await client.listTools();
  expect(opened).toBe(0);
  await failure(client.listResources());
  expect(opened).toBe(1);
});
