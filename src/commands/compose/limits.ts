import type { AgentLimits, ModelPrice } from "../../agent/engine/limits.ts";
import type { Config } from "../../config/schema.ts";

/** What a run may use, as configured. */
export function limitsOf({ limits }: Config): AgentLimits {
  const { modelCalls, toolCalls, tokens, costUsd, prices, workTime, toolTime } = limits;
  const { parallelSubagents, parallelTools, subagentDepth, modelPatience } = limits;
  return {
    parallelSubagents,
    parallelTools,
    subagentDepth,
    modelPatienceMs: modelPatience * 1000,
    ...(modelCalls === undefined ? {} : { maxIterations: modelCalls }),
    ...(toolCalls === undefined ? {} : { toolCalls }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(costUsd === undefined ? {} : { costUsd }),
    ...(prices === undefined ? {} : { prices: pricesOf(prices) }),
    ...(workTime === undefined ? {} : { wallTimeMs: workTime * 1000 }),
    ...(toolTime === undefined ? {} : { toolTimeoutMs: toolTime * 1000 }),
  };
}

function pricesOf(prices: NonNullable<Config["limits"]["prices"]>): Record<string, ModelPrice> {
  return Object.fromEntries(
    Object.entries(prices).map(([model, { input, output, cachedInput }]) => [
      model,
      { input, output, ...(cachedInput === undefined ? {} : { cachedInput }) },
    ]),
  );
}
