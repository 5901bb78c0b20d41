/**
 * Writes into SECURITY.md where vulnerabilities are reported, as `securityContact` of project.json says: an address
 * for mail or a page; null: not known yet. With --check it only fails when the file says something else.
 */
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const root = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url));
const { securityContact } = JSON.parse(await readFile(root("project.json"), "utf8"));

const contact = securityContact?.replace(/^mailto:/, "");
const text =
  contact === undefined
    ? "**The contact is not set yet**, so there is no private way to report. It stands in `securityContact` of `project.json`, from where `node scripts/community-files.mjs` writes it here."
    : `Report it to <${contact}>.`;

const before = await readFile(root("SECURITY.md"), "utf8");
const after = before.replace(
  /(<!-- contact: .* -->\n)[^]*?(<!-- end -->)/,
  (_, open, close) => `${open}${text}\n${close}`,
);
if (!process.argv.includes("--check")) await writeFile(root("SECURITY.md"), after);
else if (after !== before) {
  console.error("SECURITY.md is stale. Run: node scripts/community-files.mjs");
  process.exitCode = 1;
}
