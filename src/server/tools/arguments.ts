import { z } from "zod";

/** Arguments that several tools have. */
export const runId = z.string().min(1).max(200).describe("From run_deep_agent");

export const waitSeconds = z
  .number()
  .min(0)
  .max(86_400)
  .optional()
  .describe("Longest wait, up to the server's limit");
