import { reserveStdout, sendTraces, surviveRejections } from "../app/lifecycle.ts";
import { serverParts } from "../app/server-deps.ts";
import { loadConfig } from "../config/load.ts";
import { packageVersion } from "../config/paths.ts";
import { commandLine, dataDirFlag } from "../config/program.ts";
import { createLogger } from "../core/logger.ts";
import { serveStdioServer } from "../server/stdio/stdio.ts";
import type { CommandArguments, ExitCode } from "./command.ts";

/** Serves until the client leaves or a signal comes, then exits the process. */
export async function runServe({ flags, host }: CommandArguments): Promise<ExitCode> {
  const load = () => loadConfig({ flags, ...host });
  const loaded = load();
  if (!loaded.ok) {
    process.stderr.write(loaded.problems.map((problem) => `deepagent-mcp: ${problem}\n`).join(""));
    return 2;
  }
  const { config, warnings } = loaded;
  const logger = createLogger(config.logLevel);
  surviveRejections(logger);
  for (const message of warnings) logger.warn("config.warning", { message });
  const version = packageVersion();
  const overStdio = flags["http"] !== true;
  const openCommand = (runId: string): string =>
    commandLine(host, ["runs", "open", runId, ...dataDirFlag(config, host)]);
  const parts = serverParts({
    config,
    env: host.env,
    version,
    logger,
    page: overStdio,
    works: flags["no-work"] !== true,
    // Clients over stdio started this program, so they may read where it is installed.
    ...(overStdio ? { openCommand } : {}),
  });
  const facts = { version, pid: process.pid, workspace: config.workspace ?? null };
  if (!overStdio) {
    const { serveOverHttp } = await import("./serve-http.ts");
    const listening = (url: string): void => logger.info("server.started", { ...facts, url });
    await serveOverHttp(config, parts, { env: host.env, load, listening });
  } else {
    const { closed } = serveStdioServer(parts.deps, { stdout: reserveStdout(), close: () => parts.close() });
    logger.info("server.started", facts);
    await closed;
  }
  await sendTraces(host.env);
  process.exit(0);
}
