import { reserveStdout, sendTraces, surviveRejections, untilSignal } from "../app/lifecycle.ts";
import { serverParts } from "../app/server-deps.ts";
import { loadConfig } from "../config/load.ts";
import { packageVersion } from "../config/paths.ts";
import { createLogger } from "../core/logger.ts";
import { type CommandArguments, type ExitCode } from "./command.ts";
import { complain } from "./local-runs.ts";

/** Works on runs that servers on the same storage take, until a signal comes, then exits the process. */
export async function runWork({ flags, host }: CommandArguments): Promise<ExitCode> {
  const load = () => loadConfig({ flags, ...host });
  const loaded = load();
  if (!loaded.ok) {
    process.stderr.write(loaded.problems.map((problem) => `deepagent-mcp: ${problem}\n`).join(""));
    return 2;
  }
  const { config, warnings } = loaded;
  if (config.workspace === undefined) return complain(warnings.join("\n"), 2);
  const logger = createLogger(config.logLevel);
  surviveRejections(logger);
  reserveStdout();
  const version = packageVersion();
  const parts = serverParts({ config, env: host.env, version, logger });
  const facts = { version, pid: process.pid, workspace: config.workspace };
  const { drained, serveOverHttp } = await import("./serve-http.ts");
  if (flags["http"] === true) {
    const listening = (url: string): void => logger.info("worker.started", { ...facts, url });
    await serveOverHttp(config, parts, { env: host.env, load, listening, takesRequests: false });
  } else {
    const signal = untilSignal();
    await parts.operator();
    logger.info("worker.started", facts);
    logger.info("worker.closing", { reason: await signal });
    await drained(parts, config.limits.drain);
    await parts.close();
  }
  await sendTraces(host.env);
  process.exit(0);
}
