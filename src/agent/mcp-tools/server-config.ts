/** The configuration of other MCP servers, and the names under which their tools are offered. */
import { createHash } from "node:crypto";
import { headOf } from "../../core/text.ts";
import type { Environment } from "../models/choose.ts";
import { McpUnavailableError } from "./failure-reasons.ts";

interface ToolPolicy {
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
  /** Address of a document that describes this client, for servers that know clients by such an address. */
  clientMetadataUrl?: string | undefined;
}

/** Reached over Streamable HTTP, or over the transport with two addresses that came before it. */
export interface RemoteMcpServer extends ToolPolicy {
  url: string;
  isOlder?: boolean;
  headers: Readonly<Record<string, string>>;
  oauth?: OAuthSettings | undefined;
}

export type McpServerConfig = LocalMcpServer | RemoteMcpServer;

/** True if a person can log in at the server: it has an address, and no header of its own for that. */
export const takesLogin = (server: McpServerConfig): server is RemoteMcpServer =>
  "url" in server && !new Headers(server.headers).has("authorization");

/**
 * Fills in `${NAME}`, `${env:NAME}` and `${NAME:-default}` from the environment of this process. Values from there, and
 * those of `env` and `headers`, count as secrets, unless they are plain words or paths under a harmless name.
 *
 * @throws McpUnavailableError naming the variables that are not set.
 */
export function expandServer(
  config: McpServerConfig,
  env: Environment,
): { server: McpServerConfig; secrets: readonly string[] } {
  const secrets = new Set<string>();
  const keep = (name: string, value: string): void => {
    if (SECRET_NAME.test(name) || !HARMLESS_VALUE.test(value)) secrets.add(value);
  };
  const missing = new Set<string>();
  const text = (template: string): string =>
    template.replace(VARIABLE, (whole, name: string, fallback: string | undefined) => {
      if (!whole.endsWith("}")) return whole;
      const value = env[name] || fallback;
      if (value === undefined) missing.add(name);
      else keep(name, value);
      return value ?? "";
    });
  const secretRecord = (record: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(record).map(([name, template]) => {
        const value = text(template);
        keep(name, value);
        return [name, value];
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
          args: config.args.map(text),
          env: secretRecord(config.env),
        };
  if (missing.size > 0) {
    const names = [...missing].join(", ");
    throw new McpUnavailableError(`it needs the environment variable ${names}, which is not set`);
  }
  return { server, secrets: [...secrets] };
}

/** A default that is not closed reaches to the end, so that no later beginning is tried within it. */
const VARIABLE = /\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?:\}|:-([^}]*)(?:\}|$))/g;
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
