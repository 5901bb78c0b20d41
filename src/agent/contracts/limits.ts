/** Limits of a run, prices of models, and the use so far. */

/**
 * Limits of one run, and of each subagent's part of it. A limit ends the run in order, with what
 * it has and a stable reason; a subagent's limit ends that subagent.
 */
export interface AgentLimits {
  /** Model calls of one agent; default none. */
  maxIterations?: number;
  /** Tool calls of one agent; default none. Calls beyond it are answered and do not run. */
  toolCalls?: number;
  /** Tokens in and out, subagents included; default none. */
  tokens?: number;
  /** Money in US dollars, subagents included; default none. */
  costUsd?: number;
  /**
   * Prices by model name or its beginning; the longest match applies. Default: the list prices of the usual providers.
   */
  prices?: Readonly<Record<string, ModelPrice>>;
  /** Time at work, without the time spent waiting for a person; default none. */
  wallTimeMs?: number;
  /** Time for one tool call, delegation aside; default none. */
  toolTimeoutMs?: number;
  /**
   * Time during which a failed model call is retried with growing pauses, if the failure may pass. Default: a minute;
   * 0: no retries.
   */
  modelPatienceMs?: number;
  /** Tool calls of one reply that work at a time. Default 8. */
  parallelTools?: number;
  /** Subagents of one agent that work at a time. Default 8. */
  parallelSubagents?: number;
  /**
   * Turns of one agent that only repeat calls with the same results; default none, as with 0. The model gets a note
   * from the third such turn on, with or without this limit.
   */
  repeatedTurns?: number;
  /** Levels of delegation: 1 (default) lets the agent start subagents, 2 lets those start others, … */
  subagentDepth?: number;
  /**
   * Characters of names and descriptions of skills and subagents in the prompt. Subagents have half of it, and skills
   * the rest. The prompt names the folders of the others. Default none.
   */
  listedCharacters?: number;
}

/** US dollars per million tokens. */
export interface ModelPrice {
  input: number;
  output: number;
  /** For input read from the provider's cache. Default: `input`. */
  cachedInput?: number;
  /** For input written to the provider's cache. Default: `input`. */
  cacheWrite?: number;
}

/** The budget that the runs of a tree have in common, wherever they work. */
export interface SharedBudget {
  /** Use of the other runs. */
  spent(): Promise<Spent>;
  /**
   * Reserves tokens for the model calls at work in this run, instead of those before, if `fits` agrees with the use
   * of the other runs and the tokens that they have reserved. It may be called again.
   */
  reserve(tokens: number, fits: (others: Spent, reserved: number) => boolean): Promise<boolean>;
}

/** Tokens and money used so far. */
export interface Spent {
  tokens: number;
  costUsd: number;
}
