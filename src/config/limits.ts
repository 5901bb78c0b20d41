/** Limits of runs and of the server in the configuration. */
import { z } from "zod";
import { seconds, text, whole } from "./sections.ts";

export const limitsSchema = z
  .strictObject({
    concurrentRuns: whole(1, 1000)
      .default(8)
      .describe("Runs that work at the same time; more wait for their turn."),
    drain: seconds
      .default(0)
      .describe(
        "How long `serve --http` and `work`, when stopped, let active runs continue before they park them for others. A second signal ends the wait.",
      ),
    openRuns: whole(1, 1_000_000)
      .default(500)
      .describe("Unfinished runs of one principal, waiting ones included; starting one more is refused."),
    serverCrashes: whole(1, 1_000_000)
      .default(10)
      .describe(
        "Fail a run after the server crashed this many times while working on it (the count resets after ten minutes of work).",
      ),
    parallelSubagents: whole(1, 64).default(8).describe("Subagents that work at the same time."),
    parallelTools: whole(1, 64).default(8).describe("Tool calls of one agent that work at the same time."),
    modelCalls: whole(1)
      .optional()
      .describe("Model calls per run; reaching it ends the run with what it has."),
    toolCalls: whole(1).optional().describe("Tool calls per run; likewise."),
    tokens: whole(1).optional().describe("Tokens per run, subagents included; likewise."),
    costUsd: z.number().positive().optional().describe("US dollars per run, subagents included; likewise."),
    prices: z
      .record(
        text,
        z.strictObject({
          input: z.number().min(0).describe("For input tokens."),
          output: z.number().min(0).describe("For output tokens."),
          cachedInput: z
            .number()
            .min(0)
            .optional()
            .describe("For input read from the cache. Default: `input`."),
          cacheWrite: z
            .number()
            .min(0)
            .optional()
            .describe("For input written to the cache. Default: `input`."),
        }),
      )
      .optional()
      .describe(
        "US dollars per million tokens, by model name or its beginning. They override the built-in list prices for models of the usual providers.",
      ),
    modelPatience: seconds
      .default(600)
      .describe(
        "Time during which a model call is retried, with growing pauses, if its provider is overloaded, limits the rate, cannot be reached or drops the connection.",
      ),
    modelSilence: seconds
      .min(1)
      .default(300)
      .describe("How long a model may pause mid-answer before the call is retried."),
    workTime: seconds.optional().describe("Working time per run, without waiting for a person; likewise."),
    toolTime: seconds
      .optional()
      .describe("Time limit of one tool call; it is then stopped and the run continues."),
    goalRounds: whole(1, 20)
      .default(5)
      .describe(
        "Answers of a run with a goal that a judge checks; the run ends after the last one with what it has.",
      ),
    repeatedTurns: whole(0)
      .default(20)
      .describe(
        "Turns of one agent that only repeat calls with the same results; reaching it ends the run with what it has. 0: no limit.",
      ),
    subagentDepth: whole(1, 4)
      .default(1)
      .describe("Levels of delegation: 1 lets the agent start subagents, 2 lets those start others."),
    listedCharacters: whole(1000, 1_000_000)
      .default(8000)
      .describe(
        "Characters of names and descriptions of skills and subagents in the prompt, the operator's first. The agent finds the others in their folders.",
      ),
    foreignToolTokens: whole(0, 1_000_000)
      .default(10_000)
      .describe(
        "Tokens that the tools of other MCP servers may take in each request. If they take more, the prompt names them, and the agent gets those it needs with find_tools.",
      ),
  })
  .prefault({});
