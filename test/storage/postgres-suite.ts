import { afterAll, beforeAll } from "vitest";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";

interface PostgresSuite {
  url(): string;
  newSchema(): string;
  /** A role that requests can be carried out as; its rights are those given to it. */
  newRole(attributes?: string): Promise<string>;
  /** Has `close` called before the server ends. */
  closeAtEnd(close: () => Promise<unknown>): void;
}

/** Starts a server for the tests of the file or `describe` that calls this. */
export function postgresSuite(): PostgresSuite {
  let server: PostgresServer | undefined;
  let schemas = 0;
  let roles = 0;
  const closing: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    // Each test has a pool of its own, which stays to the end.
    server = await startPostgres({ settings: { max_connections: "400" } });
  }, 60_000);
  afterAll(async () => {
    await Promise.all(closing.map((close) => close()));
    await server?.stop();
  });
  return {
    url: () => {
      if (server === undefined) throw new Error("The server of Postgres has not started yet.");
      return server.url;
    },
    newSchema: () => `test_${(schemas += 1)}`,
    newRole: async (attributes = "") => {
      const role = `role_${(roles += 1)}`;
      await server?.query(`CREATE ROLE ${role} NOLOGIN ${attributes}`);
      return role;
    },
    closeAtEnd: (close) => void closing.push(close),
  };
}
