#!/usr/bin/env bash
# unbash 6.0.4: an open parenthesis after a word is left out without an error. `a ( b` is parsed as the command `a` with
# the argument `b`, and `a (` as `a`; bash refuses both. A closing parenthesis at the same place is reported.
# A good guess is that a parser that reports errors reports every line that bash -n refuses, and that the words of a
# command have only blanks between them in the source.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent unbash@6.0.4
cat >run.mjs <<'JS'
import { spawnSync } from "node:child_process";
import { parse } from "unbash";
const results = ["a ( b", "a (", "a ) b"].map((line) => {
  const { commands, errors = [] } = parse(line);
  const refused = spawnSync("bash", ["-n"], { input: line }).status !== 0;
  const { name, suffix } = commands[0].command;
  const words = [name, ...suffix].map(({ text }) => text).join(" ");
  console.log(`${line}: bash ${refused ? "refuses" : "accepts"} it, unbash reads "${words}" with ${errors.length} errors`);
  return refused && errors.length > 0;
});
process.exit(results.join() === "false,false,true" ? 0 : 1);
JS
node run.mjs || { echo "The behavior of unbash 6.0.4 has changed." >&2; exit 1; }
