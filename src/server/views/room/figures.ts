/** Times, durations, tokens and money as people read them. */
import type { RunView } from "../../../runs/run.ts";
import { dollars, knownCost } from "../cost-words.ts";
import { isoTime } from "../../../core/clock.ts";
import { type Html, html } from "../html.ts";
import { duration } from "./duration.ts";

/** A whole number from 0 on, such as `1,234,567`. `Intl` would take 20 ms of the first page. */
export const grouped = (count: number): string =>
  count < 1000 ? String(count) : `${grouped(Math.floor(count / 1000))},${String(count).slice(-3)}`;

/** `1.84M`, `412k`, `950`. */
export function tokens(count: number): string {
  if (count >= 999_500) return `${(count / 1_000_000).toPrecision(3)}M`;
  return count >= 10_000 ? `${Math.round(count / 1000)}k` : grouped(count);
}

/** Formats an amount: two places from a cent on, exact below, and empty if it is not known. */
export function money(amount: number | undefined): string {
  if (amount === undefined || amount === 0) return "–";
  return amount < 0.01 ? dollars(amount) : `$${amount.toFixed(2)}`;
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
