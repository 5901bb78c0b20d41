/** Opens the page in the browser: that of a running server, or its own until it is stopped. */
import { LOCAL } from "../runs/run.ts";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { openPage } from "../app/open-page.ts";
import { loadConfig } from "../config/load.ts";
import { systemClock } from "../core/clock.ts";
import { defined } from "../core/unknown.ts";
import { findPage } from "../server/page/find-page.ts";
import { loadStateKey } from "../server/calls/state.ts";
import { say } from "./output.ts";
import { openInBrowser } from "./browser.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import { type LocalRuns, unknownRun, withLocalRuns } from "./local-runs.ts";

/** `runId`: the run to open first. The link decides, so it goes to the terminal of the person and nowhere else. */
export async function runOpen(args: CommandArguments, runId?: string): Promise<ExitCode> {
  const { flags, host } = args;
  const loaded = loadConfig({ flags, ...host });
  // The function that opens the runs reports problems.
  if (loaded.ok && loaded.config.storage === undefined && flags["serve"] !== true) {
    const { dataDir } = loaded.config;
    const link = await findPage(dataDir, await loadStateKey(dataDir), systemClock(), runId);
    if (link !== undefined) return show(link, flags["no-browser"] !== true, "");
  }
  return withLocalRuns(args, true, (local) => serveHere(local, flags["no-browser"] !== true, runId));
}

async function serveHere(local: LocalRuns, mayOpen: boolean, runId: string | undefined): Promise<ExitCode> {
  const { runs, operator, logger, interrupt, config } = local;
  if (runId !== undefined && (await runs.read.view(runId)) === undefined) return unknownRun(local, runId);
  const server = await openPage({
    config,
    runs: async () => operator,
    ...(config.shareLinks ? { sharedRuns: async () => operator } : {}),
    // Servers on one Postgres have no key that is theirs alone; commands ask none of them for a link.
    key: config.storage === undefined ? await loadStateKey(config.dataDir) : randomBytes(32),
    local: LOCAL,
    openCommand: ({ id }) => local.runsCommand("open", id),
    logger,
  });
  try {
    const link = server.link({ principal: LOCAL, purpose: "decide", ...defined({ first: runId }) });
    show(link, mayOpen, " Ctrl-C closes the page; other servers continue their runs.");
    if (!interrupt.signal.aborted) await once(interrupt.signal, "abort");
    return 0;
  } finally {
    await server.close();
  }
}

function show(link: string, mayOpen: boolean, note: string): ExitCode {
  say(link, `The link works once, for the tab that opens it.${note}`);
  if (mayOpen) openInBrowser(link);
  return 0;
}
