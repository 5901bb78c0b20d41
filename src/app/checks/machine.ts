/** Checks the machine: Node, the limits of its system, the driver of the storage, the search program. */
import { hasDescriptorPaths } from "../../backends/filesystem/handles.ts";
import { runProgram } from "../../core/child-process.ts";
import { DeepAgentError, errorMessage } from "../../core/errors.ts";
import type { Check } from "./check.ts";
import texts from "../texts.json" with { type: "json" };

const MIN_NODE = 20;

export function checkNode(version: string): Check {
  const ok = Number(version.split(".")[0]) >= MIN_NODE;
  return { name: "Node", ok, text: ok ? version : `${version} is too old; install ${MIN_NODE} or later` };
}

const BY_NAME = texts.pathsByName;

const LIMITS: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  darwin: [BY_NAME, texts.seatbeltLimits, texts.seatbeltLeftovers, "Searches have no memory limit."],
  win32: [
    BY_NAME,
    texts.windowsCommands,
    texts.windowsPermissions,
    texts.windowsProcesses,
    "Searches have no memory limit.",
  ],
};

/** The isolation that this system lacks compared to Linux, one sentence each. `tried`: the tests run on it. */
export function platformLimits(platform: NodeJS.Platform): { tried: boolean; limits: readonly string[] } {
  const others = hasDescriptorPaths(platform) ? [] : [BY_NAME];
  return { tried: platform === "linux", limits: LIMITS[platform] ?? others };
}

/** Lists the limits of this platform. Empty without limits. */
export function checkPlatform(platform: NodeJS.Platform): Check[] {
  const { tried, limits } = platformLimits(platform);
  const untried = tried ? [] : [`The tests of this program do not run on ${platform}.`];
  const found = [...untried, ...limits];
  return found.length === 0 ? [] : [{ name: "Platform", ok: true, text: found.join("\n") }];
}

/** Opens a database in memory, which shows that the driver can be loaded. */
export async function checkDriver(): Promise<Check> {
  const name = "Storage";
  const { DRIVER, repairAnywhere } = await import("../../storage/sqlite/driver.ts");
  try {
    const { openDatabase } = await import("../../storage/sqlite/database.ts");
    const database = openDatabase(":memory:");
    const version: unknown = database.prepare("SELECT sqlite_version()").pluck().get();
    database.close();
    return { name, ok: true, text: `SQLite ${String(version)} (${DRIVER})` };
  } catch (error) {
    const repair = error instanceof DeepAgentError ? `\nIn any folder: ${repairAnywhere()}` : "";
    return { name, ok: false, text: errorMessage(error) + repair };
  }
}

export async function checkSearch(): Promise<Check> {
  const name = "Search";
  try {
    const { rgPath } = await import("@vscode/ripgrep");
    const version = await runProgram(rgPath, ["--version"], { timeout: 5000 });
    return { name, ok: true, text: version.split("\n")[0] ?? "ripgrep" };
  } catch (error) {
    const text = `ripgrep cannot be run: ${errorMessage(error)}\nInstall again without --omit=optional.`;
    return { name, ok: false, text };
  }
}
