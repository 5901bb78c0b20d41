/** Decides which calls of a run a person approves; also where the settings would ask about nothing. */
import { join, relative } from "node:path";
import type { InterruptOn } from "../agent/agent.ts";
import { isAtOrBelow, stripPrefix, validatePath, withoutSlash } from "../backends/paths.ts";
import { IgnoreFiles } from "../backends/ignore-files.ts";
import { isStartingPath } from "../backends/sandbox/starting-places.ts";
import type { Config } from "../config/schema.ts";
import { isInside, realPath } from "../core/real-path.ts";
import { type MountedExecutor, isIsolated } from "./executors.ts";
import { type Owner, type PlacesConfig, readIgnoreFiles, workspaceOf } from "./owned-places.ts";
import { WORKSPACE_MOUNT } from "./settings.ts";

/** The calls of a run that a person approves. `served`: folders on other servers. */
export const runGates = (
  config: PlacesConfig & Pick<Config, "approvals">,
  owner: Owner,
  { mounted, served }: { mounted: MountedExecutor | undefined; served: readonly string[] },
  ignored = readIgnoreFiles(config, owner),
): InterruptOn => {
  const { approvals } = config;
  const places = workspacePlaces(workspaceOf(config, owner), ignored);
  // A person reviews the changes of a copy as a whole, and nothing starts programs from there.
  const isCopy = owner.changes === "propose";
  const isSandboxed = isIsolated(mounted);
  // Sandboxed commands cannot change files that start programs, unless the sandbox cannot protect these.
  const isUnasked = !isCopy && approvals.execute === "unsandboxed" && isSandboxed;
  const commands = { when: () => mounted?.executor.approvalReason?.() !== undefined };
  return {
    ...approvalGates(approvals, isSandboxed, { served, isCopy }),
    ...(isCopy || approvals.write !== "none" ? {} : changeGates(places.protectedChange)),
    ...(isUnasked ? { execute: commands } : {}),
    ...places.readingGates,
  };
};

/** Gates for calls by the places of the workspace that they name, also by links. */
export function workspacePlaces(workspace: string | undefined, ignored: IgnoreFiles | null) {
  const root = workspace === undefined ? undefined : realPath(workspace);
  const gateFor = (fits: (root: string, place: string) => boolean) =>
    where((args) =>
      pathsOf(args).some((path) => {
        if (root === undefined || path === undefined || !isAtOrBelow(path, WORKSPACE_MOUNT)) return false;
        const named = join(root, stripPrefix(WORKSPACE_MOUNT, path));
        return fits(root, named) || fits(root, realPath(named));
      }),
    );
  const isIgnored = (top: string, place: string): boolean =>
    isInside(top, place) && ignored?.isAsked(`/${relative(top, place).replaceAll("\\", "/")}`) === true;
  const reading = gateFor(isIgnored);
  /** Gates for the files that ignore files keep from agents. */
  const readingGates: InterruptOn = ignored === null ? {} : { read_file: reading, grep: reading };
  return {
    readingGates,
    /** For a change of a file that starts programs, has such rules, or that a person must allow to be read. */
    protectedChange: gateFor(
      (top, place) => isStartingPath(top, place) || IgnoreFiles.isOne(place) || isIgnored(top, place),
    ),
  };
}

const changeGates = (gate: InterruptOn[string]): InterruptOn => ({
  write_file: gate,
  edit_file: gate,
  delete: gate,
});

/** A gate for the calls whose arguments fit. */
const where = (fits: (args: Record<string, unknown>) => boolean) => ({
  when: ({ args }: { args: Record<string, unknown> }) => fits(args),
});

/**
 * The tool calls that a person approves: file changes as configured, and commands, unless they are sandboxed and the
 * configuration allows those. `served` are folders on other servers, which need approval like the workspace. `isCopy`:
 * the workspace is a copy, whose changes are reviewed as a whole.
 */
export function approvalGates(
  { write, execute }: Pick<Config["approvals"], "write" | "execute">,
  isSandboxed: boolean,
  { served = [], isCopy = false }: { served?: readonly string[]; isCopy?: boolean } = {},
): InterruptOn {
  const isWithinCopy = (path: string | undefined): boolean =>
    path !== undefined && path !== WORKSPACE_MOUNT && isAtOrBelow(path, WORKSPACE_MOUNT);
  const reachesOut = (args: Record<string, unknown>): boolean =>
    pathsOf(args).length === 0 || !pathsOf(args).every(isWithinCopy);
  const gate = {
    all: isCopy ? where(reachesOut) : true,
    none: false,
    workspace: where((args) => touches(isCopy ? served : [WORKSPACE_MOUNT, ...served], args)),
  }[write];
  return { ...changeGates(gate), execute: execute === "all" || !isSandboxed };
}

/**
 * True if a call with these arguments may change something in one of the folders. Also true for a folder around them,
 * and for arguments without a clear target.
 */
export function touches(folders: readonly string[], args: Record<string, unknown>): boolean {
  const paths = pathsOf(args);
  const isInOrAround = (folder: string, path: string | undefined): boolean =>
    path === undefined || isAtOrBelow(path, folder) || isAtOrBelow(withoutSlash(folder), path);
  return paths.length === 0 || paths.some((path) => folders.some((folder) => isInOrAround(folder, path)));
}

/** The paths in a call's arguments, `undefined` for invalid ones. Models also write `path`, which the tools accept. */
export const pathsOf = (args: Record<string, unknown>): Array<string | undefined> =>
  [args["file_path"], args["path"]]
    .filter((path) => path !== undefined)
    .map((path) => validatePath(path))
    .map((valid) => (valid.ok ? valid.path : undefined));
