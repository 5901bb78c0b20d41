// @module-tag long
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { integrityProblems, openDatabase } from "../../src/storage/sqlite/database.ts";
import { runIdOf, untilStatus, writeFile } from "../e2e/support.ts";
import type { TestClient } from "../support/clients.ts";
import { connect, openHome, openStdio, type Home, type HomeOptions } from "../support/harness.ts";
import { answersOf, play } from "../support/harness-brain.ts";
import { deferred } from "../support/harness-deferred.ts";
import { serveHttp } from "../support/harness-http-process.ts";
import { type Disk, mountDisk } from "./small-disk.ts";

const NO_SPACE = "There is no space left to write to deepagent.db. Free some disk space and try again.";

function openWith(env: Record<string, string>, think: HomeOptions["think"]): Promise<Home> {
  const settings = { DEEPAGENT_LOG_LEVEL: "warn", DEEPAGENT_APPROVALS_WRITE: "none" };
  return openHome({ think, env: { ...settings, ...env } });
}

/** Starts runs until one is refused; gives the others and the refusal. */
async function startUntilRefused(client: TestClient) {
  const acknowledged: string[] = [];
  for (;;) {
    const outcome = await client.call("run_deep_agent", { task: `Say hello ${"x".repeat(8000)}` });
    if (outcome.isError) return { acknowledged, refusal: outcome.text };
    acknowledged.push(runIdOf(outcome));
  }
}

/** Creates files until there can be no more; gives what takes them away. */
function takeInodes(folder: string): () => void {
  const made: string[] = [];
  try {
    for (;;) {
      const path = join(folder, `taken-${made.length}`);
      mkdirSync(path);
      made.push(path);
    }
  } catch {
    return () => made.forEach((path) => rmSync(path, { recursive: true }));
  }
}

describe("a disk that is full", { tags: "mount" }, () => {
  test.each([0, 200_000])("but for %d bytes: runs wait, new ones are refused, all goes on", async (left) => {
    const disk = mountDisk("size=12m");
    const asked = deferred();
    const go = deferred();
    const home = await openWith(
      { DEEPAGENT_DATA_DIR: join(disk.path, "data") },
      play({
        "Say hello": [{ text: "hello" }],
        "Write long": [
          { toolCalls: [writeFile("/workspace/a.md", "a\n")] },
          async () => {
            asked.resolve();
            await go.promise;
            return { toolCalls: [writeFile("/long.md", "x".repeat(400_000))] };
          },
          { toolCalls: [writeFile("/workspace/b.md", "b\n")] },
          { text: "written" },
        ],
      }),
    );
    const { child, connector } = await serveHttp(home);
    const client = await connect(connector, "v2-modern");
    const first = runIdOf(await client.call("run_deep_agent", { task: "Say hello" }));
    const long = client.call("run_deep_agent", { task: "Write long" });
    await asked.promise;
    disk.fill(left);
    go.resolve();
    await expect.poll(child.errors).toContain("run.waits_for_storage");
    const { acknowledged, refusal } = await startUntilRefused(client);
    expect(refusal).toBe(NO_SPACE);
    expect(await untilStatus(client, first, "completed")).toMatchObject({ answer: "hello" });
    disk.free();
    expect((await long).structured).toMatchObject({ status: "completed", answer: "written" });
    for (const id of acknowledged) await untilStatus(client, id, "completed");
    await client.call("run_deep_agent", { task: "Say hello again" });
    child.process.kill("SIGTERM");
    expect(await child.exited).toEqual({ code: 0, signal: null });
    expectSound(join(disk.path, "data"));
    expect(readdirSync(home.workspace).toSorted()).toEqual(["a.md", "b.md"]);
  });

  test("when the server is killed: the next one says so, and takes everything up when there is space", async () => {
    const disk = mountDisk("size=12m");
    const asked = deferred();
    let silent = true;
    const home = await openWith(
      { DEEPAGENT_DATA_DIR: join(disk.path, "data") },
      play({
        "Say hello": [
          () => {
            asked.resolve();
            return silent ? { fault: "hang" } : { text: "hello" };
          },
        ],
      }),
    );
    const { child, connector } = await serveHttp(home);
    const client = await connect(connector, "v2-legacy");
    const controller = new AbortController();
    client
      .call("run_deep_agent", { task: "Say hello", idempotency_key: "one" }, { signal: controller.signal })
      .catch(() => undefined);
    await asked.promise;
    disk.fill();
    child.process.kill("SIGKILL");
    await child.exited;
    controller.abort();
    silent = false;
    const next = await connect(await openStdio(home), "v2-modern");
    expect(await startUntilRefused(next)).toEqual({ acknowledged: [], refusal: NO_SPACE });
    disk.free();
    const found = await next.call("run_deep_agent", { task: "Say hello", idempotency_key: "one" });
    expect(await untilStatus(next, runIdOf(found), "completed")).toMatchObject({ answer: "hello" });
    await next.close();
    expectSound(join(disk.path, "data"));
  });

  test.each([
    ["bytes", (disk: Disk) => disk.fill()],
    ["files", (disk: Disk) => void takeInodes(disk.path)],
  ])("of %s, with the workspace: the agent is told, and no file is cut", async (_, fill) => {
    const disk = mountDisk("size=4m,nr_inodes=40");
    const kept = "kept\n".repeat(1000);
    writeFileSync(join(disk.path, "keep.md"), kept);
    const keep = { file_path: "/workspace/keep.md" };
    const home = await openWith(
      { DEEPAGENT_WORKSPACE: disk.path },
      play({
        Change: [
          { toolCalls: [{ name: "read_file", args: keep }] },
          {
            toolCalls: [
              writeFile("/workspace/new.md", "n".repeat(50_000)),
              {
                name: "edit_file",
                args: { ...keep, old_string: "kept", new_string: "k".repeat(500), replace_all: true },
              },
            ],
          },
          (thought) => ({
            text: answersOf(thought)
              .map(({ text }) => text)
              .join("\n"),
          }),
        ],
      }),
    );
    const client = await connect(await openStdio(home), "v2-modern");
    fill(disk);
    const { text } = await client.call("run_deep_agent", { task: "Change" });
    for (const file of ["new.md", "keep.md"]) {
      expect(text).toContain(`'/workspace/${file}' could not be accessed: no space left on the device`);
    }
    expect(readFileSync(join(disk.path, "keep.md"), "utf8")).toBe(kept);
    expect(readdirSync(disk.path)).not.toContain("new.md");
  });
});

