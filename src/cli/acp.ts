/** Serves an editor over the Agent Client Protocol on standard input and output. */
import { Readable, Writable } from "node:stream";
import { ndJsonStream } from "@agentclientprotocol/sdk";
import { editorFolders } from "../app/editor-folders.ts";
import { reserveStdout, sendTraces, surviveRejections, untilSignal } from "../app/lifecycle.ts";
import { loadConfig } from "../config/load.ts";
import { packageVersion } from "../config/paths.ts";
import { commandLine, dataDirFlag } from "../config/program.ts";
import { isDoneWithin } from "../core/clock.ts";
import { MAX_MESSAGE_BYTES, MESSAGE_TOO_LONG, bytesShapeProblem } from "../core/json.ts";
import { checkedLines } from "../core/message-lines.ts";
import { createLogger } from "../core/logger.ts";
import { serveEditor } from "../server/acp/editor.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import { complain } from "./output.ts";

/** Longest time to park runs and release resources; editors kill the process soon after. */
const GRACE_MS = 2000;

/** Serves until the editor leaves or a signal comes, then exits the process. Open runs are continued later. */
export async function runAcp({ flags, host }: CommandArguments): Promise<ExitCode> {
  const loaded = loadConfig({ flags, ...host });
  if (!loaded.ok) return complain(loaded.problems, 2);
  const { config } = loaded;
  const logger = createLogger(config.logLevel);
  surviveRejections(logger);
  const stdout = reserveStdout();
  // An editor may close either end at any time.
  stdout.on("error", () => undefined);
  process.stderr.on("error", () => undefined);
  const folders = editorFolders({ config, env: host.env, logger });
  const openCommand = (runId: string): string =>
    commandLine(host, ["runs", "open", runId, ...dataDirFlag(config, host)]);
  const lines = checkedLines(process.stdin, {
    maxBytes: MAX_MESSAGE_BYTES,
    tooLong: MESSAGE_TOO_LONG,
    problemOf: (line) => bytesShapeProblem(line),
    refuse: (id, message) => {
      // Invalid request.
      const error = { code: -32_600, message };
      stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, error })}\n`);
    },
  });
  const input = Readable.toWeb(Readable.from(lines, { objectMode: false }));
  const stream = ndJsonStream(Writable.toWeb(stdout), input, { maxMessageBytes: 2 * MAX_MESSAGE_BYTES });
  logger.info("acp.started", { pid: process.pid });
  const served = serveEditor({ version: packageVersion(), logger, openCommand, ...folders }, stream);
  await Promise.race([served, untilSignal()]);
  if (!(await isDoneWithin(GRACE_MS, folders.close())))
    logger.warn("acp.closed_late", { milliseconds: GRACE_MS });
  await sendTraces(host.env);
  process.exit(0);
}
