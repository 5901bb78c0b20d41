// Sites that documentation generators of npm build, as the pages of one corpus: from the README files of packages, and
// from a page with what only this generator has. Installs and builds in `folder`, which takes minutes.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PROJECT = fileURLToPath(new URL("../..", import.meta.url));
const SITES = JSON.parse(readFileSync(new URL("sites.json", import.meta.url), "utf8"));
const READMES =
  "ajv better-sqlite3 fast-check hast-util-to-mdast hono htmlparser2 iconv-lite jsonc-parser mdast-util-to-markdown parse5 smol-toml yaml zod".split(
    " ",
  );
const OWN = "guide http reliability clients configuration page".split(" ");

/** Markdown without pictures. `plain`: also without tags and templates outside of code, which some generators run. */
function prepare(text, { plain, title, front }) {
  const bare = text.replace(/!\[[^\]]*\]\([^)]*\)/g, "");
  const escaped = bare.replace(/(^ *(`{3,})[^]*?^ *\2|`[^`\n]+`)|<(?=[a-z/!])|\{\{/gim, (found, code) =>
    code ? found : found === "<" ? "&lt;" : "{ {",
  );
  const body = plain ? escaped : bare;
  return front ? `---\ntitle: ${title}\n---\n${body.replace(/^# .*$/m, "")}` : body;
}

/** Writes the pages and the configuration of a site, and builds it. Returns the pages. */
function build(site, folder) {
  const place = join(folder, "sites", site.name);
  const output = join(place, site.output);
  if (!existsSync(output)) {
    const write = (path, text) => {
      mkdirSync(dirname(join(place, path)), { recursive: true });
      writeFileSync(join(place, path), text);
    };
    write("package.json", JSON.stringify({ private: true, ...site.package }));
    for (const [path, lines] of Object.entries(site.files)) write(path, `${lines.join("\n")}\n`);
    const texts = [
      ...READMES.map((name) => [name, join(PROJECT, "node_modules", name)]),
      ...OWN.map((name) => [`own-${name}`, join(PROJECT, "docs", `${name}.md`)]),
    ];
    for (const [name, at] of site.content === undefined ? [] : texts) {
      const file = at.endsWith(".md")
        ? at
        : join(
            at,
            readdirSync(at).find((one) => /^readme\.md$/i.test(one)),
          );
      const text = prepare(readFileSync(file, "utf8"), { ...site, title: name });
      write(join(site.content, `${name}.md`), text);
    }
    const run = (program, args) =>
      execFileSync(program, args, { cwd: place, stdio: "ignore", env: { ...process.env, ...site.env } });
    run("npm", ["install", "--no-audit", "--no-fund", "--legacy-peer-deps", ...site.install]);
    for (const command of site.build) run("npx", command.split(" "));
  }
  return readdirSync(output, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".html") && entry.name !== "404.html")
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file).length > 4000 && !/^(search|global)\.html$/.test(basename(file)))
    .sort()
    .slice(0, 24);
}

/** Rows of pages, as those of packages. A site that cannot be built is named and left out. */
export function buildSites(folder) {
  return SITES.flatMap((site) => {
    try {
      return [{ generator: site.generator, main: site.main, files: build(site, folder) }];
    } catch (error) {
      console.error(`${site.generator} was not built: ${String(error.message).split("\n", 1)[0]}`);
      return [];
    }
  });
}
