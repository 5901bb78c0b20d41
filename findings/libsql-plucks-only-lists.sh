#!/usr/bin/env bash
# libsql 0.5.29, whose binding has the interface of better-sqlite3: `pluck` counts for `all` alone. `get` and `iterate` still
# return rows, each with one column more than was selected, `_metadata`, and so does `pragma` with `simple: true`.
# Output seen: {"all":[1],"get":["n","_metadata"],"iterate":["n"],"pragma":["user_version","_metadata"]}
# A good guess is that a program for better-sqlite3 gets the same values: 1 from `get`, and 0 from the pragma.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent libsql@0.5.29
cat >run.mjs <<'JS'
import Database from "libsql";

const database = new Database(":memory:");
const one = () => database.prepare("SELECT 1 AS n").pluck();
const seen = JSON.stringify({
  all: one().all(),
  get: Object.keys(one().get()),
  iterate: Object.keys([...one().iterate()][0]),
  pragma: Object.keys(database.pragma("user_version", { simple: true })),
});
console.log(seen);
if (seen !== '{"all":[1],"get":["n","_metadata"],"iterate":["n"],"pragma":["user_version","_metadata"]}') {
  console.error("The behavior has changed.");
  process.exit(1);
}
JS
node run.mjs
