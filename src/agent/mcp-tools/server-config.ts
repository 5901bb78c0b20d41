/** The configuration of other MCP servers, and the names under which their tools are offered. */
import { createHash } from "node:crypto";
import { headOf } from "../../core/text.ts";
import type { Environment } from "../models/choose.ts";
import { McpUnavailableError } from "./failure-reasons.ts";

/** Which calls of a server's tools a person approves. */
type McpApproval = "writes" | "all" | "none";

interface ToolPolicy {
  /** `writes`: all calls but those of tools the server declares read-only. */
  approve: McpApproval;
  /** Tools that run unasked all the same. Names here and below are the server's own. */
  alwaysAllow?: readonly string[] | undefined;
  /** Only these tools. Default: all. */
  tools?: readonly string[] | undefined;
  /** None of these tools. */
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

/** Reached over Streamable HTTP, or over the transport with two addresses that came before it. */
interface RemoteMcpServer extends ToolPolicy {
  url: string;
  isOlder?: boolean;
  headers: Readonly<Record<string, string>>;
}

export type McpServerConfig = LocalMcpServer | RemoteMcpServer;

/** A server with its variables filled in, and the secrets among them. */
export interface ExpandedServer {
  server: McpServerConfig;
  secrets: readonly string[];
}

/**
 * Fills in `${NAME}`, `${env:NAME}` and `${NAME:-default}` from the environment of this process. Everything that came
 * from there, and every value of `env` and `headers`, counts as a secret.
 *
 * @throws McpUnavailableError naming the variables that are not set.
 */
export function expandServer(config: McpServerConfig, env: Environment): ExpandedServer {
  const secrets = new Set<string>();
  const missing = new Set<string>();
  const text = (template: string): string =>
    template.replace(VARIABLE, (whole, name: string, fallback: string | undefined) => {
      if (!whole.endsWith("}")) return whole;
      const value = env[name] || fallback;
      if (value === undefined) missing.add(name);
      else secrets.add(value);
      return value ?? "";
    });
  const secretRecord = (record: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(record).map(([name, template]) => {
        const value = text(template);
        secrets.add(value);
        return [name, value];
      }),
    );
  const server: McpServerConfig =
    "url" in config
      ? { ...config, url: text(config.url), headers: secretRecord(config.headers) }
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
  return { server, secrets: [...secrets].filter((secret) => secret.length >= SHORTEST_SECRET) };
}

/** A default that is not closed reaches to the end, so that no later beginning is tried within it. */
const VARIABLE = /\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?:\}|:-([^}]*)(?:\}|$))/g;
/** Shorter values are words such as `1` or `true`, which mean nothing on their own. */
const SHORTEST_SECRET = 6;
/** Longest tool name that every provider takes. */
const MAX_NAME = 64;

/**
 * `server__tool`, in the alphabet of tool names. Server names have no `__` and do not end in `_`, so names
 * of two servers never meet; a tool name that had to be changed or cut is told apart by a digest.
 */
export function offeredName(server: string, tool: string): string {
  const plain = `${server}__${tool.replace(/[^A-Za-z0-9_-]/g, "_")}`;
  if (plain.length <= MAX_NAME && plain === `${server}__${tool}`) return plain;
  const digest = createHash("sha256").update(tool).digest("hex").slice(0, 8);
  return `${headOf(plain, MAX_NAME - digest.length - 1)}_${digest}`;
}
