import { z } from "zod";
import { OFFLINE, type ModelChoice } from "../../agent/models/choose.ts";
import type { Config } from "../../config/schema.ts";
import { realPath } from "../../core/real-path.ts";

const Environment = z.object({ workspace: z.string(), kind: z.string() });

/**
 * Runs go on where their files are. A run that a language model began is not left to the offline rules,
 * nor the other way round; another language model may go on with it.
 */
export function environmentOf({ workspace = "" }: Config, choice: ModelChoice): string {
  const kind = choice.ok && choice.provider === OFFLINE ? OFFLINE : "model";
  return JSON.stringify({ workspace: workspace === "" ? "" : realPath(workspace), kind });
}

/** The flags that take another process to where a run goes on: to its folder, and its kind of model. */
export function environmentFlags(environment: string, isModelGiven: boolean): string[] {
  const { workspace, kind } = Environment.parse(JSON.parse(environment));
  return [
    ...(workspace === "" ? [] : ["--workspace", workspace]),
    ...(kind === OFFLINE && !isModelGiven ? ["--model", OFFLINE] : []),
  ];
}
