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
  return {
    ...approvalGates(approvals, isIsolated(mounted), { served, isCopy }),
    ...(isCopy ? {} : starterGates(approvals, mounted, places.protectedChange)),
    ...places.readingGates,
  };
};

/** Gates for calls by the places of the workspace that they name, also by links. */
function workspacePlaces(workspace: string | undefined, ignored: IgnoreFiles | null) {
  const root = workspace === undefined ? undefined : realPath(workspace);
  const gateFor = (fits: (root: string, place: string) => boolean) =>
    where((args) =>
      pathsOf(args).some((path) => {
        const valid = validatePath(path);
        if (root === undefined || !valid.ok || !isAtOrBelow(valid.path, WORKSPACE_MOUNT)) return false;
        const named = join(root, stripPrefix(WORKSPACE_MOUNT, valid.path));
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

/**
 * Gates over those of `approvals.write: none` and `approvals.execute: unsandboxed`. Sandboxed commands cannot change
 * such files, so that they are asked about only while the sandbox cannot protect them.
 */
function starterGates(
  { write, execute }: Config["approvals"],
  mounted: MountedExecutor | undefined,
  changes: ReturnType<typeof where>,
): InterruptOn {
  const isUnasked = execute === "unsandboxed" && isIsolated(mounted);
  const commands = { when: () => mounted?.executor.approvalReason?.() !== undefined };
  return {
    ...(write === "none" ? Object.fromEntries(WRITE_TOOLS.map((tool) => [tool, changes])) : {}),
    ...(isUnasked ? { execute: commands } : {}),
  };
}

const WRITE_TOOLS = ["write_file", "edit_file", "delete"] as const;

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
  const gate = {
    all: isCopy ? where((args) => !haveAllBelow(WORKSPACE_MOUNT, args)) : true,
    none: false,
    workspace: where((args) => touches(isCopy ? served : [WORKSPACE_MOUNT, ...served], args)),
  }[write];
  const asksForCommands = execute === "all" || !isSandboxed;
  return { ...Object.fromEntries(WRITE_TOOLS.map((tool) => [tool, gate])), execute: asksForCommands };
}

/**
 * True if a call with these arguments may change something in one of the folders. Also true for a folder around them,
 * and for arguments without a clear target.
 */
export function touches(folders: readonly string[], args: Record<string, unknown>): boolean {
  const paths = pathsOf(args);
  const isInOrAround = (folder: string, path: unknown): boolean => {
    const valid = validatePath(path);
    return !valid.ok || isAtOrBelow(valid.path, folder) || isAtOrBelow(withoutSlash(folder), valid.path);
  };
  return paths.length === 0 || paths.some((path) => folders.some((folder) => isInOrAround(folder, path)));
}

/** True if a call with these arguments changes nothing outside of a folder. */
function haveAllBelow(folder: string, args: Record<string, unknown>): boolean {
  const paths = pathsOf(args);
  return (
    paths.length > 0 &&
    paths.every((path) => {
      const valid = validatePath(path);
      return valid.ok && valid.path !== folder && isAtOrBelow(valid.path, folder);
    })
  );
}

/** The paths in a call's arguments. Models also write `path`, which the tools accept. */
const pathsOf = (args: Record<string, unknown>): unknown[] =>
  [args["file_path"], args["path"]].filter((path) => path !== undefined);
