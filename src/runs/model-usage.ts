import { z } from "zod";
import type { ModelUsage, RunEvent } from "./run.ts";

const Called = z.object({
  model: z.string(),
  usage: z.object({ inputTokens: z.number(), outputTokens: z.number(), cachedInputTokens: z.number() }),
  costUsd: z.number().optional(),
  purpose: z.literal("summary").optional(),
});

/** Adds up what each model was used for, one event of the journal at a time. */
export class UsageFold {
  readonly #models = new Map<string, ModelUsage>();

  add(event: RunEvent): void {
    const { data } = Called.safeParse(event.data);
    if (data === undefined) return;
    const role = data.purpose ?? (event.agent.length === 0 ? "main" : "subagents");
    const key = JSON.stringify([data.model, role]);
    const { model, usage } = data;
    const none: ModelUsage = {
      model,
      role,
      calls: 0,
      inputTokens: 0,
      outputTokens: 0,
      cachedInputTokens: 0,
      costUsd: 0,
    };
    const { costUsd: before, ...sum } = this.#models.get(key) ?? none;
    // One call whose price is not known makes the sum unknown.
    const costUsd = before === undefined || data.costUsd === undefined ? undefined : before + data.costUsd;
    this.#models.set(key, {
      ...sum,
      calls: sum.calls + 1,
      inputTokens: sum.inputTokens + usage.inputTokens,
      outputTokens: sum.outputTokens + usage.outputTokens,
      cachedInputTokens: sum.cachedInputTokens + usage.cachedInputTokens,
      ...(costUsd === undefined ? {} : { costUsd }),
    });
  }

  /** In the order in which they were first called. */
  all(): ModelUsage[] {
    return [...this.#models.values()];
  }
}

/** US dollars for all of it; `undefined` as soon as a part is not known. */
export function totalCost(models: readonly ModelUsage[]): number | undefined {
  let sum = 0;
  for (const { costUsd } of models) {
    if (costUsd === undefined) return undefined;
    sum += costUsd;
  }
  return sum;
}

/** The same for people, such as `$0.0123`, or `at least $0.0123`; `undefined` when no price is known or nothing was paid. */
export function costText(models: readonly ModelUsage[]): string | undefined {
  const known = models.reduce((sum, { costUsd = 0 }) => sum + costUsd, 0);
  if (known === 0) return undefined;
  return `${totalCost(models) === undefined ? "at least " : ""}${dollars(known)}`;
}

/** An amount above zero, never shown as zero. */
export const dollars = (amount: number): string =>
  amount < 0.0001 ? "less than $0.0001" : `$${amount.toFixed(4)}`;
