import { z } from "zod";

/** Arguments that several tools have. */
export const runId = z.string().min(1).max(200).describe("From run_deep_agent");

export const waitSeconds = z
  .number()
  .min(0)
  .max(86_400)
  .optional()
  .describe("Longest wait for an answer; the server has a limit of its own. 0: do not wait");
