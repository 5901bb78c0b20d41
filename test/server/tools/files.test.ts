import { expect, test } from "vitest";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { snapshotFiles } from "../../../src/backends/runtime.ts";
import { calling, databaseFile, openServer, reach, startRun } from "../../runs/support.ts";
import { CLIENT_KINDS } from "../../support/clients.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { connectTo } from "../support.ts";

const at = new Date(0).toISOString();
const stored = (content: string, mimeType = "text/plain") => ({
  content,
  mimeType,
  created_at: at,
  modified_at: at,
});

test.each(CLIENT_KINDS)("%s: files are read as the agent reads them", async (kind) => {
  const png =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
  const files = {
    "/memories/a.md": stored("one\ntwo\nthree\n"),
    "/memories/p.png": { ...stored("", "image/png"), content: Buffer.from(png, "base64") },
  };
  const { service } = openServer(
    databaseFile(),
    { model: scriptedModel(() => ({ text: "ok" })) },
    { tree: () => Promise.resolve(new StateBackend({ files: snapshotFiles(files) })) },
  );
  const client = await connectTo(service, kind);
  const page = await client.call("read_agent_file", { path: "/memories/a.md", offset: 1, limit: 1 });
  expect(page.text).toBe("2\ttwo\n\n[lines 2-2 of 3; continue with offset=2]");
  expect(page.structured).toEqual({ path: "/memories/a.md", content: page.text });
  const missing = await client.call("read_agent_file", { path: "/memories/b.md" });
  expect(missing).toMatchObject({
    isError: true,
    text: expect.stringContaining("/memories/b.md' not found"),
  });
  expect((await client.call("read_agent_file", { path: "/../etc/passwd" })).isError).toBe(true);
  const image = await client.call("read_agent_file", { path: "/memories/p.png" });
  expect(image.raw).toMatchObject({
    content: [
      { type: "text", text: "/memories/p.png: image/png" },
      { type: "image", mimeType: "image/png", data: png },
    ],
  });
});

test.each(CLIENT_KINDS)("%s: files of a run are those of its thread", async (kind) => {
  const { service } = openServer(databaseFile(), {
    model: calling({ name: "write_file", args: { file_path: "/n.md", content: "mine" } }),
  });
  const run = await startRun(service, "write");
  await reach(service, run.id, "completed");
  const client = await connectTo(service, kind);
  expect((await client.call("read_agent_file", { path: "/n.md", run_id: run.id })).text).toContain("mine");
  expect((await client.call("read_agent_file", { path: "/n.md" })).isError).toBe(true);
});

test.each(CLIENT_KINDS)("%s: memories are found, or their absence is said", async (kind) => {
  const hits = [{ path: "/memories/a.md", snippet: "likes tea", score: 2 }];
  const { service } = openServer(
    databaseFile(),
    { model: scriptedModel(() => ({ text: "ok" })) },
    {
      searchMemories: (_principal, query) =>
        Promise.resolve(query === "tea" ? { hits } : { hits: [], note: "By words only." }),
    },
  );
  const client = await connectTo(service, kind);
  const found = await client.call("search_memories", { query: "tea" });
  expect(found).toMatchObject({ text: "/memories/a.md\nlikes tea", structured: { memories: hits } });
  const none = await client.call("search_memories", { query: "coffee" });
  expect(none).toMatchObject({ isError: false, structured: { memories: [], note: "By words only." } });
  expect(none.text).toMatch(/^No memory matches "coffee".*\n\nBy words only\.$/s);
});