/** Ways a data directory cannot be written to before there is anything in it, each with its end. */
const OBSTACLES: Record<string, { text: RegExp; begin: (disk: Disk) => () => void }> = {
  "a read-only disk": {
    text: /the file system is read-only/,
    begin: (disk) => {
      disk.remount("ro");
      return () => disk.remount("rw");
    },
  },
  "a full disk": {
    text: /no space left/,
    begin: (disk) => {
      disk.fill();
      return () => disk.free();
    },
  },
  "a disk of too many files": { text: /no space left/, begin: ({ path }) => takeInodes(path) },
  "a lock that another program does not give up": {
    text: /deepagent\.db stayed locked by another process/,
    begin: ({ path }) => {
      const other = openDatabase(join(path, "data", "deepagent.db"));
      other.pragma("locking_mode = EXCLUSIVE");
      other.exec("BEGIN EXCLUSIVE");
      return () => void other.close();
    },
  },
};

test.each(Object.entries(OBSTACLES))(
  "%s, when the server starts: calls say so, and work when that is over",
  { tags: ["mount", "long"] },
  async (_, { text, begin }) => {
    const disk = mountDisk("size=8m,nr_inodes=50");
    const end = begin(disk);
    const home = await openWith(
      { DEEPAGENT_DATA_DIR: join(disk.path, "data") },
      play({ "Say hello": [{ text: "hello" }] }),
    );
    const client = await connect(await openStdio(home), "v2-legacy");
    const refused = await client.call("run_deep_agent", { task: "Say hello" });
    expect([refused.isError, refused.text]).toEqual([true, expect.stringMatching(text)]);
    expect(refused.text).not.toContain(disk.path);
    end();
    const outcome = await client.call("run_deep_agent", { task: "Say hello" });
    expect(outcome.structured).toMatchObject({ status: "completed" });
  },
);

