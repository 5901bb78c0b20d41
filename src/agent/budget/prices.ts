import type { AIMessage } from "@langchain/core/messages";
import type { ModelPrice } from "../contracts/limits.ts";
import { findModel, longestMatch } from "../../core/model-names.ts";
import table from "./prices.json" with { type: "json" };

/** Prices of models, and the cost of a reply. */

/** Some providers charge more for a whole request above this many input tokens. */
interface ListPrice extends ModelPrice {
  above?: { tokens: number } & Partial<ModelPrice>;
}

const LIST_PRICES: ReadonlyMap<string, ListPrice> = new Map<string, ListPrice>([
  ...Object.entries(table.models),
  ["offline", { input: 0, output: 0 }], // the rule-based model
]);
/**
 * Returns the operator's price of a model, else its list price by its name at its provider or in a cloud or gateway,
 * such as `us.anthropic.claude-sonnet-4-5-20250929-v1:0` or `anthropic/claude-sonnet-4.5`; undefined if neither is known.
 */
const findPrice = (model: string, prices: Readonly<Record<string, ModelPrice>> = {}): ListPrice | undefined =>
  // Free offers have names such as `qwen/qwen3-coder:free`.
  longestMatch(model, prices) ?? findModel(LIST_PRICES, model.endsWith(":free") ? "offline" : model);

/** Finds a price by the name that the model was chosen with. Providers report longer names, such as one with a date. */
export function modelPrice(
  name: string,
  prices: Readonly<Record<string, ModelPrice>> = {},
): Pick<ModelPrice, "input" | "output"> | undefined {
  const longer = Object.keys(prices).find((price) => price.startsWith(name));
  const price = findPrice(name, prices) ?? (longer === undefined ? undefined : prices[longer]);
  return price && { input: price.input, output: price.output };
}

/** US dollars for one reply; `undefined` if its tokens or the price of its model are not known. */
export function replyCost(reply: AIMessage, prices?: Readonly<Record<string, ModelPrice>>) {
  const listed = findPrice(reportedModel(reply), prices);
  if (listed === undefined || !reply.usage_metadata) return undefined;
  const { input_tokens: input, output_tokens: output, input_token_details: details } = reply.usage_metadata;
  const isLong = listed.above !== undefined && input > listed.above.tokens;
  const price: ModelPrice = isLong ? { ...listed, ...listed.above } : listed;
  const { cache_read: read = 0, cache_creation: written = 0 } = details ?? {};
  const cost =
    (input - read - written) * price.input +
    read * (price.cachedInput ?? price.input) +
    written * (price.cacheWrite ?? price.input) +
    output * price.output;
  return cost / 1_000_000;
}

/** Returns the name of the model behind a reply; empty if the reply does not have it. */
export function reportedModel({ response_metadata: told }: AIMessage): string {
  const name: unknown = told["model_name"] ?? told["model"];
  return typeof name === "string" ? name : "";
}
