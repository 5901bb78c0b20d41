/** The rules about calls of a run: those of the operator, and those that a workspace adds. */
import { join } from "node:path";
import { isAtOrBelow, stripPrefix, validatePath } from "../backends/paths.ts";
import type { IgnoreFiles } from "../backends/ignore-files.ts";
import type { Config } from "../config/schema.ts";
import { isInside, realPath } from "../core/real-path.ts";
import { parsedUrl } from "../core/unknown.ts";
import { approvedSite, displayHost } from "../web/url.ts";
import type { CallRules, RuledCall } from "../rules/call.ts";
import { allowingRules, readCommand, readRules } from "../rules/rule.ts";
import { type MountedExecutor, isIsolated } from "./executors.ts";
import { type Owner, type PlacesConfig, originalOf, workspaceOf } from "./owned-places.ts";
import { pathsOf, workspacePlaces } from "./run-gates.ts";
import { WORKSPACE_MOUNT } from "./settings.ts";

export interface RulePlaces {
  mounted: MountedExecutor | undefined;
  /** Folders on other servers. */
  served: readonly string[];
  ignored: IgnoreFiles | null;
  /** Other MCP servers whose instructions the agent has. */
  instructing: readonly string[];
}

/** The rules for the calls of a run. Returns undefined if it has no workspace. */
export function callRules(
  config: PlacesConfig & Pick<Config, "rules" | "mcpServers">,
  owner: Owner,
  { mounted, served, ignored, instructing }: RulePlaces,
): CallRules | undefined {
  const folder = originalOf(config, owner);
  const workspace = workspaceOf(config, owner);
  if (folder === undefined || workspace === undefined) return undefined;
  const { allow, afterUntrusted } = config.rules;
  const [deny = [], ask = []] = (["deny", "ask"] as const).map((kind) =>
    readRules([...config.rules[kind], ...(ignored?.settingsRules[kind] ?? [])]),
  );
  const { protectedChange } = workspacePlaces(workspace, ignored);
  const servers = Object.keys(config.mcpServers);
  /** The other MCP server of a tool. */
  const findServer = (tool: string): string | undefined =>
    servers.find((name) => tool.startsWith(`${name}__`));
  const callOf = (name: string, args: Record<string, unknown>, place?: string): RuledCall | undefined => {
    if (findServer(name) !== undefined) return { kind: "server_tool", name };
    switch (name) {
      case "execute": {
        const { shell = "sh", network: hasNetwork = true } = mounted?.executor.commands ?? {};
        const isSandboxed = isIsolated(mounted);
        return { kind: "command", command: String(args["command"]), shell, isSandboxed, hasNetwork };
      }
      case "write_file":
      case "edit_file":
        return describeEdit(args, place);
      case "web_fetch": {
        const url = parsedUrl(String(args["url"]));
        return url && { kind: "page", host: approvedSite(url) };
      }
      default:
        return undefined;
    }
  };
  return {
    judge: (name, args) => {
      const call = callOf(name, args);
      if (call === undefined) return {};
      const refusing = deny.find((rule) => rule.touches(call));
      if (refusing && (call.kind !== "command" || allowingRules(call, [refusing.text]) !== undefined))
        return { deny: `${name} was not run: the rule ${refusing.text} forbids this call.` };
      // A command line that is not understood, or has other commands too, may fit the rule.
      return refusing || ask.some((rule) => rule.touches(call)) ? { ask: true } : {};
    },
    describe: (name, args, { place }) => {
      const call = callOf(name, args, place);
      if (call === undefined || (call.kind === "edit" && protectedChange.when({ args }))) return undefined;
      const executor = mounted?.executor;
      if (call.kind === "command" && !staysInside(call, args, workspace, executor)) return undefined;
      const read = instructing.map((server) => `instructions of the MCP server ${server}`);
      const untrusted = afterUntrusted === "allow" ? { trusts: true as const } : { read };
      const isCovered = call.kind !== "command" || call.isSandboxed || config.rules.outsideSandbox;
      return { call, folder: realPath(folder), ...(isCovered ? { allow } : {}), ...untrusted };
    },
    untrustedSource: (name, args) => {
      const server = findServer(name);
      return server === undefined ? untrustedText(name, args, served) : `results of the MCP server ${server}`;
    },
  };
}

/** Names the untrusted source that a built-in tool reads. */
function untrustedText(name: string, args: Record<string, unknown>, served: readonly string[]) {
  if (name === "web_search") return "results of a web search";
  const url = name === "web_fetch" ? parsedUrl(String(args["url"])) : undefined;
  if (url !== undefined) return `a page of ${displayHost(url)}`;
  const paths = name === "read_file" || name === "grep" ? pathsOf(args) : [];
  const from = served.find((at) => paths.some((path) => path !== undefined && isAtOrBelow(path, at)));
  return from && `files of ${from}`;
}

function describeEdit(args: Record<string, unknown>, place: string | undefined): RuledCall | undefined {
  const places = [...pathsOf(args), ...(place === undefined ? [] : [place])];
  const isWithin = (path: string | undefined): path is string =>
    path !== undefined && path !== WORKSPACE_MOUNT && isAtOrBelow(path, WORKSPACE_MOUNT);
  if (places.length === 0 || !places.every(isWithin)) return undefined;
  const paths = places.map((path) => stripPrefix(WORKSPACE_MOUNT, path).replace(/^\/+/, ""));
  return { kind: "edit", paths: [...new Set(paths)] };
}

/** Variables by which a shell runs or finds other programs than a command line names. */
const SHELL_VARIABLES =
  /^(?:BASH_ENV|ENV|SHELLOPTS|BASHOPTS|CDPATH|GLOBIGNORE|POSIXLY_CORRECT|BASH_FUNC_.*)$/;

/** True if a command line runs in the workspace, with its protections, and finds its programs outside of it. */
function staysInside(
  call: Extract<RuledCall, { kind: "command" }>,
  { cwd }: Record<string, unknown>,
  workspace: string,
  executor: MountedExecutor["executor"] | undefined,
): boolean {
  if (executor?.approvalReason?.() !== undefined) return false;
  const root = realPath(workspace);
  const start = cwd === undefined ? undefined : validatePath(cwd);
  if (start && !(start.ok && isAtOrBelow(start.path, WORKSPACE_MOUNT))) return false;
  const line = readCommand(call);
  if (!line.ok) return true; // no rule covers it
  // A relative path may name another program in another folder.
  if (start !== undefined && line.isRelative) return false;
  let at = join(root, start?.ok ? stripPrefix(WORKSPACE_MOUNT, start.path) : "");
  for (const folder of line.changesFolder) {
    // Commands may see the workspace at another path than this machine.
    const directory = executor?.commands?.directory;
    if (directory !== undefined && isAtOrBelow(folder, directory))
      at = join(root, stripPrefix(directory, folder));
    else at = folder.startsWith("/") ? folder : join(at, folder);
    if (!isInside(root, realPath(at))) return false;
  }
  if (call.isSandboxed) return true;
  const path = (process.env["PATH"] ?? "").split(":");
  const isOwn = (entry: string): boolean => !entry.startsWith("/") || isInside(root, realPath(entry));
  return !path.some(isOwn) && !Object.keys(process.env).some((name) => SHELL_VARIABLES.test(name));
}
