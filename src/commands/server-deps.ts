import type { Config } from "../config/schema.ts";
import { monotonicClock, systemClock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import { keptAtLeastMs } from "../runs/retention.ts";
import { principalOf } from "../server/auth/auth.ts";
import { createPageLinks } from "../server/page/page-links.ts";
import { lazyRuns } from "../server/deps.ts";
import type { ServerDeps } from "../server/deps.ts";
import { retentionOf } from "./compose/retention.ts";
import { createResourceChanges } from "../server/resources/bus.ts";

export interface ServerSettings {
  config: Config;
  env: Readonly<Record<string, string | undefined>>;
  version: string;
  logger: Logger;
  /** Whether results link to the local page where the configuration does not say. Default: they do not. */
  page?: boolean;
}

export interface ServerParts {
  deps: ServerDeps;
  /** Parks what runs and releases everything. */
  close(): Promise<void>;
}

/** What the MCP server needs. Agent and storage are loaded when runs are first asked for. */
export function serverParts({ config, env, version, logger, page = false }: ServerSettings): ServerParts {
  const lazy = lazyRuns(async () => {
    const { openRuns } = await import("./compose.ts");
    return openRuns({ config, env, logger, lendable: true });
  });
  const runs = () => lazy.runs();
  const changes = createResourceChanges({ runs, logger });
  const stateKey = async (): Promise<Uint8Array> =>
    (await import("../server/state-key.ts")).loadStateKey(config.dataDir);
  const links = createPageLinks(async () => {
    const { openPageServer } = await import("../server/page/page-server.ts");
    return openPageServer({ runs, stateKey: await stateKey(), clock: monotonicClock, logger });
  });
  const kept = keptAtLeastMs(retentionOf(config));
  const deps: ServerDeps = {
    version,
    config,
    logger,
    clock: systemClock,
    monotonic: monotonicClock,
    runs,
    stateKey,
    previousStateKey: async () =>
      (await import("../server/state-key.ts")).loadPreviousStateKey(config.dataDir),
    principalOf,
    changes,
    ...(kept === null ? {} : { keptAtLeastMs: kept }),
    ...((config.page ?? page) ? { page: links } : {}),
  };
  return {
    deps,
    close: async () => {
      await links.close();
      await changes.close();
      await lazy.close();
    },
  };
}
