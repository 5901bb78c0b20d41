/** The tokens and the cost of a run in words. */
import type { RunView } from "../../runs/run.ts";

/** US dollars of the models whose price is known. `isWhole`: that is all of them. */
export const knownCost = (models: Parameters<typeof costText>[0]): { usd: number; isWhole: boolean } => ({
  usd: models.reduce((sum, { costUsd = 0 }) => sum + costUsd, 0),
  isWhole: models.every(({ costUsd }) => costUsd !== undefined),
});

/** Formats a cost for people: `$0.12`, `at least $0.12` or `cost unknown`; undefined if nothing was paid. */
export function costText(
  models: readonly Pick<RunView["models"][number], "model" | "costUsd">[],
): string | undefined {
  const { usd, isWhole } = knownCost(models);
  // Free models of gateways have a price, too; the rule-based one has no provider.
  const isFree = isWhole && models.some(({ model }) => model !== "offline");
  if (usd === 0) return isFree ? "$0" : isWhole ? undefined : "cost unknown";
  return `${isWhole ? "" : "at least "}${dollars(usd)}`;
}

/** Names the setting that is missing for an unknown cost; undefined if all costs are known. */
export function costGap(models: RunView["models"]): string | undefined {
  const unpriced = models.filter(({ costUsd }) => costUsd === undefined);
  if (unpriced.length === 0) return undefined;
  const names = new Set(unpriced.map(({ model }) => model));
  return `The price of ${[...names].join(", ")} is not known. Set it in limits.prices.`;
}

/** An amount above zero, never shown as zero: in whole cents, and finer below one. */
export const dollars = (amount: number): string =>
  amount < 0.0001 ? "less than $0.0001" : `$${amount.toFixed(amount < 0.01 ? 4 : 2)}`;

/** US dollars for all of it; `undefined` as soon as a part is not known. */
export function totalCost(models: RunView["models"]): number | undefined {
  const { usd, isWhole } = knownCost(models);
  return isWhole ? usd : undefined;
}

/** A whole number from 0 on, such as `1,234,567`. `Intl` would take 20 ms of the first page. */
export const grouped = (count: number): string =>
  count < 1000 ? String(count) : `${grouped(Math.floor(count / 1000))},${String(count).slice(-3)}`;

/** `1.84M`, `412k`, `950`. */
export function tokens(count: number): string {
  if (count >= 999_500) return `${(count / 1_000_000).toPrecision(3)}M`;
  return count >= 10_000 ? `${Math.round(count / 1000)}k` : grouped(count);
}
