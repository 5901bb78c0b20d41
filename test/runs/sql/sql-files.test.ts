import { readFileSync, readdirSync } from "node:fs";
import { expect, it } from "vitest";
import { readQueries } from "../../../src/runs/sql/sql-files.ts";

const QUERIES = `-- A file of queries.

-- Query: one
-- What it is for.
SELECT 1 -- the first number

-- Query: two
SELECT 2
`;

it("finds queries by their names, without the comments before them", () => {
  const sql = readQueries(QUERIES);
  expect(sql("one")).toBe("SELECT 1 -- the first number");
  expect(sql("two")).toBe("SELECT 2");
  expect(() => sql("three")).toThrow('The file has no query "three".');
});

it.each(["sqlite", "postgres"])("%s: each query that the checkpointer names exists", (folder) => {
  const place = `src/storage/${folder}/checkpoints`;
  const sql = readQueries(readFileSync(`${place}/queries.sql`, "utf8"));
  const sources = readdirSync(place).filter((name) => name.endsWith(".ts"));
  const names = sources.flatMap((name) =>
    Array.from(
      readFileSync(`${place}/${name}`, "utf8").matchAll(/\bsql\("([^"]+)"\)/g),
      ([, query]) => query,
    ),
  );
  expect(names.length).toBeGreaterThan(10);
  for (const name of names) expect(sql(name ?? "")).not.toBe("");
});
