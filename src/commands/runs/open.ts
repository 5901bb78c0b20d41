import type { FlagValues } from "../../config/load.ts";
import { startChild } from "../../core/child-process.ts";
import { monotonicClock } from "../../core/clock.ts";
import { openPageServer } from "../../server/page/page-server.ts";
import { loadStateKey } from "../../server/state-key.ts";
import type { ExitCode } from "../command.ts";
import { LOCAL, unknownRun, type LocalRuns } from "../terminal/local-runs.ts";

/**
 * Serves the run's page until the process is told to end, and opens it in the browser. The link decides on
 * approvals, so it goes to the terminal of the person who asked for it and nowhere else.
 */
export async function openRun(local: LocalRuns, runId: string, flags: FlagValues): Promise<ExitCode> {
  const { runs, config, logger, interrupt } = local;
  if ((await runs.view(LOCAL, runId)) === undefined) return unknownRun(local, runId);
  const server = await openPageServer({
    runs: async () => runs,
    stateKey: await loadStateKey(config.dataDir),
    clock: monotonicClock,
    openCommand: () => local.runsCommand("open", runId),
    logger,
  });
  try {
    const link = server.link({ run: runId, principal: LOCAL, purpose: "decide" });
    process.stdout.write(`${link}\nThe link works once. Ctrl-C ends the page, not the run.\n`);
    if (flags["no-browser"] !== true) openInBrowser(link);
    await untilAborted(interrupt.signal);
    return 0;
  } finally {
    await server.close();
  }
}

const OPENERS: Partial<Record<NodeJS.Platform, readonly [command: string, ...args: string[]]>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Where there is no browser the printed link is left. */
function openInBrowser(link: string): void {
  const [command, ...args] = OPENERS[process.platform] ?? ["xdg-open"];
  const child = startChild(command, [...args, link], { stdio: "ignore", detached: true });
  child.once("error", () => undefined);
  child.unref();
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
