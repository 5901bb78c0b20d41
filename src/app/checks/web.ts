/** Checks the search of the web. */
import { errorMessage } from "../../core/errors.ts";
import { searchOf } from "../web.ts";
import { type Check, type OwnFacts, within } from "./check.ts";

const name = "Web search";

export function checkSearchKey({ config, env }: OwnFacts): Check[] {
  const choice = searchOf(config, env);
  if (choice.ok) return [];
  const remedy = choice.keys === undefined ? "" : " Set it in the environment, or store it with `keys set`.";
  return [{ name, ok: false, text: choice.problem + remedy }];
}

/** Searches once, for one result. */
export async function checkSearchAnswers({ config, env }: OwnFacts): Promise<Check[]> {
  const choice = searchOf(config, env);
  if (!choice.ok || choice.found === undefined) return [];
  const { name: provider, search } = choice.found;
  const ask = (signal: AbortSignal): Promise<string | undefined> =>
    search("weather", { count: 1, signal }).then(() => undefined, errorMessage);
  const late = (time: string): string =>
    `${provider} did not answer within ${time}. Check the network, or leave this check out with --offline.`;
  const problem = await within(15, ask, late);
  return [{ name, ok: problem === undefined, text: problem ?? `${provider} answered` }];
}
