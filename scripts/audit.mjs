/**
 * Prints the known vulnerabilities of the packages that users get, as Markdown, and fails if there are any: packages in
 * the bundle, which dist/sbom.cdx.json lists, and packages that npm installs beside it. Tools of development are left
 * out. The exit code is 2 if the registry does not answer. Needs what `npm run build` makes.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (name) => JSON.parse(readFileSync(join(root, name), "utf8"));

/** The versions of a vulnerable package that users get, with the place of each. */
function shippedVersions({ name, nodes }, bundled, installed) {
  return nodes.flatMap((path) => {
    const { version, dev } = installed[path] ?? {};
    const isBundled = bundled.has(`pkg:npm/${name.replace("@", "%40")}@${version}`);
    return isBundled || dev !== true ? [`${version} (${isBundled ? "in the bundle" : "beside it"})`] : [];
  });
}

const options = { cwd: root, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 };
const { stdout, stderr } = spawnSync("npm", ["audit", "--json"], options);
const { vulnerabilities } = JSON.parse(stdout || "{}");
if (vulnerabilities === undefined) {
  console.error(`npm audit gave no report. Run it again later.\n${stderr}`);
  process.exit(2);
}
const bundled = new Set(read("dist/sbom.cdx.json").components.map(({ purl }) => purl));
const { packages: installed } = read("package-lock.json");
for (const vulnerable of Object.values(vulnerabilities)) {
  const versions = shippedVersions(vulnerable, bundled, installed);
  // A text names another vulnerable package, which has an entry of its own.
  const advisories = vulnerable.via.filter((via) => typeof via === "object");
  if (versions.length === 0 || advisories.length === 0) continue;
  process.exitCode = 1;
  console.log(`- ${vulnerable.name} ${versions.join(", ")}`);
  for (const { severity, title, url, range } of advisories)
    console.log(`  - ${severity}: [${title}](${url}), in versions ${range}`);
}
