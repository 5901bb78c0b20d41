/** Limits of a run in a few words each, and as JSON. */
import { grouped, tokens as short } from "./cost-words.ts";
import { duration } from "../../core/text.ts";
import type { RunLimits } from "../../runs/choices.ts";

export const limitWords = ({ costUsd, tokens, modelCalls, toolCalls, workTime }: RunLimits): string[] => [
  ...(costUsd === undefined ? [] : [price(costUsd)]),
  ...(tokens === undefined ? [] : [`${short(tokens)} tokens`]),
  ...(modelCalls === undefined ? [] : [`${grouped(modelCalls)} model calls`]),
  ...(toolCalls === undefined ? [] : [`${grouped(toolCalls)} tool calls`]),
  ...(workTime === undefined ? [] : [`${duration(workTime * 1000)} of work`]),
];

/** Limits that were chosen for a run; the others are those of the server. */
export const limitsDocument = ({ costUsd, tokens, modelCalls, toolCalls, workTime }: RunLimits) => ({
  cost_usd: costUsd,
  tokens,
  model_calls: modelCalls,
  tool_calls: toolCalls,
  work_seconds: workTime,
});

/** Formats a price such as `$5.00`; fractions of a cent are exact. */
export const price = (usd: number): string =>
  `$${Number.isInteger(Math.round(usd * 1e6) / 1e4) ? usd.toFixed(2) : usd}`;
