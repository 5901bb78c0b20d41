/**
 * Compares the tables of models with their newest sources, and prints the differences; `--write` stores the new ones.
 *
 * - src/agent/budget/prices.json: genai-prices (MIT) on npm, which follows the price pages of the providers.
 * - src/agent/models/profiles/limits.json: windows and output limits of models.dev (MIT) that differ from those of the
 *   model's family in profiles.json, and windows of genai-prices for models that it does not list. `--limits FILE` reads
 *   a saved https://models.dev/api.json in place of the address.
 */
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { loadSources } from "./sources.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const today = new Date().toISOString().slice(0, 10);
const text = (entry) => (entry === undefined ? "not listed" : JSON.stringify(entry));
const { buildProfile, modelNames } = await loadSources(`
  export { buildProfile } from "./src/agent/models/profiles/profile.ts";
  export { modelNames } from "./src/core/model-names.ts";
`);

const SOURCE = "@pydantic/genai-prices";
/** Of two vendors with a model of the same name, the first one counts. */
const VENDORS =
  "anthropic openai google mistral deepseek x-ai cohere moonshotai zai minimax perplexity".split(" ");
/** Services with models of others, by `vendor/model`: of two prices for one name, the higher one counts. */
const HOSTS = "openrouter groq fireworks together cerebras".split(" ");
/** Models of others at a vendor; their hosts' prices count. */
const OPEN = /gpt-oss|gemma/;
/** Models that cannot hold a conversation with tools, and the oldest ones. */
const OTHER =
  /image|imagen|tts|audio|embed|\blive\b|realtime|whisper|moderation|transcri|davinci|babbage|curie|\bada\b|veo|sora|speech|ocr|rerank|turbo-instruct|search|guard|lyria|llama-?2\b|codellama|qwen1|qwen-?2-|lumimaid|openorca|openhermes|-hf$|:/i;

