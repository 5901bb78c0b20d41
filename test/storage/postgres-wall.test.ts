import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { silentLogger as logger } from "../../src/core/logger.ts";
import { query } from "../../src/storage/postgres/engine.ts";
import { openPool } from "../../src/storage/postgres/pool.ts";
import { openPostgres } from "../../src/storage/postgres/storage.ts";
import { postgresSuite } from "./postgres-suite.ts";

const tags = "postgres";
const [ME, YOU] = ["me", "you"];
const { url, newSchema, newRole } = postgresSuite();

/** Two principals with a run, a checkpoint and a memory each, stored by a server with the wall. */
async function both(role: string) {
  const options = { url: url(), schema: newSchema(), connections: 3, role };
  const storage = await openPostgres({ ...options, logger });
  onTestFinished(() => storage.close());
  const agents = await storage.forAgents();
  for (const principal of [ME, YOU]) {
    const [runId, thread] = [`run_${principal}`, `thr_${principal}`];
    const fresh = { runId, newThreadId: thread, environment: "e", now: 1 };
    await storage.runs.create(principal, { task: `of ${principal}` }, fresh);
    const stores = agents.of(principal, ["memories", principal]);
    await stores.checkpointer.startOver(thread, { run: 1, claim: 1 });
    await stores.store.put(["memories", principal], "/note", { content: `of ${principal}` });
  }
  const { access } = await openPool(options);
  onTestFinished(() => access.pool.end());
  return { storage, agents, access };
}

/** Tables with a text of somebody, and where it says whose it is. */
const KEPT = [
  ["threads", "id"],
  ["runs", "id"],
  ["run_events", "run_id"],
  ["thread_fences", "thread_id"],
] as const;

test("a statement that forgets its principal sees and changes nothing of others", { tags }, async () => {
  const { access } = await both(await newRole());
  const mine = access.of(ME);
  for (const [table, column] of KEPT) {
    const rows = await query<{ owner: string }>(mine, `SELECT DISTINCT ${column} AS owner FROM ${table}`);
    expect([table, rows]).toEqual([table, [{ owner: expect.stringMatching(/_me$/) }]]);
    // What it can reach it can change: of rows of others there are none.
    const others = `SELECT ${column} FROM ${table} WHERE ${column} LIKE '%you' FOR UPDATE`;
    expect(await query(mine, others)).toEqual([]);
  }
  expect(await query(mine, "UPDATE runs SET task = 'taken' RETURNING id")).toEqual([{ id: "run_me" }]);
  const intruding =
    "INSERT INTO run_events (run_id, seq, time, agent, kind, data) VALUES ('run_you', 9, 1, '[]', 'warning', '{}')";
  await expect(query(mine, intruding)).rejects.toMatchObject({ code: "storage_readonly" });
  await expect(query(mine, "SELECT value FROM secrets")).rejects.toMatchObject({ code: "storage_readonly" });
  const near = access.within('"memories","me",');
  expect(await query(near, "SELECT value FROM store_items")).toEqual([{ value: '{"content":"of me"}' }]);
  expect(await query(near, "DELETE FROM store_items RETURNING key")).toHaveLength(1);
  // As the server it does see them, and what was changed.
  expect(await query(access, "SELECT task FROM runs ORDER BY id")).toEqual([
    { task: "taken" },
    { task: "of you" },
  ]);
  expect(await query(access, "SELECT value FROM store_items")).toEqual([{ value: '{"content":"of you"}' }]);
});

test("nobody is a principal without a name, and none outlives its transaction", { tags }, async () => {
  const { access } = await both(await newRole());
  expect(await query(access.of(""), "SELECT id FROM runs")).toEqual([]);
  expect(await query(access.within(""), "SELECT key FROM store_items")).toEqual([]);
  const hostile = `me' OR true; SET ROLE tester; --\0`;
  expect(await query(access.of(hostile), "SELECT id FROM runs")).toEqual([]);
  const client = await access.pool.connect();
  await client.query(`BEGIN; ${access.of(ME).confinement}; COMMIT`);
  const { rows } = await client.query(
    "SELECT current_setting('deepagent.principal') AS principal, current_user AS role",
  );
  client.release();
  expect(rows).toEqual([{ principal: "", role: "tester" }]);
});

test("an agent reaches neither thread nor memories of another principal", { tags }, async () => {
  const { agents } = await both(await newRole());
  const { checkpointer, store } = agents.of(ME, ["memories", ME]);
  await expect(checkpointer.startOver("thr_you", { run: 9, claim: 9 })).rejects.toThrow();
  expect(await store.get(["memories", YOU], "/note")).toBeNull();
  await expect(store.put(["memories", YOU], "/note", { content: "mine" })).rejects.toThrow();
  expect(await store.listNamespaces()).toEqual([["memories", ME]]);
});

test("a role that the policies do not bind is refused, a missing one is named", { tags }, async () => {
  const open = async (role: string) => openPool({ url: url(), schema: newSchema(), connections: 2, role });
  for (const attributes of ["SUPERUSER", "BYPASSRLS", "IN ROLE tester"]) {
    await expect(open(await newRole(attributes))).rejects.toThrow("does not bind");
  }
  await expect(open("nobody")).rejects.toThrow("CREATE ROLE nobody NOLOGIN; GRANT nobody TO tester");
});

test("a thread is copied for its principal alone, and only after it was noted", { tags }, async () => {
  const { agents, storage } = await both(await newRole());
  const { checkpointer } = agents.of(ME, []);
  const at = { configurable: { thread_id: "thr_me", checkpoint_ns: "" } };
  const { id } = emptyCheckpoint();
  await checkpointer.put(at, { ...emptyCheckpoint(), id }, { source: "loop", step: 1, parents: {} }, {});
  await expect(checkpointer.copyThread("thr_me", "thr_new", id)).rejects.toThrow();
  await storage.runs.beginCopy(YOU, "thr_yours", 1);
  await expect(checkpointer.copyThread("thr_me", "thr_yours", id)).rejects.toThrow();
  await storage.runs.beginCopy(ME, "thr_new", 1);
  expect(await checkpointer.copyThread("thr_me", "thr_new", id)).toBe(true);
  expect(await agents.of(YOU, []).checkpointer.copyThread("thr_me", "thr_yours", id)).toBe(false);
  expect(await agents.checkpointer.threads()).toEqual(["thr_me", "thr_new"]);
});

test("without a role nothing is confined, and there are no policies", { tags }, async () => {
  const schema = newSchema();
  const { access } = await openPool({ url: url(), schema, connections: 2 });
  onTestFinished(() => access.pool.end());
  expect(access.of(ME)).toBe(access);
  expect(access.within("x")).toBe(access);
  const policies = "SELECT 1 FROM pg_policies WHERE schemaname = @schema";
  expect(await query(access, policies, { schema })).toEqual([]);
});

test("sessions, limits and the queue have no policies", { tags }, async () => {
  const [schema, role] = [newSchema(), await newRole()];
  const storage = await openPostgres({ url: url(), schema, connections: 3, role, logger });
  onTestFinished(() => storage.close());
  const { access } = await openPool({ url: url(), schema, connections: 2 });
  onTestFinished(() => access.pool.end());
  const rows = await query(
    access,
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = @schema AND NOT rowsecurity",
    { schema },
  );
  const open = z
    .array(z.object({ name: z.string() }))
    .parse(rows)
    .map(({ name }) => name);
  expect(open).toEqual(expect.arrayContaining(["client_sessions", "rate_buckets", "stream_events"]));
  for (const walled of ["runs", "run_events", "threads", "checkpoints", "store_items"])
    expect(open).not.toContain(walled);
});
