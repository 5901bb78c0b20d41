/** Connections of the product to servers that tests make. */
import { onTestFinished } from "vitest";
import { McpConnection } from "../../../src/agent/mcp-tools/connection.ts";
import type { McpServerConfig } from "../../../src/agent/mcp-tools/server-config.ts";
import { createLogger } from "../../../src/core/logger.ts";

export const POLICY = { approve: "none", timeout: 20 } as const;
export const at = (url: string, more: object = {}): McpServerConfig => ({
  url,
  headers: {},
  ...POLICY,
  ...more,
});
export const run = (program: { command: string; args: string[] }): McpServerConfig => ({
  ...program,
  env: {},
  ...POLICY,
});

/** `patienceMs`: long, because the machine may be busy. */
export function connect(
  config: McpServerConfig,
  env: Record<string, string> = {},
  patienceMs: number = 60_000,
) {
  const lines: string[] = [];
  const log = createLogger("debug", (line) => void lines.push(line));
  const options = { env: { PATH: process.env["PATH"], ...env }, version: "0.0.0-test", log, patienceMs };
  const connection = new McpConnection("sloppy", config, options);
  onTestFinished(() => connection.close());
  const call = async (isRepeatable = false): Promise<unknown> => {
    const tool = { name: "a", inputSchema: { type: "object" as const } };
    const answer = await connection.call(tool, {}, new AbortController().signal, { isRepeatable });
    if ("unsent" in answer) throw new Error(answer.unsent);
    if (!("blocks" in answer)) throw new Error("the server asked a person");
    return answer.blocks;
  };
  return { connection, call, log: () => lines.join("") };
}

/** Rows without a public report. */
export const OWN = "ours";

export const FINE = [{ type: "text", text: "fine" }];

/** Lists the tools of a server, and calls one. */
export async function used(config: McpServerConfig) {
  const { connection, call, log } = connect(config);
  const { tools } = await connection.listTools();
  return { names: tools.map(({ name }) => name), answer: await call(), note: connection.note, log: log() };
}

/** The reason why a server's tools cannot be listed. */
export async function reason(config: McpServerConfig, env?: Record<string, string>): Promise<string> {
  const { connection } = connect(config, env);
  const error: unknown = await connection.listTools().catch((thrown: unknown) => thrown);
  return connection.reason(error);
}
