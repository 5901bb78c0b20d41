// Pages of documentation packages as Markdown, beside rehype-remark and Readability: parts that arrive whole, and menus.
// Usage: npm run build && node bench/web/bench.mjs [--keep FOLDER] [--pages] [--sites | --large]
// It fetches the packages of `corpus.json` with apt-get and the peers with npm into a temporary folder, or into FOLDER, which
// it keeps. `--pages` prints the figures of each page. `--sites` scores sites that it builds instead of packages. `--large` times a page of more than 5 MB instead.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parse } from "parse5";
import { convertPage } from "./convert-page.mjs";
import { reference } from "./reference.mjs";
import { score } from "./score.mjs";
import { buildSites } from "./sites.mjs";

const PEERS = ["unified@11.0.5", "rehype-parse@9.0.1", "rehype-remark@10.0.1", "remark-gfm@4.0.1"];
const READERS = ["remark-stringify@11.0.0", "@mozilla/readability@0.6.0", "jsdom@26.1.0"];
const LARGE = { package: "nodejs-doc", path: "api/all.html" };
const URL_OF_PAGES = "https://site.example/docs/";

const corpus = JSON.parse(readFileSync(new URL("corpus.json", import.meta.url), "utf8"));
const option = (name) => {
  const at = process.argv.indexOf(name);
  return at === -1 ? undefined : (process.argv[at + 1] ?? "");
};
const kept = option("--keep");
const folder = kept ? resolve(kept) : mkdtempSync(join(tmpdir(), "deepagent-web-"));
if (kept === undefined) process.once("exit", () => rmSync(folder, { recursive: true, force: true }));

/** Unpacks a package; a version that is no longer offered is replaced by the current one, with a line that says so. */
function unpack(name) {
  const place = join(folder, "packages", name);
  if (existsSync(place)) return place;
  const download = mkdtempSync(join(folder, "download-"));
  const get = (what) =>
    execFileSync("apt-get", ["download", "-qq", what], { cwd: download, stdio: "ignore" });
  try {
    get(`${name}=${corpus.debian[name]}`);
  } catch {
    console.error(`${name}: not ${corpus.debian[name]}, but the current version`);
    get(name);
  }
  execFileSync("dpkg", ["-x", join(download, readdirSync(download)[0]), place]);
  rmSync(download, { recursive: true });
  return place;
}

const pagesIn = (place) =>
  readdirSync(place, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.html?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();

/** The pages of a row: of a size that people read, those that it names and others by the hash of their path. */
function choose({ package: name, pages, path = "", always = [] }) {
  const place = unpack(name);
  const all = pagesIn(place).map((file) => ({ file, within: file.slice(place.length) }));
  const hash = ({ within }) => createHash("sha256").update(within).digest("hex");
  const named = always.flatMap((end) => all.filter(({ within }) => within.endsWith(`/${end}`)).slice(0, 1));
  const others = all
    .filter(
      ({ within }) =>
        new RegExp(path).test(within) && !/index\.html$|genindex|search|toc\.html|contents/.test(within),
    )
    .sort((left, right) => hash(left).localeCompare(hash(right)))
    .filter(({ file }) => !named.some((one) => one.file === file));
  const chosen = [...named];
  for (const one of others) {
    if (chosen.length >= pages) break;
    const { length } = readFileSync(one.file);
    if (length > 9000 && length < 400_000) chosen.push(one);
  }
  return chosen;
}

async function openPeers() {
  const place = join(folder, "peers");
  mkdirSync(place, { recursive: true });
  if (!existsSync(join(place, "node_modules"))) {
    writeFileSync(join(place, "package.json"), "{}");
    execFileSync("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", ...PEERS, ...READERS], {
      cwd: place,
      stdio: "ignore",
    });
  }
  const load = async (name) => import(pathToFileURL(join(place, "node_modules", name)).href);
  const { unified } = await load("unified/index.js");
  const [rehype, remark, text, gfm] = await Promise.all(
    [
      "rehype-parse/index.js",
      "rehype-remark/index.js",
      "remark-stringify/index.js",
      "remark-gfm/index.js",
    ].map(async (name) => (await load(name)).default),
  );
  const require = createRequire(join(place, "package.json"));
  const [{ JSDOM }, { Readability }] = ["jsdom", "@mozilla/readability"].map((name) => require(name));
  const whole = async (html) =>
    String(await unified().use(rehype).use(remark).use(gfm).use(text).process(html));
  return {
    "rehype-remark": whole,
    "Readability, rehype-remark": async (html, url) => {
      const dom = new JSDOM(html, { url });
      const article = new Readability(dom.window.document).parse();
      dom.window.close();
      return article ? whole(`<h1>${article.title}</h1>${article.content}`) : "";
    },
  };
}

