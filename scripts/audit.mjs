/**
 * Prints the known vulnerabilities of the packages that users get, as Markdown, and fails if there are any. The exit
 * code is 2 if the registry does not answer.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
const options = { cwd: root, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 };
const { stdout, stderr } = spawnSync("npm", ["audit", "--omit=dev", "--json"], options);
const { vulnerabilities } = JSON.parse(stdout || "{}");
if (vulnerabilities === undefined) {
  console.error(`npm audit gave no report. Run it again later.\n${stderr}`);
  process.exit(2);
}
for (const { name, nodes, via } of Object.values(vulnerabilities)) {
  // A text names another vulnerable package, which has an entry of its own.
  const advisories = via.filter((cause) => typeof cause === "object");
  if (advisories.length === 0) continue;
  process.exitCode = 1;
  console.log(`- ${name} ${nodes.map((path) => packages[path]?.version).join(", ")}`);
  for (const { severity, title, url, range } of advisories)
    console.log(`  - ${severity}: [${title}](${url}), in versions ${range}`);
}