const plainName = (name) => name.replace(/^.*\//, "");
const tableName = (name) => name.replaceAll(".", "-").replace(/[-@]$/, "");

/** The names in a rule for model names. Rules of regular expressions only add dates. */
function namesIn(rule) {
  const inside = rule.or ?? rule.and;
  if (inside !== undefined) return inside.flatMap(namesIn);
  const name = rule.equals ?? rule.starts_with ?? rule.contains ?? rule.ends_with;
  return name === undefined ? [] : [name];
}

/** The entries in order, without those that a shorter name of the model stands for. */
function shortest(models) {
  const isKnown = ([name, entry]) => {
    const shorter = modelNames(name)
      .slice(1)
      .find((other) => models[other] !== undefined);
    return text(models[shorter] ?? {}) === text(entry);
  };
  return Object.fromEntries(
    Object.entries(models)
      .filter((entry) => !isKnown(entry))
      .sort(([one], [other]) => (one < other ? -1 : 1)),
  );
}

/** Prices from today on; some have a first day. */
function pricesToday(prices) {
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

/** Names of a provider's models with their prices and context windows. */
function* pricedNames({ models }) {
  for (const { id, match, prices, context_window: window } of models) {
    const listed = pricesToday(prices);
    if (OTHER.test(id) || listed?.input_mtok === undefined || listed.output_mtok === undefined) continue;
    const price = priceOf(listed);
    if (price.output === 0) continue;
    const names = namesIn(match);
    if (!names.some((name) => name.includes("/"))) names.unshift(id);
    for (const name of names) if (!OTHER.test(name)) yield { name, price, window };
  }
}

async function newestPrices() {
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
  const [models, hosted, windows, pages] = [{}, {}, {}, {}];
  const openProvider = (providerId) => {
    const provider = findProvider({ providerId });
    pages[provider.name] = provider.pricing_urls?.[0] ?? "";
    return [...pricedNames(provider)].map((one) => ({ ...one, providerId }));
  };
  for (const { name: given, price, window, providerId } of VENDORS.flatMap(openProvider)) {
    const name = tableName(modelNames(plainName(given))[0]);
    if (OPEN.test(name)) continue;
    models[name] ??= price;
    // OpenAI's windows have the part for the answer in them.
    if (window > 0 && providerId !== "openai") windows[name] ??= window;
  }
  for (const { name: given, price, providerId } of HOSTS.flatMap(openProvider)) {
    const name = tableName(modelNames(given)[0]);
    const { family } = buildProfile(name);
    const own = models[plainName(name)];
    const isOld = providerId === "openrouter" && !given.includes("/");
    const isListed = own !== undefined && (!family?.open || text(own) === text(price));
    if (family === undefined || isOld || isListed || !/^[a-z]/.test(name)) continue;
    if (!(price.input + price.output < hosted[name]?.input + hosted[name]?.output)) hosted[name] = price;
  }
  const source = `${SOURCE} ${version} (MIT)`;
  const unit = "US dollars per million tokens";
  return { table: { date: today, source, unit, pages, models: shortest({ ...hosted, ...models }) }, windows };
}

const LIMITS = "https://models.dev/api.json";
/** Providers of models.dev, the vendors of their models. */
const LISTED =
  "anthropic openai google mistral deepseek xai cohere moonshotai zai minimax alibaba xiaomi stepfun perplexity".split(
    " ",
  );

async function newestLimits(file, windows) {
  const read =
    file === undefined ? await fetch(LIMITS).then((answer) => answer.text()) : await readFile(file, "utf8");
  const providers = JSON.parse(read);
  const models = {};
  const limitsOf = (name, window, output) => {
    const { family } = buildProfile(name);
    // Windows without a limit of answers are rounded.
    const least = output === undefined ? 0.95 : 1;
    const differs = (limit, usual) => limit > 0 && !(limit >= least * usual && limit <= 1.05 * usual);
    return {
      ...(differs(window, family?.window) && { window }),
      ...(differs(output, family?.output) && { output }),
    };
  };
  const listed = LISTED.flatMap((id) => Object.values(providers[id].models));
  for (const { id, limit, tool_call, modalities } of listed) {
    const name = modelNames(plainName(id))[0].replace(/-latest$/, "");
    if (!tool_call || !modalities.output.includes("text") || OTHER.test(name)) continue;
    models[tableName(name)] ??= limitsOf(name, limit.input ?? limit.context, limit.output);
  }
  for (const [name, window] of Object.entries(windows))
    if (modelNames(name).every((one) => models[one] === undefined)) models[name] = limitsOf(name, window);
  const date = listed
    .map(({ last_updated }) => last_updated)
    .sort()
    .at(-1);
  return { date, source: `${LIMITS} (MIT), ${SOURCE}`, unit: "tokens", models: shortest(models) };
}

/** Prints the differences of a table, and stores it with `--write`. */
async function compare(path, found) {
  const file = join(root, path);
  const known = JSON.parse(await readFile(file, "utf8").catch(() => '{ "models": {} }'));
  const names = [...new Set([...Object.keys(known.models), ...Object.keys(found.models)])].sort();
  const changed = names.filter((name) => text(known.models[name]) !== text(found.models[name]));
  for (const name of changed)
    console.log(`${name}\n  was ${text(known.models[name])}\n  is  ${text(found.models[name])}`);
  console.log(`${path}: ${changed.length} of ${names.length} models differ from ${found.source}.`);
  if (!process.argv.includes("--write")) return;
  await writeFile(file, `${JSON.stringify(found)}\n`);
  await promisify(execFile)("npx", ["oxfmt", file], { cwd: root });
}

const { table, windows } = await newestPrices();
await compare("src/agent/budget/prices.json", table);
const at = process.argv.indexOf("--limits");
const saved = at < 0 ? undefined : process.argv[at + 1];
const limits = await newestLimits(saved, windows).catch((error) =>
  console.error(`No limits from ${saved ?? LIMITS}: ${error.message}`),
);
if (limits) await compare("src/agent/models/profiles/limits.json", limits);
