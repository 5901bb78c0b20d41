import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  PostgresFiles,
  type PostgresPool,
  PostgresBackend,
  type PostgresBackendOptions,
} from "../../../src/backends/stores/postgres.ts";
import { ConfigurationError } from "../../../src/core/errors.ts";
import { freePort } from "../../support/free-port.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";

const at = "2026-01-01T00:00:00.000Z";
const text = (content: string) => ({ content, mimeType: "text/plain", created_at: at, modified_at: at });

describe("PostgresBackend", { tags: "postgres" }, () => {
  let server: PostgresServer;
  let pool: pg.Pool;
  beforeAll(async () => {
    server = await startPostgres();
    pool = new pg.Pool({ connectionString: server.url });
    // The server stops while connections of the pool are still being closed.
    pool.on("error", () => {});
  });
  afterAll(async () => {
    await pool.end();
    await server.stop();
  });

  /** The failure of a read with these options. */
  const failure = async (options: PostgresBackendOptions): Promise<unknown> => {
    const backend = new PostgresBackend(options);
    const { error, code, cause } = await backend.read("/a.txt");
    await backend.close();
    expect(code).toBe("backend_error");
    expect(cause).toBeInstanceOf(Error);
    return error;
  };

  it("declares that writes compare and set", () => {
    expect(new PostgresBackend().capabilities).toMatchObject({
      writes: "compare-and-set",
      lifetime: "persistent",
    });
  });

  it("stores a file only over what was expected", async () => {
    const place = { table: "cas", prefix: "", maxBytes: 1000, connectionString: undefined, load: undefined };
    const [ours, theirs] = [new PostgresFiles({ ...place, pool }), new PostgresFiles({ ...place, pool })];
    expect(await ours.put("/a", text("one"), "absent")).toBe(true);
    expect(await theirs.put("/a", text("two"), "absent")).toBe(false);
    const { version = "" } = (await theirs.get("/a")) ?? {};
    expect(await ours.put("/a", text("three"), { version })).toBe(true);
    expect(await theirs.put("/a", text("four"), { version })).toBe(false);
    const last = (await theirs.get("/a"))?.version ?? "";
    await ours.remove("/a");
    expect(await theirs.put("/a", text("five"), { version: last })).toBe(false);
    expect(await ours.put("/a", text("three"), "absent")).toBe(true);
    expect(await theirs.put("/a", text("six"), { version: last })).toBe(false);
    expect((await ours.get("/a"))?.data.content).toBe("three");
  });

  it("keeps prefixes and tables apart, and shares a table", async () => {
    const open = (options: PostgresBackendOptions) =>
      new PostgresBackend({ pool, table: "apart", ...options });
    await open({ prefix: "/team-a" }).write("/a.txt", "a");
    expect((await open({ prefix: "team-a/" }).read("/a.txt")).content).toBe("a");
    expect((await open({}).read("/team-a/a.txt")).content).toBe("a");
    expect((await open({ prefix: "/team" }).ls("/")).files).toEqual([]);
    expect((await open({ table: "public.others" }).ls("/")).files).toEqual([]);
  });

  it("reads of a folder what is below it, and nothing of its neighbours", async () => {
    const rows: number[] = [];
    const noting: PostgresPool = {
      query: async (...args) => {
        const result = await pool.query(...args);
        rows.push(result.rows.length);
        return result;
      },
    };
    const backend = new PostgresBackend({ pool: noting, table: "noted" });
    await backend.write("/a/one.txt", "needle");
    await backend.write("/a/deep/er/two.md", "needle");
    for (const name of ["/a.txt", "/a0/x.txt", "/ab/x.txt", "/b/x.txt"]) await backend.write(name, "needle");
    const rowsOf = async (run: () => unknown): Promise<number> => {
      rows.length = 0;
      await run();
      return rows.reduce((sum, count) => sum + count, 0);
    };
    expect(await rowsOf(() => backend.ls("/a"))).toBe(2);
    expect(await rowsOf(() => backend.glob("**", "/a"))).toBe(2);
    // Two names, and the content of one file.
    expect(await rowsOf(() => backend.grep("needle", "/a", "*.md"))).toBe(3);
  });

  it("refuses files over the limit and passes them over in searches", async () => {
    const open = (maxFileSizeMb: number) => new PostgresBackend({ pool, table: "large", maxFileSizeMb });
    await open(2).write("/large.txt", "needle".padEnd(1_500_000, "."));
    expect(await open(1).read("/large.txt")).toMatchObject({ code: "too_large" });
    expect(await open(1).write("/b.txt", "x".repeat(1_500_000))).toMatchObject({ code: "too_large" });
    expect(await open(1).grep("needle")).toMatchObject({ matches: [], skipped: 1 });
    expect((await open(1).ls("/")).files).toMatchObject([{ path: "/large.txt", size: 1_500_000 }]);
  });

  it("leaves a table alone that has other columns", async () => {
    await pool.query("create table invoices (path text primary key, content bytea, version int)");
    await pool.query("insert into invoices values ('/a.txt', 'mine', 1)");
    expect(await failure({ connectionString: server.url, table: "invoices" })).toBe(
      "'/a.txt' could not be accessed: the table invoices exists with other columns: it lacks content text, encoding text, size bigint, version uuid, created_at timestamp with time zone, modified_at timestamp with time zone; choose another name with the option table",
    );
    expect((await pool.query("select * from invoices")).rows).toMatchObject([{ path: "/a.txt", version: 1 }]);
  });

  it("makes its table once, however many processes begin", async () => {
    const backends = Array.from({ length: 8 }, () => new PostgresBackend({ pool, table: "begun" }));
    const written = await Promise.all(backends.map((backend, index) => backend.write(`/${index}.txt`, "x")));
    expect(written.map(({ error }) => error)).toEqual(backends.map(() => undefined));
  });

  it("says what is wrong with the connection, without secrets", async () => {
    const url = (change: (url: URL) => void): string => {
      const changed = new URL(server.url);
      change(changed);
      return changed.href;
    };
    const nobody = await freePort();
    expect(await failure({ connectionString: url((to) => (to.password = "wr0ng-secret")) })).toBe(
      "'/a.txt' could not be accessed: the Postgres server refuses this user or password; check the connection settings",
    );
    expect(await failure({ connectionString: url((to) => (to.pathname = "/nowhere")) })).toBe(
      "'/a.txt' could not be accessed: the database does not exist; check the connection settings",
    );
    expect(await failure({ connectionString: url((to) => (to.port = String(nobody))) })).toBe(
      "'/a.txt' could not be accessed: the Postgres server cannot be reached (ECONNREFUSED); check that it runs and that the connection settings are right",
    );
    await pool.query("create role guest login password 'guest'");
    await pool.query("revoke create on schema public from public");
    const guest = url((to) => Object.assign(to, { username: "guest", password: "guest" }));
    expect(await failure({ connectionString: guest, table: "of_guest" })).toBe(
      "'/a.txt' could not be accessed: the Postgres user lacks permission for the table or its schema; grant it or choose another table",
    );
  });

  it("works again when what failed is mended", async () => {
    let isInstalled = false;
    const load = (name: string): Promise<unknown> =>
      isInstalled ? import(name) : Promise.reject(new Error(`Cannot find package '${name}'`));
    const backend = new PostgresBackend({ connectionString: server.url, table: "mended", load });
    expect((await backend.write("/a.txt", "a")).error).toBe(
      "'/a.txt' could not be accessed: PostgresBackend needs the package pg, which is not installed: run npm install pg@8.23.1",
    );
    isInstalled = true;
    expect((await backend.write("/a.txt", "a")).error).toBeUndefined();
    await backend.close();
  });

  it("leaves a pool to whoever made it", async () => {
    const backend = new PostgresBackend({ pool });
    await backend.ls("/");
    await backend.close();
    expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  });
});

it.each<[string, PostgresBackendOptions]>([
  ["a table that is no name", { table: 'files"; drop table runs; --' }],
  ["a prefix that climbs", { prefix: "../other" }],
  ["two ways to connect", { connectionString: "postgres://h/d", pool: { query: () => Promise.reject() } }],
  ["a limit of nothing", { maxFileSizeMb: 0 }],
])("the options of PostgresBackend refuse %s", (_what, options) => {
  expect(() => new PostgresBackend(options)).toThrow(ConfigurationError);
});
