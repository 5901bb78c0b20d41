/**
 * Compares src/agent/budget/prices.json with the newest price list of genai-prices (MIT) on npm, and prints the
 * differences. `--write` stores the new prices.
 *
 * genai-prices follows the price pages of the providers. Its package has 800 kB, so the program has only the table.
 */
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));
const file = join(root, "src/agent/budget/prices.json");
const SOURCE = "@pydantic/genai-prices";
/** Of two providers with a model of the same name, the first one counts. */
const PROVIDERS = [
  "anthropic",
  "openai",
  "google",
  "mistral",
  "deepseek",
  "x-ai",
  "cohere",
  "moonshotai",
  "zai",
  "minimax",
];
/** Models that cannot hold a conversation with tools. */
const OTHER =
  /image|imagen|tts|audio|embed|live|realtime|whisper|moderation|transcri|davinci|babbage|curie|\bada\b|veo|sora|speech|ocr|rerank|instruct|search|gpt-oss|gemma|:/;
const DATED = /[-@](?:\d{4}-\d{2}-\d{2}|\d{6,8}|\d{2}-\d{4}|\d{3,4}|latest|preview|exp|default)$/;

const text = (price) => (price === undefined ? "not listed" : JSON.stringify(price));

/** The names in a rule for model names. Rules of regular expressions only add dates. */
function namesIn(rule) {
  const inside = rule.or ?? rule.and;
  if (inside !== undefined) return inside.flatMap(namesIn);
  const name = rule.equals ?? rule.starts_with ?? rule.contains ?? rule.ends_with;
  return name === undefined ? [] : [name];
}

const plainName = (name) => name.toLowerCase().replace(/^.*\//, "").replaceAll(".", "-").replace(/[-@]$/, "");

/** Without entries that a name with less behind it stands for at the same price. */
function shortest(models) {
  const rest = { ...models };
  for (const [name, price] of Object.entries(models)) {
    const undated = name.replace(DATED, "");
    if (undated !== name && text(models[undated]) === text(price)) delete rest[name];
  }
  return rest;
}

/** Prices from today on; some have a first day. */
function pricesToday(prices, today) {
  if (!Array.isArray(prices)) return prices;
  const begun = prices.filter(({ constraint }) => (constraint?.start_date ?? "") <= today);
  return begun.findLast(({ constraint }) => constraint?.type !== "time_of_date")?.prices;
}

const FIELDS = [
  ["input", "input_mtok"],
  ["output", "output_mtok"],
  ["cachedInput", "cache_read_mtok"],
  ["cacheWrite", "cache_write_mtok"],
];

function priceOf(found) {
  const base = {};
  const long = {};
  let tokens;
  for (const [name, key] of FIELDS) {
    const price = found[key];
    if (price === undefined) continue;
    base[name] = price.base ?? price;
    const tier = price.tiers?.[0];
    if (tier === undefined) continue;
    tokens = tier.start;
    long[name] = tier.price;
  }
  return tokens === undefined ? base : { ...base, above: { tokens, ...long } };
}

async function newest(today) {
  const cache = join(root, "node_modules/.cache/prices");
  await mkdir(cache, { recursive: true });
  await promisify(execFile)("npm", [
    "install",
    "--prefix",
    cache,
    "--no-save",
    "--no-audit",
    `${SOURCE}@latest`,
  ]);
  const folder = join(cache, "node_modules", SOURCE);
  const { version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const { findProvider } = await import(pathToFileURL(join(folder, "dist/index.js")).href);
  const models = {};
  const pages = {};
  for (const providerId of PROVIDERS) {
    const provider = findProvider({ providerId });
    pages[provider.name] = provider.pricing_urls?.[0] ?? "";
    const added = {};
    for (const { id, match, prices } of provider.models) {
      const listed = pricesToday(prices, today);
      if (OTHER.test(id) || listed?.input_mtok === undefined || listed.output_mtok === undefined) continue;
      const price = priceOf(listed);
      if (price.output === 0) continue;
      for (const name of [id, ...namesIn(match)].map(plainName)) if (!OTHER.test(name)) added[name] ??= price;
    }
    for (const name of Object.keys(added).sort()) models[name] ??= added[name];
  }
  return {
    date: today,
    source: `${SOURCE} ${version} (MIT)`,
    unit: "US dollars per million tokens",
    pages,
    models: shortest(models),
  };
}

const today = new Date().toISOString().slice(0, 10);
const known = JSON.parse(await readFile(file, "utf8").catch(() => '{ "models": {} }'));
const found = await newest(today);
const names = [...new Set([...Object.keys(known.models), ...Object.keys(found.models)])].sort();
const changed = names.filter((name) => text(known.models[name]) !== text(found.models[name]));
for (const name of changed)
  console.log(`${name}\n  was ${text(known.models[name])}\n  is  ${text(found.models[name])}`);
console.log(`${changed.length} of ${names.length} models differ from ${found.source}.`);
if (process.argv.includes("--write")) {
  await writeFile(file, `${JSON.stringify(found)}\n`);
  await promisify(execFile)("npx", ["oxfmt", file], { cwd: root });
}
