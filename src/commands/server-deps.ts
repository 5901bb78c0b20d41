import type { Config } from "../config/schema.ts";
import { systemClock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import { lazyRuns } from "../server/deps.ts";
import type { ServerDeps } from "../server/deps.ts";
import { createResourceChanges } from "../server/resources/bus.ts";

/** Everyone who reaches the server over stdio, or over HTTP on this machine. */
const LOCAL = "local";

export interface ServerSettings {
  config: Config;
  env: Readonly<Record<string, string | undefined>>;
  version: string;
  logger: Logger;
}

export interface ServerParts {
  deps: ServerDeps;
  /** Parks what runs and releases everything. */
  close(): Promise<void>;
}

/** What the MCP server needs. Agent and storage are loaded when runs are first asked for. */
export function serverParts({ config, env, version, logger }: ServerSettings): ServerParts {
  const lazy = lazyRuns(async () => {
    const { openRuns } = await import("./compose.ts");
    return openRuns({ config, env, logger });
  });
  const runs = () => lazy.runs();
  const changes = createResourceChanges({ runs, logger });
  const deps: ServerDeps = {
    version,
    config,
    logger,
    clock: systemClock,
    runs,
    stateKey: async () => (await import("../server/state-key.ts")).loadStateKey(config.dataDir),
    principalOf: () => LOCAL,
    changes,
  };
  return {
    deps,
    close: async () => {
      await changes.close();
      await lazy.close();
    },
  };
}
