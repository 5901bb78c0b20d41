/** Finds a model in tables by any of its names: at its vendor, in a cloud or behind a gateway. */

/** Prefixes of clouds: `us.anthropic.claude-…`, `databricks-claude-…`, `anthropic--claude-…`. */
const PREFIX = /^(?:(?:[a-z-]+\.)+(?=[a-z])|databricks-|[a-z]+--)/;
/** Endings besides the model: dates, channels, revisions of clouds, number formats, and variants of gateways. */
const ENDING =
  /(?:[-@](?:\d{4}-\d{2}-\d{2}|\d{6,8}|\d{2}-\d{4}|\d{3,4}|latest|preview|exp|default|maas|v1|v\d+(?::\w+){1,2}|fp\d{1,2}|bf16|int\d|nvfp4|mxfp4|awq|gptq)|:(?:free|beta|thinking|nitro|floor|exacto|extended|online))$/;

/**
 * Names of a model in lower case, the most exact first: with its vendor if the name has one (`qwen/qwen3-coder`), alone,
 * and both without one ending after another.
 */
export function modelNames(model: string): string[] {
  const [own = "", vendor] = model
    .toLowerCase()
    .slice(-200)
    .replace(/\/(?:models|routers)\//, "/")
    .split("/")
    .toReversed();
  // Fireworks writes `2p5` for 2.5.
  let name = own.replace(PREFIX, "").replaceAll(/(?<=\d)p(?=\d)/g, ".");
  const names: string[] = [];
  for (let last; name !== last; name = name.replace(ENDING, "")) {
    names.push(...(vendor === undefined ? [] : [`${vendor}/${name}`]), name);
    last = name;
  }
  return names;
}

/** The entry of a model in a table whose names have hyphens in place of dots. */
export const findModel = <Entry>(table: ReadonlyMap<string, Entry>, model: string): Entry | undefined =>
  modelNames(model)
    .map((name) => table.get(name.replaceAll(".", "-")))
    .find((entry) => entry !== undefined);

/** The value under the longest key that `name` begins with; `undefined` if it begins with none. */
export function longestMatch<Value>(
  name: string,
  values: Readonly<Record<string, Value>>,
): Value | undefined {
  const [closest] = Object.keys(values)
    .filter((key) => name.startsWith(key))
    .sort((a, b) => b.length - a.length);
  return closest === undefined ? undefined : values[closest];
}
