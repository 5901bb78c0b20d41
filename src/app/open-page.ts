/** Serves the page of this process, where commands of the same data folder find it. */
import { basename } from "node:path";
import type { Config } from "../config/schema.ts";
import { systemClock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import type { Principal, Run } from "../runs/run.ts";
import type { PrincipalRuns } from "../runs/service.ts";
import { PAGE_PORT, forgetPage, notePage } from "../server/page/find-page.ts";
import { openPageServer } from "../server/page/page-server.ts";
import type { PageServer } from "../server/protocol/deps.ts";

export interface OpenPage {
  config: Config;
  runs: () => Promise<PrincipalRuns>;
  /** Signs sessions; at least 32 bytes. */
  key: Uint8Array;
  /** Whose data folder it is. */
  local: Principal;
  openCommand: (run: Run) => string | undefined;
  logger: Logger;
}

export async function openPage({ config, ...options }: OpenPage): Promise<PageServer> {
  const { dataDir } = config;
  const server = await openPageServer({
    ...options,
    clock: systemClock,
    port: PAGE_PORT,
    settings: settingsOf(config),
  });
  const { address } = server;
  await notePage(dataDir, address);
  options.logger.info("page.started", { address });
  return {
    ...server,
    close: async () => {
      await forgetPage(dataDir, address);
      await server.close();
    },
  };
}

/** What a new run gets, in a few words each. */
function settingsOf({ workspace, model, limits }: Config): string[] {
  return [
    ...(workspace === undefined ? [] : [basename(workspace)]),
    ...(model === undefined ? [] : [model]),
    ...(limits.costUsd === undefined ? [] : [`Limit $${limits.costUsd.toFixed(2)}`]),
  ];
}
