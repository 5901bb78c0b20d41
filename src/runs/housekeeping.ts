import { systemClock } from "../core/clock.ts";
import { settledTime } from "../storage/settled-time.ts";
import type { PruneReport } from "./prune.ts";
import type { RunServiceOptions } from "./service-options.ts";

const HOUR_MS = 3_600_000;

/** Prunes, by the time that is given to `prune`, now and every hour until stopped. Keeps no process alive. */
export function keepHouse(
  prune: (now: number) => Promise<PruneReport>,
  { database, clock = systemClock, log }: Pick<RunServiceOptions, "database" | "clock" | "log">,
): { stop(): void } {
  const work = async (): Promise<void> => {
    const now = clock();
    const settled = await settledTime(database, now);
    if (settled < now) {
      log.warn("clock.doubted", { aheadMs: now - settled, effect: "nothing is deleted by it for a day" });
    }
    log.info("runs.pruned", { ...(await prune(settled)) });
  };
  const start = (): void => void work().catch((error: unknown) => log.warn("runs.prune_failed", { error }));
  start();
  const timer = setInterval(start, HOUR_MS).unref();
  return { stop: () => clearInterval(timer) };
}
