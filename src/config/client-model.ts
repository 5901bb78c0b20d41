import type { Config } from "./schema.ts";

/** The model that an MCP client lends, through sampling. */
export const CLIENT_MODEL = "client";

/** Whether runs may ask for the model of a client. */
export function asksForClientModel({
  model,
  fallbackModels,
  subagents,
}: Pick<Config, "model" | "fallbackModels" | "subagents">): boolean {
  return [model, ...fallbackModels, ...subagents.map((subagent) => subagent.model)].includes(CLIENT_MODEL);
}
