/** Times, durations, tokens and money as people read them. */
import { duration } from "../../../core/text.ts";
import type { RunView } from "../../../runs/run.ts";
import { dollars, knownCost } from "../cost-words.ts";
import { isoTime } from "../../../core/clock.ts";
import { type Html, html } from "../html.ts";

/** Formats an amount; empty if it is not known, or is nothing. `exact`: the amount before it was rounded. */
export function money(amount: number | undefined, exact = amount): string {
  if (amount === undefined || exact === 0) return "–";
  return amount === 0 ? "$0.00" : dollars(amount);
}

/** Rounds the parts of a sum to whole cents, or finer below one in all, such that they add up to the rounded sum. */
export function roundedParts(amounts: readonly number[]): number[] {
  const sum = amounts.reduce((total, amount) => total + amount, 0);
  const units = sum < 0.01 ? 10_000 : 100;
  const cut = amounts.map((amount) => Math.floor(amount * units));
  const missing = Math.round(sum * units) - cut.reduce((total, amount) => total + amount, 0);
  const restOf = (at: number): number => (amounts[at] ?? 0) * units - (cut[at] ?? 0);
  const largest = Array.from(amounts.keys()).toSorted((one, other) => restOf(other) - restOf(one));
  const raised = new Set(largest.slice(0, missing));
  return cut.map((amount, at) => (amount + Number(raised.has(at))) / units);
}

/** The cost of all models; `undefined` if nothing was paid. */
export function costOf(models: RunView["models"]): string | undefined {
  const { usd, isWhole } = knownCost(models);
  if (usd === 0) return isWhole ? undefined : "unknown";
  return `${isWhole ? "" : "≥ "}${money(usd)}`;
}

/** Duration until now or to the end; without an end, the page's script keeps counting. */
export const elapsed = (start: number, end: number | undefined, now: number): Html =>
  end === undefined
    ? html`<span data-since="${start}">${duration(now - start)}</span>`
    : html`<span>${duration(end - start)}</span>`;

/** Hours and minutes of a time, which the page's script shows in the person's own time zone. */
export function timeOf(milliseconds: number): Html {
  const iso = isoTime(milliseconds);
  return html`<time datetime="${iso}" data-clock>${iso.slice(11, 16)}</time>`;
}

/** Formats a time, with the day unless it is half a day away at most. */
export const nearTime = (milliseconds: number, now: number): Html =>
  Math.abs(milliseconds - now) > 43_200_000 ? dayAndTime(milliseconds) : timeOf(milliseconds);

export function dayAndTime(milliseconds: number): Html {
  const iso = isoTime(milliseconds);
  return html`<time datetime="${iso}" data-clock="day">${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC</time>`;
}
