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

/** A provider that answers later than this is reported. */
const ANSWER_MS = 15_000;

/** Searches once, for one result. */
export async function checkSearchAnswers({ config, env }: OwnFacts): Promise<Check[]> {
  const choice = searchOf(config, env);
  if (!choice.ok || choice.found === undefined) return [];
  const { name: provider, search } = choice.found;
  const ask = async (signal: AbortSignal): Promise<string | undefined> => {
    try {
      await search("weather", { count: 1, signal });
      return undefined;
    } catch (error) {
      return errorMessage(error);
    }
  };
  const late = `${provider} did not answer within ${ANSWER_MS / 1000} s. Check the network, or leave this check out with --offline.`;
  const problem = await within(ANSWER_MS, ask, late);
  return [{ name, ok: problem === undefined, text: problem ?? `${provider} answered` }];
}
