import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { errorMessage } from "../../src/core/errors.ts";
import { silentLogger as logger } from "../../src/core/logger.ts";
import { openPostgres } from "../../src/storage/postgres/storage.ts";
import type { SharedStorage } from "../../src/storage/storage.ts";
import { TcpLink } from "../support/tcp-link.ts";
import { postgresSuite } from "./postgres-suite.ts";
import { type RunData, runRepositoryContract } from "./run-repository.contract.ts";
import { newsRepositoryContract } from "./news-repository.contract.ts";
import { childrenRepositoryContract } from "./children-repository.contract.ts";
import { scheduleRepositoryContract } from "./schedule-repository.contract.ts";

const tags = "postgres";
const ME = "me";

const { url, newSchema } = postgresSuite();

async function open(schema: string): Promise<SharedStorage> {
  const opened = await openPostgres({ url: url(), schema, connections: 3, logger });
  onTestFinished(() => opened.close());
  return opened;
}

/** Carries out a statement as somebody who manages the server. */
async function manage(sql: string): Promise<void> {
  const client = new pg.Client(url());
  await client.connect();
  await client.query(sql);
  await client.end();
}

const fresh = (number: number) => ({
  runId: `run_${number}`,
  newThreadId: `thr_${number}`,
  environment: "e",
  now: number,
});

const openData = async (): Promise<RunData> => {
  const schema = newSchema();
  const opened: SharedStorage[] = [];
  return {
    connect: async () => {
      const one = await openPostgres({ url: url(), schema, connections: 3, logger });
      opened.push(one);
      return one.runs;
    },
    close: async () => void (await Promise.all(opened.map((one) => one.close()))),
  };
};

runRepositoryContract("Postgres", openData, { tags });
scheduleRepositoryContract("Postgres", openData, { tags });
childrenRepositoryContract("Postgres", openData, { tags });
newsRepositoryContract("Postgres", openData, { tags });

test("servers that start at once make the tables once", { tags }, async () => {
  const schema = newSchema();
  const all = await Promise.all(Array.from({ length: 6 }, () => open(schema)));
  const made = await Promise.all(
    all.map(({ runs }, n) => runs.create(ME, { task: "work", idempotencyKey: "k" }, fresh(n))),
  );
  expect(made.map(({ kind }) => kind).toSorted()).toEqual(["created", ...Array(5).fill("existing")]);
});

test("a schema of a newer version is refused, and left as it is", { tags }, async () => {
  const schema = newSchema();
  await (await openPostgres({ url: url(), schema, logger })).close();
  const versions = `${schema}.schema_versions`;
  await manage(`UPDATE ${versions} SET version = 99`);
  await expect(openPostgres({ url: url(), schema, logger })).rejects.toMatchObject({
    code: "storage_newer",
  });
});

test("a text with a NUL is stored without it", { tags }, async () => {
  const { runs } = await open(newSchema());
  await runs.create(ME, { task: "a\0b" }, fresh(1));
  expect((await runs.read.run(ME, "run_1"))?.task).toBe("a\ufffdb");
});

test("every run is claimed once, by however many servers", { tags }, async () => {
  const schema = newSchema();
  const servers = await Promise.all(Array.from({ length: 4 }, () => open(schema)));
  for (let n = 0; n < 24; n += 1) await servers[0]!.runs.create(`p${n % 3}`, { task: "work" }, fresh(n));
  const claimed = await Promise.all(
    servers.map(async ({ runs }, owner) => {
      const mine: string[] = [];
      for (;;) {
        const request = { owner: `s${owner}`, environment: "e", now: 99, expiresAt: 999 };
        const claim = await runs.claimNext(request, 9);
        if (claim === undefined) return mine;
        mine.push(claim.run.id);
      }
    }),
  );
  expect(claimed.flat().toSorted()).toEqual(Array.from({ length: 24 }, (_, n) => `run_${n}`).toSorted());
});

test("a listener whose connection was cut hears again, and looks at what it missed", { tags }, async () => {
  const schema = newSchema();
  const [one, other] = [await open(schema), await open(schema)];
  const heard: string[] = [];
  let looks = 0;
  const failures: unknown[] = [];
  const watching = other.runs.watch(
    {
      changed: (runId) => void heard.push(runId),
      changedElsewhere: () => void (looks += 1),
      failed: (error) => void failures.push(error),
    },
    100,
  );
  onTestFinished(() => watching.close());
  await expect.poll(() => looks).toBeGreaterThan(0);
  await one.runs.create(ME, { task: "work" }, fresh(1));
  await expect.poll(() => heard).toEqual(["run_1"]);
  await manage("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()");
  const before = looks;
  await expect.poll(() => looks).toBeGreaterThan(before);
  expect(failures).not.toEqual([]);
  await expect
    .poll(async () => {
      await one.runs.cancel(ME, "run_1", "", 2).catch(() => undefined);
      await one.runs.create(ME, { task: "more" }, fresh(heard.length + 10)).catch(() => undefined);
      return heard.some((id) => id !== "run_1");
    })
    .toBe(true);
});

test("a server that is not there is said to be so, without its password", { tags }, async () => {
  const url = "postgres://somebody:secret-word@127.0.0.1:1/none";
  const failure: unknown = await openPostgres({ url, logger }).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: "storage_io" });
  expect(String(failure)).not.toContain("secret-word");
});

test("a pooler that lets no notification through is named, changes are seen", { tags }, async () => {
  const schema = newSchema();
  // As such a pooler does: it takes LISTEN, and hands the connection on.
  const link = await TcpLink.open(Number(new URL(url()).port), (sent) => {
    const text = sent.toString("latin1");
    const taken = text.replaceAll(/LISTEN \w+/g, (statement) => "SELECT 1".padEnd(statement.length));
    return Buffer.from(taken, "latin1");
  });
  onTestFinished(() => link.close());
  const { runs, close } = await openPostgres({ url: link.to(url()), schema, connections: 3, logger });
  onTestFinished(() => close());
  const failures: unknown[] = [];
  let looks = 0;
  const watching = runs.watch(
    {
      changed: () => {},
      changedElsewhere: () => void (looks += 1),
      failed: (error) => void failures.push(error),
    },
    100,
  );
  onTestFinished(() => watching.close());
  await expect.poll(() => failures.map(errorMessage).join()).toContain("pooler in transaction mode");
  expect(looks).toBeGreaterThan(1);
});
