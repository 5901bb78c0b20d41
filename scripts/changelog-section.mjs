/** Prints what CHANGELOG.md says about one version, without its heading: the text of a release. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const [version] = process.argv.slice(2);
const text = await readFile(fileURLToPath(new URL("../CHANGELOG.md", import.meta.url)), "utf8");
const section = text.split(/^## /m).find((part) => part.startsWith(`[${version}]`));
const entries = section?.slice(section.indexOf("\n")).trim();

if (entries) console.log(entries);
else {
  console.error(`CHANGELOG.md has no entries under "## [${version}]".`);
  process.exitCode = 1;
}
