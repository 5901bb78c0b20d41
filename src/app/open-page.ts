/** Serves the page of this process: where commands of the same data folder find it, or over HTTP. */
import { basename } from "node:path";
import type { Config } from "../config/schema.ts";
import { systemClock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import type { Principal, Run } from "../runs/run.ts";
import type { SharedRuns } from "../runs/shares.ts";
import type { RunsByHolder } from "../runs/service.ts";
import type { HttpOptions } from "../server/http/http.ts";
import { notePage } from "../server/page/find-page.ts";
import { folderName, worksIn } from "./settings.ts";
import type { PagesOptions } from "../server/page/pages.ts";
import { openPageServer } from "../server/page/page-server.ts";
import type { PageServer, ServerDeps } from "../server/contracts/deps.ts";
import texts from "./texts.json" with { type: "json" };

export interface OpenPage {
  config: Config;
  runs: () => Promise<RunsByHolder>;
  /** Finds runs by links to them. Default: no links are made. */
  sharedRuns?: () => Promise<SharedRuns>;
  /** With which a command proves that it may ask for a link; at least 32 bytes. */
  key: Uint8Array;
  /** Owner of the data folder. */
  local: Principal;
  openCommand: (run: Run) => string | undefined;
  logger: Logger;
}

export async function openPage({ config, ...options }: OpenPage): Promise<PageServer> {
  const { dataDir } = config;
  const server = await openPageServer({ ...options, clock: systemClock, ...pageFacts(config) });
  const { address } = server;
  const forget = await notePage(dataDir, address);
  options.logger.info("page.started", { address });
  const close = (): Promise<void> => forget().then(() => server.close());
  return { ...server, close };
}

/** The parts of the page over HTTP. `publicUrl`: where browsers reach it, if that is known. */
export function pageOf(config: Config, deps: ServerDeps, publicUrl: URL | undefined): HttpOptions["page"] {
  const { runs, sharedRuns, clock, logger, openCommand, stateKey: key } = deps;
  return { runs, sharedRuns, clock, logger, openCommand, key, publicUrl, ...pageFacts(config) };
}

function pageFacts(config: Config): Pick<PagesOptions, "settings" | "folderOf" | "isHere" | "api"> {
  const isHere = worksIn(config.workspace);
  return {
    api: async (request) => (await import("../server/api/api.ts")).answerApi(request),
    settings:
      config.workspaceFolder !== undefined
        ? { folder: "A folder of its own", folderSetBy: texts.setByPattern }
        : config.workspace === undefined
          ? {}
          : { folder: basename(config.workspace), folderSetBy: texts.setByName },
    isHere: ({ environment }) => isHere(environment),
    // With a folder for each principal or thread, that of the workspace is none that a run works in.
    ...(config.workspaceFolder === undefined
      ? { folderOf: ({ environment }) => folderName(environment) }
      : {}),
  };
}
