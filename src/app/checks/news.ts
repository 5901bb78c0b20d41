/** Checks the channels of news. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { errorMessage } from "../../core/errors.ts";
import { silentLogger } from "../../core/logger.ts";
import { counted } from "../../tools/format.ts";
import { type Check, type OwnFacts, closing } from "./check.ts";

const name = "News";

/** Finds channels that lack a variable. */
export async function checkChannels({ config, env }: OwnFacts): Promise<Check[]> {
  if (Object.keys(config.news).length === 0) return [];
  const { newsProblems } = await import("../news.ts");
  return newsProblems(config, env).map(({ name: channel, problem }) => ({
    name,
    ok: false,
    text: `news.${channel}: ${problem}`,
  }));
}

/** Counts the abandoned messages. Reads existing storage only. */
export async function checkDelivered({ config, env }: OwnFacts): Promise<Check[]> {
  const channels = Object.keys(config.news).length;
  if (channels === 0) return [];
  const isStored = config.storage !== undefined || existsSync(join(config.dataDir, "deepagent.db"));
  if (!isStored) return [{ name, ok: true, text: counted(channels, "channel") }];
  try {
    const { openStorage } = await import("../open-storage.ts");
    const storage = await openStorage({ config, env, logger: silentLogger });
    const dead = await closing(storage, () => storage.runs.news.countDead());
    if (dead === 0) return [{ name, ok: true, text: counted(channels, "channel") }];
    const text = `${counted(dead, "message")} could not be delivered. \`news list\` shows why, \`news retry\` sends them again, \`news drop\` deletes them.`;
    return [{ name, ok: false, text }];
  } catch (error) {
    return [{ name, ok: false, text: errorMessage(error) }];
  }
}
