/** Checks the channels of news. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { errorMessage } from "../../core/errors.ts";
import { silentLogger } from "../../core/logger.ts";
import type { Check, Facts } from "./check.ts";

type NewsFacts = Pick<Facts, "config" | "env">;

const name = "News";

/** Finds channels that lack a variable. */
export async function checkChannels({ config, env }: NewsFacts): Promise<Check[]> {
  if (Object.keys(config.news).length === 0) return [];
  const { newsProblems } = await import("../news.ts");
  return newsProblems(config, env).map(({ name: channel, problem }) => ({
    name,
    ok: false,
    text: `news.${channel}: ${problem}`,
  }));
}

/** Counts the messages that were given up. Looks at existing storage only. */
export async function checkDelivered({ config, env }: NewsFacts): Promise<Check[]> {
  const channels = Object.keys(config.news).length;
  if (channels === 0) return [];
  const isStored = config.storage !== undefined || existsSync(join(config.dataDir, "deepagent.db"));
  try {
    const dead = isStored ? await countDead({ config, env }) : 0;
    const text =
      dead === 0
        ? `${channels} ${channels === 1 ? "channel" : "channels"}`
        : `${dead} ${dead === 1 ? "message" : "messages"} could not be delivered. \`news list\` shows why, \`news retry\` sends them again, \`news drop\` deletes them.`;
    return [{ name, ok: dead === 0, text }];
  } catch (error) {
    return [{ name, ok: false, text: errorMessage(error) }];
  }
}

async function countDead({ config, env }: NewsFacts): Promise<number> {
  const { openStorage } = await import("../open-storage.ts");
  const storage = await openStorage({ config, env, logger: silentLogger });
  try {
    return await storage.runs.news.countDead();
  } finally {
    await storage.close();
  }
}
