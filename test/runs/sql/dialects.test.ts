import { expect, it } from "vitest";
import { inPostgres, inSqlite } from "../../../src/runs/sql/dialects.ts";

it.each([
  ["a = @one AND b = @two AND c = @one", "a = ? AND b = ? AND c = ?", ["one", "two", "one"]],
  ["SELECT 1 FROM t WHERE id = @id FOR UPDATE", "SELECT 1 FROM t WHERE id = ?", ["id"]],
  ["id IN (SELECT id FROM t LIMIT 1 FOR UPDATE SKIP LOCKED)", "id IN (SELECT id FROM t LIMIT 1)", []],
  ["SELECT 1 FROM t FOR SHARE", "SELECT 1 FROM t", []],
  ["FROM t INDEXED BY t_place", "FROM t INDEXED BY t_place", []],
  ["IN (SELECT value FROM json_each(@ids))", "IN (SELECT value FROM json_each(?))", ["ids"]],
])("SQLite reads %s as %s", (sql, text, names) => {
  expect(inSqlite(sql)).toEqual({ text, names });
});

it.each([
  ["a = @one AND b = @two AND c = @one", "a = $1 AND b = $2 AND c = $1", ["one", "two"]],
  ["SELECT 1 FROM t WHERE id = @id FOR UPDATE", "SELECT 1 FROM t WHERE id = $1 FOR UPDATE", ["id"]],
  ["FROM t INDEXED BY t_place WHERE a = 1", "FROM t WHERE a = 1", []],
  [
    "a = @a AND b IN (SELECT value FROM json_each(@ids))",
    "a = $1 AND b IN (SELECT value FROM jsonb_array_elements_text($2::jsonb))",
    ["a", "ids"],
  ],
])("Postgres reads %s as %s", (sql, text, names) => {
  expect(inPostgres(sql)).toEqual({ text, names });
});
