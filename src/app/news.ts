/** The channels that get news of runs, as configured. */
import type { Config } from "../config/schema.ts";
import { PROGRAM } from "../config/program.ts";
import { channelProblem, makeSender } from "../news/channel.ts";
import { PUBLIC_CALLBACKS, subscriberSend } from "../news/subscriber.ts";
import { defined } from "../core/unknown.ts";
import { Courier } from "../runs/courier.ts";
import type { Send } from "../runs/news.ts";
import type { Storage } from "../storage/storage.ts";
import type { RunSettings } from "./settings.ts";

/** Begins to deliver the news of this process's environment. */
export function openCourier(
  { config, env, logger, pageOf = () => undefined, holds }: RunSettings,
  { runs, clock }: Storage,
  environment: string,
): Courier {
  const openCommand = (runId: string): string => `${PROGRAM} runs open ${runId}`;
  const channels = Object.entries(config.news).map(([target, { events: types, ...options }]) => ({
    target,
    types,
    send: makeSender(options, { env, pageOf, openCommand }),
  }));
  for (const { name, problem } of newsProblems(config, env)) logger.warn("news.channel", { name, problem });
  const { news } = runs;
  const subscriber =
    holds &&
    ((id: string): Send =>
      subscriberSend(() => news.subscriptionById(id), { callbacks: PUBLIC_CALLBACKS, clock, pageOf, holds }));
  return new Courier({ news, channels, ...defined({ subscriber }), environment, clock, log: logger });
}

/** The channels that cannot send now. */
export const newsProblems = ({ news }: Pick<Config, "news">, env: RunSettings["env"]) =>
  Object.entries(news).flatMap(([name, options]) => {
    const problem = channelProblem(options, env);
    return problem === undefined ? [] : [{ name, problem }];
  });
