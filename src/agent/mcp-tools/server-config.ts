/** The configuration of other MCP servers, and the names under which their tools are offered. */
import { createHash } from "node:crypto";
import { basename, isAbsolute, sep } from "node:path";
import { headOf, shownName, fill } from "../../core/text.ts";
import type { Environment } from "../models/choose.ts";
import { McpUnavailableError } from "./failure-reasons.ts";
import table from "./variables.json" with { type: "json" };
import { readFileSync, statSync } from "node:fs";
import { parse } from "dotenv";
import { orElse } from "../../core/errors.ts";
import { isInside, realPath } from "../../core/real-path.ts";
import texts from "./texts.json" with { type: "json" };

interface ToolPolicy {
  /** Why the entry cannot be used: the server is never started, and this is the reason that people and models read. */
  problem?: string | undefined;
  /** Remarks on the reading of the entry, one sentence each. */
  notes?: readonly string[] | undefined;
  disabled?: boolean | undefined;
  /** Calls that a person approves. `writes`: all but those of tools the server declares read-only. */
  approve: "writes" | "all" | "none";
  /** Tools that run unasked all the same. Names here and below are the server's own. */
  alwaysAllow?: readonly string[] | undefined;
  /** Only these tools. Default: all. */
  tools?: readonly string[] | undefined;
  disabledTools?: readonly string[] | undefined;
  /** Longest silence during a call, in seconds. */
  timeout: number;
}

/** Started as a process that speaks MCP on its standard input and output. */
interface LocalMcpServer extends ToolPolicy {
  command: string;
  args: readonly string[];
  /** Added to the few harmless variables every child gets, such as PATH and HOME. */
  env: Readonly<Record<string, string>>;
  /** A file with lines `NAME=value`; `env` overrides it. */
  envFile?: string | undefined;
  cwd?: string | undefined;
}

/** Facts about this client for an authorization server. */
export interface OAuthSettings {
  /** A client that is registered there. Default: it registers itself. */
  clientId?: string | undefined;
  clientSecret?: string | undefined;
  /** Permissions, separated by blanks. Default: those that the server asks for. */
  scope?: string | undefined;
  /** Port of this machine to which the browser comes back. Default: a free one. */
  callbackPort?: number | undefined;
  /** This machine in the address to which the browser comes back. Default: 127.0.0.1. */
  callbackHost?: "127.0.0.1" | "localhost" | undefined;
  /** Address of a document that describes this client, for servers that know clients by such an address. */
  clientMetadataUrl?: string | undefined;
}

/** Reached over Streamable HTTP, or over the transport with two addresses that came before it. */
export interface RemoteMcpServer extends ToolPolicy {
  url: string;
  isOlder?: boolean;
  headers: Readonly<Record<string, string>>;
  oauth?: OAuthSettings | undefined;
  /** True if nobody logs in there, whatever the server asks for. */
  noLogin?: boolean | undefined;
}

export type McpServerConfig = LocalMcpServer | RemoteMcpServer;

/** True if a person can log in at the server: it has an address, and no header of its own for that. */
export const takesLogin = (server: McpServerConfig): server is RemoteMcpServer =>
  "url" in server &&
  !server.noLogin &&
  !Object.keys(server.headers).some((name) => /^authorization$/i.test(name));

/**
 * Fills in variables from the environment of this process, in the forms of `variables.json`, and reads the file of
 * an `envFile`. Values from there, and those of `env` and `headers`, count as secrets, unless they are plain words or
 * paths under a harmless name. Values are filled in once: those that look like variables stay as they are.
 *
 * @throws McpUnavailableError why the entry cannot be used, naming the variables that are not set.
 */
export function expandServer(
  config: McpServerConfig,
  env: Environment,
  workspace?: string,
): { server: McpServerConfig; secrets: readonly string[] } {
  if (config.problem !== undefined) throw new McpUnavailableError(config.problem);
  const secrets = new Set<string>();
  const keep = (name: string, value: string): void => {
    if (SECRET_NAME.test(name) || !HARMLESS_VALUE.test(value)) secrets.add(value);
  };
  const isShell = (command: string): boolean =>
    table.shells.includes(basename(command.replaceAll("\\", "/")).replace(/\.exe$/i, ""));
  const { text, missing, foreign } = variableFiller(env, workspace, keep);
  const secretRecord = (record: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(record).flatMap(([name, template]) => {
        if (/\$\([^)]/.test(template)) foreign.add("$(…)");
        const value = text(template);
        keep(name, value);
        // A variable that is passed on if it is set.
        return value === "" && template.endsWith(":-}") ? [] : [[name, value]];
      }),
    );
  const oauthOf = ({ clientSecret, ...oauth }: OAuthSettings): OAuthSettings => ({
    ...oauth,
    ...(clientSecret === undefined ? {} : secretRecord({ clientSecret })),
  });
  const server: McpServerConfig =
    "url" in config
      ? {
          ...config,
          url: text(config.url),
          headers: secretRecord(config.headers),
          ...(config.oauth === undefined ? {} : { oauth: oauthOf(config.oauth) }),
        }
      : {
          ...config,
          command: text(config.command),
          args: config.args.map((arg) => text(arg, isShell(config.command) || arg.includes("\n"))),
          env: secretRecord(config.env),
          cwd: config.cwd && text(config.cwd),
          envFile: config.envFile && text(config.envFile),
        };
  const names = (set: ReadonlySet<string>): string => headOf([...set].join(", "), 500);
  if (missing.size > 0)
    throw new McpUnavailableError(`it needs the environment variable ${names(missing)}, which is not set`);
  if (foreign.size > 0) throw new McpUnavailableError(fill(texts.unfilledVariables, names(foreign)));
  if ("url" in server) return { server, secrets: [...secrets] };
  if (server.cwd !== undefined && !isAbsolute(server.cwd))
    throw new McpUnavailableError("its cwd must be an absolute path, or relative to the configuration file");
  const fromFile = server.envFile === undefined ? {} : readEnvFile(server.envFile, workspace);
  for (const [name, value] of Object.entries(fromFile)) keep(name, value);
  return { server: { ...server, env: { ...fromFile, ...server.env } }, secrets: [...secrets] };
}

