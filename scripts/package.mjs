/**
 * Writes the folder `build/package`, which is published: the files that package.json lists, and a package.json whose
 * dependencies are only what npm has to install beside the bundle. Needs what `npm run build` makes.
 *
 * `node scripts/package.mjs [FOLDER]`: packs it into FOLDER, if one is given, and prints the path of the result.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = join(root, "build/package");
const read = (name) => JSON.parse(readFileSync(join(root, name), "utf8"));

/** Fields that matter in a checkout only. */
const DEVELOPMENT = ["scripts", "devDependencies", "overrides", "allowScripts"];

/** The first entry of what `npm pack` reports. */
function pack(...args) {
  // npm is a script on Windows, which only a shell starts.
  const shell = process.platform === "win32";
  const all = ["pack", "--json", "--ignore-scripts", ...args];
  const options = { cwd: root, shell, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 };
  return JSON.parse(execFileSync("npm", shell ? all.map((word) => `"${word}"`) : all, options))[0];
}

const { files } = pack("--dry-run");
rmSync(folder, { recursive: true, force: true });
for (const { path } of files) {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  cpSync(join(root, path), join(folder, path));
}
const bundled = new Set(
  read("dist/sbom.cdx.json").components.map(({ group, name }) => (group ? `${group}/${name}` : name)),
);
const { dependencies, ...manifest } = read("package.json");
for (const field of DEVELOPMENT) delete manifest[field];
manifest.dependencies = Object.fromEntries(
  Object.entries(dependencies).filter(([name]) => !bundled.has(name)),
);
writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
const [, , to] = process.argv;
console.log(to === undefined ? folder : join(to, pack("--pack-destination", to, folder).filename));
