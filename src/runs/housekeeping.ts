import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../core/clock.ts";
import { settledTime } from "../storage/settled-time.ts";
import type { PruneReport } from "./prune.ts";
import type { RunServiceOptions } from "./service-options.ts";

const HOUR_MS = 3_600_000;

/**
 * Prunes, by the time that is given to `prune`, now and every hour until `signal` aborts. Resolves when nothing of
 * it is under way any more. Keeps no process alive.
 */
export async function keepHouse(
  prune: (now: number) => Promise<PruneReport>,
  { database, clock = systemClock, log }: Pick<RunServiceOptions, "database" | "clock" | "log">,
  signal: AbortSignal,
): Promise<void> {
  const work = async (): Promise<void> => {
    const now = clock();
    const settled = await settledTime(database, now);
    if (settled < now) {
      log.warn("clock.doubted", { aheadMs: now - settled, effect: "nothing is deleted by it for a day" });
    }
    log.info("runs.pruned", { ...(await prune(settled)) });
  };
  while (!signal.aborted) {
    await work().catch((error: unknown) => log.warn("runs.prune_failed", { error }));
    await delay(HOUR_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