/** Names of variables and headers whose values are secret, whatever they look like. */
const SECRET_NAME = /key|token|secret|pass|pwd|pat$|auth|cred|cookie|session|private|signature|dsn|conn/i;
/** Words such as `production` or `eu-west-1`, numbers, media types and absolute paths: results are full of them. */
const HARMLESS_VALUE =
  /^(?:[a-z]+(?:[-_/.,; ][a-z]+){0,4}(?:-?\d{1,3})?|[\d.]{1,12}|~?(?:[A-Z]:)?(?:[\\/][\w. -]+){1,20}[\\/]?)$/;

/** Longest tool name that every provider takes. */
const MAX_NAME = 64;

/**
 * `server__tool`, in the alphabet of tool names. Server names have no `__` and do not end in `_`, so names
 * of two servers never meet; a tool name that had to be changed or cut gets a digest.
 */
export function offeredName(server: string, tool: string): string {
  const plain = `${server}__${tool.replace(/[^A-Za-z0-9_-]/g, "_")}`;
  if (plain.length <= MAX_NAME && plain === `${server}__${tool}`) return plain;
  const digest = createHash("sha256").update(tool).digest("hex").slice(0, 8);
  return `${headOf(plain, MAX_NAME - digest.length - 1)}_${digest}`;
}

/** A variable in any form. A default that is not closed reaches to the end, so that no later beginning is tried in it. */
const VARIABLE = new RegExp(table.variables.map(({ pattern }) => pattern).join("|"), "g");
const FORMS = table.variables.map((form) => ({ ...form, pattern: new RegExp(`^(?:${form.pattern})$`) }));

/** Replaces the variables of texts, and collects those that are not set or that only other programs fill in. */
function variableFiller(
  env: Environment,
  workspace: string | undefined,
  keep: (name: string, value: string) => void,
) {
  const missing = new Set<string>();
  const foreign = new Set<string>();
  const folders: Environment = {
    userHome: env["HOME"] ?? env["USERPROFILE"],
    workspaceFolder: workspace,
    workspaceFolderBasename: workspace && basename(workspace),
    pathSeparator: sep,
  };
  const text = (template: string, isShellText = false): string =>
    template.replace(VARIABLE, (whole) => {
      const form = FORMS.find(({ pattern }) => pattern.test(whole));
      const [, name, fallback] = form?.pattern.exec(whole) ?? [];
      if (form?.isForeign) foreign.add(shownName(whole));
      if (name === undefined || (whole.startsWith("${") && !whole.endsWith("}"))) return whole;
      if (folders[name] !== undefined) return folders[name];
      const value = (env[name] ?? env[name.toUpperCase()]) || fallback;
      // Passwords and percent-encoded texts have such parts too; a shell has variables of its own.
      const isText = form?.isBare && (isShellText || !/^[A-Z_][A-Z\d_]{2,}$/.test(name));
      if (value === undefined && isText) return whole;
      if (value === undefined) missing.add(name);
      else keep(name, value);
      return value ?? "";
    });
  return { text, missing, foreign };
}

/**
 * Reads the variables of a file. A file in the workspace is refused, because the agent could
 * add programs to the server's process there.
 *
 * @throws McpUnavailableError why it cannot be used, without its path and its text.
 */
function readEnvFile(path: string, workspace: string | undefined): Record<string, string> {
  const isOfWorkspace = workspace !== undefined && isInside(realPath(workspace), realPath(path));
  // A pipe would never end, and a large file is another one.
  const stats = isAbsolute(path) ? orElse(() => statSync(path), undefined) : undefined;
  const isRead = stats?.isFile() && stats.size <= 100_000;
  const content = isRead ? orElse(() => readFileSync(path, "utf8"), undefined) : undefined;
  if (!isOfWorkspace && content !== undefined && !content.includes("\0"))
    return parse(content.replace(/^\ufeff/, ""));
  throw new McpUnavailableError(isOfWorkspace ? texts.envFileInWorkspace : texts.unreadableEnvFile);
}
