/** Limits of runs and of the server in the configuration. */
import { _default as withDefault, optional, z } from "zod";
import { group, seconds, nonEmptyText, whole } from "./sections.ts";

const price = z.number().min(0);

export const limitsSchema = group({
  concurrentRuns: withDefault(whole(1, 1000), 8).describe(
    "Runs that work at the same time; more wait for their turn.",
  ),
  drain: withDefault(seconds, 0).describe(
    "How long `serve --http` and `work`, when stopped, let active runs continue before they park them for others. A second signal ends the wait.",
  ),
  openRuns: withDefault(whole(1, 1_000_000), 500).describe(
    "Unfinished runs of one principal, waiting ones included; starting one more is refused.",
  ),
  serverCrashes: withDefault(whole(1, 1_000_000), 10).describe(
    "Fail a run after the server crashed this many times while working on it (the count resets after ten minutes of work).",
  ),
  parallelSubagents: withDefault(whole(1, 64), 8).describe("Subagents that work at the same time."),
  parallelTools: withDefault(whole(1, 64), 8).describe("Tool calls of one agent that work at the same time."),
  modelCalls: optional(whole(1)).describe(
    "Model calls of one agent: the main agent and each subagent count their own. Reaching it ends that agent with what it has.",
  ),
  toolCalls: optional(whole(1)).describe("Tool calls of one agent; likewise."),
  tokens: optional(whole(1)).describe(
    "Tokens per run, subagents included; reaching it ends the run with what it has. Each agent may exceed it by the reply that it is waiting for.",
  ),
  costUsd: optional(z.number().positive()).describe("US dollars per run, subagents included; likewise."),
  prices: z
    .record(
      nonEmptyText,
      z.strictObject({
        input: price.describe("For input tokens."),
        output: price.describe("For output tokens."),
        cachedInput: optional(price).describe("For input read from the cache. Default: `input`."),
        cacheWrite: optional(price).describe("For input written to the cache. Default: `input`."),
      }),
    )
    .optional()
    .describe(
      "US dollars per million tokens, by model name or its beginning. They override the built-in list prices for models of the usual providers.",
    ),
  modelPatience: withDefault(seconds, 600).describe(
    "Time during which a model call is retried, with growing pauses, if its provider is overloaded, limits the rate, cannot be reached or drops the connection.",
  ),
  modelSilence: withDefault(seconds.min(1), 300).describe(
    "How long a model may pause mid-answer before the call is retried.",
  ),
  workTime: optional(seconds).describe(
    "Working time per run, without waiting for a person; likewise. A background subagent has as much time of its own.",
  ),
  toolTime: optional(seconds).describe(
    "Time limit of one tool call; it is then stopped and the run continues.",
  ),
  goalRounds: withDefault(whole(1, 20), 5).describe(
    "Answers of a run with a goal that a judge checks; the run ends after the last one with what it has.",
  ),
  repeatedTurns: withDefault(whole(0), 20).describe(
    "Turns of one agent that only repeat calls with the same results; reaching it ends the run with what it has. 0: no limit.",
  ),
  subagentDepth: withDefault(whole(1, 4), 1).describe(
    "Levels of delegation: 1 lets the agent start subagents, 2 lets those start others.",
  ),
  listedCharacters: withDefault(whole(1000, 1_000_000), 8000).describe(
    "Characters of names and descriptions of skills and subagents in the prompt, the operator's first. The agent finds the others in their folders.",
  ),
  foreignToolTokens: withDefault(whole(0, 1_000_000), 10_000).describe(
    "Tokens that the tools of other MCP servers may take in each request. If they take more, the prompt names them, and the agent gets those it needs with find_tools.",
  ),
});
