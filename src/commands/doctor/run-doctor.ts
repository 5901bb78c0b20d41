import { loadConfig } from "../../config/load.ts";
import { packageVersion } from "../../config/package-info.ts";
import { colorsFor } from "../colors.ts";
import type { CommandArguments, ExitCode } from "../command.ts";
import {
  checkCommands,
  checkDataDir,
  checkModel,
  checkNode,
  checkSearch,
  checkStorage,
  checkWorkspace,
} from "./checks.ts";
import type { Check } from "./checks.ts";
import { checkEmbeddings, checkOtherModels, checkTools } from "./configured-checks.ts";

/** Prints one line for each check; exit code 1 when one of them failed. */
export async function runDoctor({ flags, host }: CommandArguments): Promise<ExitCode> {
  const loaded = loadConfig({ flags, ...host });
  const checks: Check[] = [checkNode(process.versions.node)];
  if (loaded.ok) {
    const { config, warnings } = loaded;
    checks.push({ name: "Configuration", ok: true, text: "valid" });
    checks.push(checkWorkspace(config, warnings), await checkDataDir(config));
    checks.push(await checkModel(config, host.env), ...checkOtherModels(config, host.env));
    checks.push(...checkEmbeddings(config, host.env));
    checks.push(await checkCommands(config), ...(await checkTools(config, host.env)));
  } else {
    checks.push(...loaded.problems.map((text) => ({ name: "Configuration", ok: false, text })));
  }
  checks.push(await checkStorage(), await checkSearch());
  const colors = colorsFor(process.stdout, host.env);
  const lines = checks.map(({ name, ok, text }) => {
    const mark = ok ? colors.green("✔") : colors.red("✖");
    return `${mark} ${name.padEnd(14)}${text.replaceAll("\n", `\n${" ".repeat(16)}`)}`;
  });
  const failed = checks.filter(({ ok }) => !ok).length;
  const verdict =
    failed === 0 ? "Everything a run needs is there." : `${failed} of ${checks.length} checks failed.`;
  process.stdout.write(`deepagent-mcp ${packageVersion()}\n\n${lines.join("\n")}\n\n${verdict}\n`);
  return failed === 0 ? 0 : 1;
}
