/** How servers on one Postgres take runs: those that others hold, and those of a server that is gone. */
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { silentLogger as logger } from "../../src/core/logger.ts";
import type { RunListener } from "../../src/runs/ports.ts";
import { openPostgres } from "../../src/storage/postgres/storage.ts";
import { postgresSuite } from "../storage/postgres-suite.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { FAST, ME, databaseFile, mine, openServer } from "./support.ts";

const tags = "postgres";
const { url, newSchema } = postgresSuite();
const environment = "test";
const created = (number: number) => ({
  runId: `run_${number}`,
  newThreadId: `thr_${number}`,
  environment,
  now: 1,
});
const FOR_AN_HOUR = { environment, now: Date.now(), expiresAt: Date.now() + 3_600_000 };

async function open(schema: string) {
  const opened = await openPostgres({ url: url(), schema, connections: 3, logger });
  onTestFinished(() => opened.close());
  return opened.runs;
}

const listener = (owner: string): RunListener => ({
  owner,
  changed: () => {},
  changedElsewhere: () => {},
  failed: () => {},
});

async function client(): Promise<pg.Client> {
  const opened = new pg.Client(url());
  await opened.connect();
  onTestFinished(() => opened.end());
  return opened;
}

/** A server that looks on while `owner` has a lease of an hour. `looks`: how often it has seen the leases. */
async function lookingOn(owner: string) {
  const schema = newSchema();
  const [holder, own] = [await open(schema), await open(schema)];
  await holder.create(ME, { task: "say hello" }, created(1));
  const claim = await holder.claimNext({ ...FOR_AN_HOUR, owner }, 9);
  expect(claim?.run.id).toBe("run_1");
  let looks = 0;
  const leases: typeof own.leases = async () => {
    const found = await own.leases();
    looks += 1;
    return found;
  };
  const begin = (leaseMs = 600) => {
    const model = scriptedModel(() => ({ text: "hello" }));
    const timing = { ...FAST, leaseMs };
    return openServer(databaseFile(), { model }, { runs: { ...own, leases }, timing, environment }).service;
  };
  const isHeld = async () => (await own.leases()).some((lease) => lease.owner === owner);
  return { holder, own, begin, isHeld, looks: () => looks };
}

test("a run that another transaction holds keeps no other run waiting", { tags }, async () => {
  const schema = newSchema();
  const runs = await open(schema);
  for (const number of [1, 2]) await runs.create(ME, { task: "work" }, created(number));
  await runs.create("other", { task: "work" }, created(3));
  const stopped = await client();
  await stopped.query("BEGIN");
  await stopped.query(`SELECT 1 FROM ${schema}.runs WHERE id = 'run_1' FOR UPDATE`);
  const claim = async () => (await runs.claimNext({ ...FOR_AN_HOUR, owner: "me" }, 9))?.run.id;
  expect([await claim(), await claim()].toSorted()).toEqual(["run_2", "run_3"]);
  expect(await claim()).toBeUndefined();
  await stopped.query("ROLLBACK");
  expect(await claim()).toBe("run_1");
});

test("a claim takes the run that another transaction leaves in a moment", { tags }, async () => {
  const schema = newSchema();
  const runs = await open(schema);
  await runs.create(ME, { task: "work" }, created(1));
  const busy = await client();
  await busy.query("BEGIN");
  await busy.query(`SELECT 1 FROM ${schema}.runs WHERE id = 'run_1' FOR UPDATE`);
  const [claim] = await Promise.all([
    runs.claimNext({ ...FOR_AN_HOUR, owner: "me" }, 9),
    busy.query("COMMIT"),
  ]);
  expect(claim?.run.id).toBe("run_1");
});

test("a lease says whether its owner is connected", { tags }, async () => {
  const { holder, own } = await lookingOn("server_gone");
  const isConnected = async () => (await own.leases())[0]?.isConnected;
  expect(await isConnected()).toBe(false);
  const watching = holder.watch(listener("server_gone"), 100);
  await expect.poll(isConnected).toBe(true);
  watching.close();
  await expect.poll(isConnected).toBe(false);
});

test(
  "a server takes the run of one whose connection has ended, long before its lease has",
  { tags },
  async () => {
    const { holder, begin, isHeld, looks } = await lookingOn("server_gone");
    const watching = holder.watch(listener("server_gone"), 100);
    await expect.poll(async () => (await holder.leases())[0]?.isConnected).toBe(true);
    const service = begin();
    await expect.poll(looks).toBeGreaterThan(20);
    expect(await isHeld()).toBe(true);
    watching.close();
    await expect.poll(async () => (await mine(service).read.view("run_1"))?.run.status).toBe("completed");
  },
);

test("a server that renews its leases keeps them while it connects again", { tags }, async () => {
  const { holder, begin, isHeld, looks } = await lookingOn("server_back");
  let now = Date.now();
  const renewing = setInterval(() => {
    now += 1;
    void holder.renew("server_back", ["run_1"], now, now + 3_600_000);
  }, 20);
  onTestFinished(() => clearInterval(renewing));
  const watching = holder.watch(listener("server_back"), 100);
  await expect.poll(async () => (await holder.leases())[0]?.isConnected).toBe(true);
  begin(3000);
  await expect.poll(looks).toBeGreaterThan(20);
  watching.close();
  const before = looks();
  await expect.poll(looks).toBeGreaterThan(before + 120);
  expect(await isHeld()).toBe(true);
});

test(
  "a server of an earlier version, which is never seen connected, keeps its lease until it expires",
  { tags },
  async () => {
    const { begin, isHeld, looks } = await lookingOn("srv_of_an_earlier_version");
    begin();
    await expect.poll(looks).toBeGreaterThan(60);
    expect(await isHeld()).toBe(true);
  },
);
