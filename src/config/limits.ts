/** Limits of runs and of the server in the configuration. */
import { _default as withDefault, optional, z } from "zod";
import { fields, group, seconds, nonEmptyText, whole } from "./sections.ts";

const price = z.number().min(0);

export const limitsSchema = group("limits", {
  concurrentRuns: withDefault(whole(1, 1000), 8),
  drain: withDefault(seconds, 0),
  openRuns: withDefault(whole(1, 1_000_000), 500),
  serverCrashes: withDefault(whole(1, 1_000_000), 10),
  parallelSubagents: withDefault(whole(1, 64), 8),
  parallelTools: withDefault(whole(1, 64), 8),
  modelCalls: optional(whole(1)),
  toolCalls: optional(whole(1)),
  tokens: optional(whole(1)),
  costUsd: optional(z.number().positive()),
  prices: z
    .record(
      nonEmptyText,
      fields("prices", {
        input: price,
        output: price,
        cachedInput: optional(price),
        cacheWrite: optional(price),
      }),
    )
    .optional(),
  modelPatience: withDefault(seconds, 600),
  modelSilence: withDefault(seconds.min(1), 300),
  workTime: optional(seconds),
  toolTime: optional(seconds),
  goalRounds: withDefault(whole(1, 20), 5),
  repeatedTurns: withDefault(whole(0), 20),
  subagentDepth: withDefault(whole(1, 4), 1),
  listedCharacters: withDefault(whole(1000, 1_000_000), 8000),
  foreignToolTokens: withDefault(whole(0, 1_000_000), 10_000),
});
