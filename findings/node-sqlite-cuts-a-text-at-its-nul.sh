#!/usr/bin/env bash
# Node 22.23.3 and 24.11.1 (npm packages of these versions): `node:sqlite` stores a text that contains a NUL whole, as
# SQLite can, and returns it only as far as the NUL, without an error. `hex()` and a BLOB of the same column have all of it.
# Node 24.18.0 returns the whole text. A program that stores what people or models write loses the rest with the others.
# A good guess is that a text comes back as it was stored, or that storing it fails.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
cat >run.mjs <<'JS'
import { DatabaseSync } from "node:sqlite";

const database = new DatabaseSync(":memory:");
database.exec("CREATE TABLE notes (text TEXT)");
database.prepare("INSERT INTO notes VALUES (?)").run("before\0after");
const { text, stored } = database.prepare("SELECT text, hex(text) AS stored FROM notes").get();
console.log(process.version, JSON.stringify(text), Buffer.from(stored, "hex").length, "bytes stored");
JS
versions="22.23.3 24.11.1 24.18.0"
for version in $versions; do
  npm install --no-audit --no-fund --silent --prefix "node-$version" "node@$version"
done
seen=$(for version in $versions; do "node-$version/node_modules/node/bin/node" --no-warnings run.mjs; done)
echo "$seen"
expected='v22.23.3 "before" 12 bytes stored
v24.11.1 "before" 12 bytes stored
v24.18.0 "before\u0000after" 12 bytes stored'
if [ "$seen" != "$expected" ]; then
  echo "The behavior has changed." >&2
  exit 1
fi