const MEASURES = ["code", "cells", "headings", "text", "junk"];
const percent = (part, all) => (all === 0 ? "–" : ((100 * part) / all).toFixed(1));

/** All units together, and the mean of the pages that have some. */
function summary(scores, measure) {
  const found = scores.map((one) => one[measure]).filter(([, all]) => all > 0);
  const [part, all] = found.reduce(([left, right], [one, other]) => [left + one, right + other], [0, 0]);
  const mean = found.reduce((sum, [one, other]) => sum + one / other, 0);
  return `${percent(part, all)} / ${percent(mean, found.length)}`;
}

async function compare() {
  const tools = { "deepagent-mcp": convertPage, ...(await openPeers()) };
  const scores = Object.fromEntries(Object.keys(tools).map((name) => [name, []]));
  const generators = new Set();
  const rows = process.argv.includes("--sites") ? buildSites(folder) : corpus.rows;
  for (const row of rows) {
    const files = row.files?.map((file) => ({ file, within: file.slice(folder.length) }));
    for (const { file, within } of files ?? choose(row)) {
      generators.add(row.generator);
      const html = readFileSync(file, "utf8");
      const shown = reference(parse, html, row.main);
      for (const [name, convert] of Object.entries(tools)) {
        const one = score(
          shown,
          await convert(html, URL_OF_PAGES + within.split("/").at(-1)).catch(() => ""),
        );
        scores[name].push(one);
        if (name === "deepagent-mcp" && process.argv.includes("--pages"))
          console.log(
            `${row.generator} ${within}: ${MEASURES.map((measure) => `${measure} ${percent(...one[measure])}`).join(", ")}`,
          );
      }
    }
  }
  console.log(
    `${scores["deepagent-mcp"].length} pages of ${generators.size} generators; percent of all units / mean of the pages\n`,
  );
  console.log(
    "| converter | code lines | table cells | headings | main text | junk |\n|---|---|---|---|---|---|",
  );
  for (const [name, all] of Object.entries(scores))
    console.log(`| ${[name, ...MEASURES.map((measure) => summary(all, measure))].join(" | ")} |`);
}

/** Seconds, and the memory that a process of its own takes beyond one that converts an empty page. */
function timeLarge() {
  const file = pagesIn(unpack(LARGE.package)).find((one) => one.endsWith(LARGE.path));
  const empty = join(folder, "empty.html");
  writeFileSync(empty, "<p>empty</p>");
  const measure = (page) => {
    const script = fileURLToPath(new URL("convert-page.mjs", import.meta.url));
    const start = performance.now();
    const peak = Number(execFileSync(process.execPath, [script, page], { encoding: "utf8" }));
    return { seconds: (performance.now() - start) / 1000, peak };
  };
  const [floor, page] = [measure(empty), measure(file)];
  const megabytes = readFileSync(file).length / 1e6;
  console.log(
    `${megabytes.toFixed(1)} MB: ${page.seconds.toFixed(1)} s, ${page.peak.toFixed(0)} MB (empty page: ${floor.seconds.toFixed(1)} s, ${floor.peak.toFixed(0)} MB)`,
  );
}

mkdirSync(folder, { recursive: true });
await (process.argv.includes("--large") ? timeLarge() : compare());
