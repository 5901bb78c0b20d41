import { Client } from "@modelcontextprotocol/client";
import { describe, expect, test } from "vitest";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { snapshotFiles } from "../../../src/backends/runtime.ts";
import type { RunService } from "../../../src/runs/service.ts";
import { runUri } from "../../../src/server/contracts/uris.ts";
import { cleanUpWith, databaseFile, openServer, startRun } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { depsFor, inMemory } from "../support.ts";

/** Runs that are never worked on, in the order of `resources/list`. */
async function started(service: RunService, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) ids.unshift((await startRun(service, `task ${n}`)).id);
  return ids;
}

const idle = () =>
  openServer(databaseFile(), { model: scriptedModel(() => ({ text: "" })) }, { concurrentRuns: 0 }).service;

async function connect(service: RunService, mode: "legacy" | "auto"): Promise<Client> {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(inMemory(depsFor(service)).modern());
  cleanUpWith(() => client.close());
  return client;
}

type Page = Awaited<ReturnType<Client["listResources"]>>;
const page = async (client: Client, cursor?: string): Promise<Page> =>
  client.request({ method: "resources/list", params: cursor === undefined ? {} : { cursor } });
const runsOf = ({ resources }: Page): string[] =>
  resources.map(({ uri }) => uri).filter((uri) => uri.startsWith("deepagent://runs/"));

describe.each(["legacy", "auto"] as const)("in mode %s", (mode) => {
  test("runs are listed in pages, newest first, beside the rest on the first", async () => {
    const service = idle();
    const ids = await started(service, 120);
    const client = await connect(service, mode);
    const first = await page(client);
    expect(first.resources.map(({ uri }) => uri)).toContain("ui://deepagent/run");
    const second = await page(client, first.nextCursor);
    // What is started in between shifts nothing.
    await startRun(service, "in between");
    const third = await page(client, second.nextCursor);
    expect([first, second, third].map((shown) => runsOf(shown).length)).toEqual([50, 50, 20]);
    expect([first, second, third].flatMap(runsOf)).toEqual(ids.map(runUri));
    expect(third.nextCursor).toBeUndefined();
    expect(second.resources).toHaveLength(50);
    expect(first.resources.find(({ name }) => name === ids[0])).toMatchObject({
      title: "task 119",
      mimeType: "application/json",
    });
    if (mode === "auto") expect(first).toMatchObject({ ttlMs: 0, cacheScope: "private" });
  });

  test.each(["", "x", "bnVsbA", Buffer.from('{"before":"r","listed":0}').toString("base64url")])(
    "the cursor %j is refused",
    async (cursor) => {
      const client = await connect(idle(), mode);
      await expect(page(client, cursor)).rejects.toMatchObject({ code: -32_602 });
    },
  );

  test("the pages end with the 500 newest runs", async () => {
    const service = idle();
    const ids = await started(service, 520);
    const client = await connect(service, mode);
    const shown: string[] = [];
    let cursor: string | undefined;
    do {
      const next = await page(client, cursor);
      shown.push(...runsOf(next));
      cursor = next.nextCursor;
    } while (cursor !== undefined);
    expect(shown).toEqual(ids.slice(0, 500).map(runUri));
  });

  test("memories are listed one by one, in pages behind the runs", async () => {
    const names = Array.from(
      { length: 70 },
      (_, index) => `/memories/note-${String(index).padStart(2, "0")}.md`,
    );
    const stored = { content: "x", mimeType: "text/markdown", created_at: "", modified_at: "" };
    const files = snapshotFiles(Object.fromEntries(names.map((path) => [path, stored])));
    const { service } = openServer(
      databaseFile(),
      { model: scriptedModel(() => ({ text: "" })) },
      { concurrentRuns: 0, tree: () => Promise.resolve(new StateBackend({ files })) },
    );
    const ids = await started(service, 20);
    const client = await connect(service, mode);
    const pages = [await page(client)];
    for (let next = pages[0]?.nextCursor; next !== undefined; next = pages.at(-1)?.nextCursor)
      pages.push(await page(client, next));
    const behind = pages.flatMap(({ resources }) => resources).map(({ uri }) => uri);
    const counted = behind.filter((uri) => /^deepagent:\/\/(runs|files\/memories\/note)/.test(uri));
    expect(counted).toEqual([...ids.map(runUri), ...names.map((path) => `deepagent://files${path}`)]);
    expect(pages).toHaveLength(2);
    const memory = pages.at(-1)?.resources.at(-1);
    expect(memory).toMatchObject({ name: "/memories/note-69.md", mimeType: "text/markdown" });
  });
});