test.each(["deleted", "moved"])("a data directory %s in use: nothing more is acknowledged", async (how) => {
  const home = await openWith({}, play({ "Say hello": [{ text: "hello" }] }));
  const client = await connect(await openStdio(home), "v2-modern");
  const first = runIdOf(await client.call("run_deep_agent", { task: "Say hello" }));
  const elsewhere = `${home.dataDir}-elsewhere`;
  if (how === "moved") renameSync(home.dataDir, elsewhere);
  else rmSync(home.dataDir, { recursive: true });
  const refused = await client.call("run_deep_agent", { task: "Say hello" });
  expect(refused).toMatchObject({
    isError: true,
    text: "The database deepagent.db is no longer where it was opened: it was deleted, moved or replaced. Put it back, or restart the server.",
  });
  if (how === "moved") renameSync(elsewhere, home.dataDir);
  const after = how === "moved" ? client : await connect(await openStdio(home), "v2-modern");
  const again = await after.call("run_deep_agent", { task: "Say hello" });
  expect(again.structured).toMatchObject({ status: "completed" });
  if (how === "moved") await untilStatus(after, first, "completed");
});

test.each([
  ["an empty folder", "works", (base: string) => mkdirSync(join(base, "two"))],
  ["nothing", /a link on its path leads to a place that does not exist/, () => undefined],
  ["a file", /a part of its path is a file/, (base: string) => writeFileSync(join(base, "two"), "")],
  [
    "itself",
    /the links on its path lead in a circle/,
    (base: string) => symlinkSync("two", join(base, "two")),
  ],
])(
  "a link to the data directory that is turned to %s: nothing more is written until it is back or the server restarts",
  async (_name, after, prepare) => {
    const home = await openWith({}, play({ "Say hello": [{ text: "hello" }] }));
    const base = dirname(home.dataDir);
    const turnTo = (target: string): void => {
      rmSync(join(base, "way"), { force: true });
      symlinkSync(target, join(base, "way"));
    };
    mkdirSync(join(base, "one"));
    turnTo("one");
    const linked = { ...home, env: { ...home.env, DEEPAGENT_DATA_DIR: join(base, "way/data") } };
    const client = await connect(await openStdio(linked), "v2-modern");
    await client.call("run_deep_agent", { task: "Say hello" });
    prepare(base);
    turnTo("two");
    const refused = await client.call("run_deep_agent", { task: "Say hello" });
    expect(refused).toMatchObject({
      isError: true,
      text: "A link on the path of deepagent.db has changed its target since the server started. Point it back, or restart the server to use the files at the new target.",
    });
    const restarted = await connect(await openStdio(linked), "v2-modern");
    const outcome = await restarted.call("run_deep_agent", { task: "Say hello" });
    if (after === "works") expect(outcome.structured).toMatchObject({ status: "completed" });
    else expect([outcome.isError, outcome.text]).toEqual([true, expect.stringMatching(after)]);
    turnTo("one");
    const again = await client.call("run_deep_agent", { task: "Say hello" });
    expect(again.structured).toMatchObject({ status: "completed" });
  },
);

/** Root may write everywhere: then the server is somebody else. */
const NOBODY = 65_534;

test.each([
  ["empty", /permission was denied/],
  ["used", /deepagent\.db or its directory cannot be written to\. Check their permissions/],
])("a read-only data directory that is %s: calls say so, and work afterwards", async (state, text) => {
  const home = await openWith({}, play({ "Say hello": [{ text: "hello" }] }));
  const { dataDir } = home;
  mkdirSync(dataDir);
  const own = (path: string): void => {
    if (process.getuid?.() === 0) chownSync(path, NOBODY, NOBODY);
  };
  for (const path of [dirname(dataDir), home.workspace, dataDir]) own(path);
  const open = async () => connect(await openStdio(home, NOBODY), "v2-modern");
  if (state === "used") {
    const before = await open();
    await before.call("run_deep_agent", { task: "Say hello" });
    await before.close();
  }
  chmodSync(dataDir, 0o500);
  onTestFinished(() => chmodSync(dataDir, 0o700));
  const client = await open();
  const refused = await client.call("run_deep_agent", { task: "Say hello" });
  expect([refused.isError, refused.text]).toEqual([true, expect.stringMatching(text)]);
  expect(refused.text).not.toContain(dataDir);
  chmodSync(dataDir, 0o700);
  const outcome = await client.call("run_deep_agent", { task: "Say hello" });
  expect(outcome.structured).toMatchObject({ status: "completed" });
});

function expectSound(dataDir: string): void {
  for (const file of ["deepagent.db", "checkpoints.db"]) {
    const database = openDatabase(join(dataDir, file));
    expect(integrityProblems(database)).toEqual([]);
    database.close();
  }
}
