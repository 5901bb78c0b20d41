import { type Check, factsFor } from "../app/checks/check.ts";
import { runChecks } from "../app/checks/list.ts";
import { checkDriver, checkNode, checkPlatform, checkSearch } from "../app/checks/machine.ts";
import { loadConfig } from "../config/load.ts";
import { packageVersion } from "../config/paths.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import { say } from "./output.ts";
import { checkLines, colorsFor } from "./terminal/text.ts";

/** Makes all checks and prints one line for each; exit code 1 when one of them failed. */
export async function runDoctor({ flags, host }: CommandArguments): Promise<ExitCode> {
  const loaded = loadConfig({ flags, ...host });
  const name = "Configuration";
  const most = flags["offline"] === true ? "machine" : "network";
  const configured: Check[] = loaded.ok
    ? [{ name, ok: true, text: "valid" }, ...(await runChecks(await factsFor(loaded, host, true), most))]
    : loaded.problems.map((text) => ({ name, ok: false, text }));
  const usesFiles = !loaded.ok || loaded.config.storage === undefined;
  const checks = [
    checkNode(process.versions.node),
    ...checkPlatform(host.platform),
    ...configured,
    ...(usesFiles ? [await checkDriver()] : []),
    await checkSearch(),
  ];
  const lines = checkLines(checks, colorsFor(process.stdout, host.env));
  const failed = checks.filter(({ ok }) => !ok).length;
  const verdict =
    failed === 0
      ? "All checks passed. You're ready to start a run."
      : `${failed} of ${checks.length} checks failed.`;
  say(`deepagent-mcp ${packageVersion()}`, "", ...lines, "", verdict);
  return failed === 0 ? 0 : 1;
}
