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
  expect(page.text).toBe(
    "[lines 2-2 of 3; continue with offset=2]\n\n2\ttwo\n\n[lines 2-2 of 3; continue with offset=2]",
  );
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

test("a long file comes in pages that no client cuts, each with how to go on at both ends", async () => {
  const lines = Array.from({ length: 1113 }, (_, index) => `line ${index} ${"x".repeat(60)}`);
  const files = {
    "/memories/long.md": stored(lines.join("\n")),
    "/memories/wide.md": stored("y".repeat(30_000)),
  };
  const { service } = openServer(
    databaseFile(),
    { model: scriptedModel(() => ({ text: "ok" })) },
    { tree: () => Promise.resolve(new StateBackend({ files: snapshotFiles(files) })) },
  );
  const client = await connectTo(service, "v2-modern");
  const seen: string[] = [];
  for (let [args, pages]: [object, number] = [{ offset: 0 }, 0]; pages < 40; pages += 1) {
    const page = await client.call("read_agent_file", { path: "/memories/long.md", ...args });
    expect(page.text.length).toBeLessThan(9200);
    seen.push(...page.text.split("\n").filter((text) => text.includes("line ")));
    const [, offset] = /^\[lines .*; continue with offset=(\d+)\]\n/.exec(page.text) ?? [];
    if (offset === undefined) break;
    expect(page.text.endsWith(`continue with offset=${offset}]`)).toBe(true);
    args = { offset: Number(offset) };
  }
  expect(seen.map((text) => text.replace(/^\d*\t/, ""))).toEqual(lines);
  let [wide, piece] = [0, 0];
  for (let pages = 0; pages < 10; pages += 1) {
    const page = await client.call("read_agent_file", { path: "/memories/wide.md", piece });
    expect(page.text.length).toBeLessThan(9200);
    wide += page.text.split("y").length - 1;
    const [, next] =
      /^\[line 1 has 30000 characters in \d+ pieces; continue with offset=0 piece=(\d+),/.exec(page.text) ??
      [];
    if (next === undefined) break;
    piece = Number(next);
  }
  expect(wide).toBeGreaterThanOrEqual(30_000);
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
