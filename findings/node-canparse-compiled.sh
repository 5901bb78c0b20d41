#!/usr/bin/env bash
# Node 20.20.2 and 22.23.3 (npm packages of these versions): `URL.canParse` changes its answer once the calling function
# is compiled. For a text with a character from U+0080 to U+00FF, which V8 stores with one byte a character, it is true
# at first and false after some ten thousand calls; `new URL` takes the same text all the time, and texts with characters
# beyond U+00FF are judged rightly. A server that checks addresses with it refuses https://bücher.example after a while.
# A good guess is that a pure function gives the same answer each time, and that `canParse` agrees with `new URL`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
cat >run.mjs <<'JS'
const canParse = (text) => URL.canParse(text);
const latin = "https://b\u00fccher.example/";
const cold = canParse(latin);
for (let call = 0; call < 200_000; call += 1) canParse(`https://example.com/${call % 7}`);
const hot = canParse(latin);
const wide = canParse("https://\ud55c\uad6d.example/");
console.log(`${process.version}: first ${cold}, compiled ${hot}, with two-byte characters ${wide}; new URL: ${new URL(latin).href}`);
process.exit(cold && !hot && wide ? 0 : 1);
JS
for version in 20.20.2 22.23.3; do
  npm install --no-audit --no-fund --silent --prefix "node-$version" "node@$version"
  "node-$version/node_modules/node/bin/node" run.mjs || { echo "The behavior of $version has changed." >&2; exit 1; }
done
