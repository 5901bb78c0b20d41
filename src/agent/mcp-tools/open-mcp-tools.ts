import { setImmediate as nextTurn } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Tool } from "@modelcontextprotocol/client";
import type { AgentTool } from "../contracts/middleware.ts";
import { systemClock } from "../../core/clock.ts";
import { shownName } from "../../core/text.ts";
import type { Logger } from "../../core/logger.ts";
import type { LeftOutTool } from "./answers.ts";
import { type ConnectionOptions, McpConnection } from "./connection.ts";
import { findHttpStatus } from "./failure-reasons.ts";
import { schemaChecks } from "./schema-checks.ts";
import { type McpServerConfig, offeredName } from "./server-config.ts";

export interface McpToolSet {
  tools: readonly AgentTool[];
  /** Names of the tools whose calls a person approves. */
  gated: readonly string[];
  /** Servers whose tools are missing, and why. */
  problems: ReadonlyArray<{ server: string; reason: string; needsLogin?: true }>;
  /** Instructions of servers. */
  instructions: ReadonlyArray<{ server: string; text: string }>;
  /** Servers that work otherwise than configured, one sentence each. */
  notes: ReadonlyArray<{ server: string; text: string }>;
  /** Tools that cannot be offered, of servers that can be used. */
  leftOut: ReadonlyArray<LeftOutTool & { server: string }>;
}

/** One sentence about a tool that is not offered. */
export const leftOutText = ({ server, tool, reason }: McpToolSet["leftOut"][number]): string =>
  `The tool '${tool}' of the MCP server '${server}' is left out: ${reason}.`;

export type McpTools = ReturnType<typeof openMcpTools>;

/** Other MCP servers as tools. Nothing is started before an agent is built. */
export function openMcpTools(servers: Readonly<Record<string, McpServerConfig>>, options: ConnectionOptions) {
  const connections = Object.entries(servers)
    .filter(([, { disabled }]) => disabled !== true)
    .map(([name, config]) => new McpConnection(name, config, options));
  for (const { name: server, config } of connections)
    if (config.notes?.length) options.log.warn("mcp_server_entry", { server, notes: config.notes });
  // A process that exits without closing would leave those behind that do not watch their input.
  const killAll = (): void => connections.forEach((connection) => connection.kill());
  if (connections.length > 0) process.once("exit", killAll);
  const last = new Map<McpConnection, { at: number; set: McpToolSet }>();
  const made = new Map<McpConnection, ReadonlyMap<string, Offered>>();
  const asked = async (connection: McpConnection): Promise<McpToolSet> => {
    const set = await listServerTools(connection, made, options.log);
    last.set(connection, { at: systemClock(), set });
    return set;
  };
  return {
    /** Number of notifications that tools changed. */
    changes: () => connections.reduce((sum, { toolChanges }) => sum + toolChanges, 0),
    /** Each server as it was when it was last asked for its tools. Without `last`, it was not asked yet. */
    states: () =>
      connections.map((connection) => ({
        name: connection.name,
        config: connection.config,
        last: last.get(connection),
      })),
    /**
     * Connects where needed, and lists the tools of every server. A server to which connecting has just failed is
     * asked again after a pause; `isAskedFor`, by a person: at once. Never rejects.
     */
    forAgent: async ({ isAskedFor = false }: { isAskedFor?: boolean } = {}): Promise<McpToolSet> => {
      if (isAskedFor) for (const connection of connections) connection.endPause();
      const sets = await Promise.all(connections.map(asked));
      return {
        tools: sets.flatMap(({ tools }) => tools),
        gated: sets.flatMap(({ gated }) => gated),
        problems: sets.flatMap(({ problems }) => problems),
        notes: sets.flatMap(({ notes }) => notes),
        instructions: sets.flatMap(({ instructions }) => instructions),
        leftOut: sets.flatMap(({ leftOut }) => leftOut),
      };
    },
    /** Ends every connection and every process behind one. */
    close: async () => {
      await Promise.all(connections.map((connection) => connection.close()));
      process.removeListener("exit", killAll);
    },
  };
}

/** A tool under its own name, with its entry in the list. */
interface Offered {
  own: string;
  listed?: Tool;
  tool: AgentTool;
}

/** `made`: the tools of earlier lists by their offered names. Runs share one while its entry in the list is the same. */
async function listServerTools(
  connection: McpConnection,
  made: Map<McpConnection, ReadonlyMap<string, Offered>>,
  log: Logger,
): Promise<McpToolSet> {
  const { name: server, config } = connection;
  let list: Awaited<ReturnType<McpConnection["listTools"]>>;
  try {
    list = await connection.listTools();
  } catch (error) {
    const reason = connection.reason(error);
    log.warn("mcp_server_unavailable", { server, reason });
    const needsLogin = "url" in config && findHttpStatus(error) === 401;
    const problem = { server, reason, ...(needsLogin ? { needsLogin } : {}) };
    return { tools: [], gated: [], problems: [problem], leftOut: [], notes: [], instructions: [] };
  }
  const { approve, tools: wanted, disabledTools = [], alwaysAllow = [] } = config;
  const [only, not, unasked] = [wanted && new Set(wanted), new Set(disabledTools), new Set(alwaysAllow)];
  const isWanted = (name: string): boolean => (only?.has(name) ?? true) && !not.has(name);
  const listed = new Set(list.tools.map(({ name }) => name));
  const left = list.leftOut.filter(({ tool }) => !not.has(tool));
  const absent = [...(wanted ?? []), ...not, ...unasked].filter((name) => !listed.has(name));
  if (absent.length > 0) log.warn("mcp_tools_unknown", { server, tools: absent });
  const checkOf = await schemaChecks();
  // Loaded once a server has answered, because it loads LangChain.
  const { mcpAgentTool } = await import("./tool.ts");
  const { materialTools } = await import("./material.ts");
  const nameOf = (own: string): string => offeredName(server, own);
  const offered = new Map<string, Offered>();
  for (const [at, tool] of list.tools.filter(({ name }) => isWanted(name)).entries()) {
    // Thousands of tools take long.
    if (at % 200 === 199) await nextTurn();
    const name = nameOf(tool.name);
    const known = made.get(connection)?.get(name);
    if (offered.has(name))
      left.push({ tool: shownName(tool.name), reason: "its name is too much like that of another tool" });
    else if (known && isDeepStrictEqual(known.listed, tool)) offered.set(name, known);
    else {
      const resultProblem = tool.outputSchema && checkOf(tool.outputSchema);
      const options = { name, connection, tool, problem: checkOf(tool.inputSchema), resultProblem };
      offered.set(name, { own: tool.name, listed: tool, tool: mcpAgentTool(options) });
    }
  }
  made.set(connection, new Map(offered));
  const materials = await materialTools(connection, listed, nameOf);
  for (const one of materials) if (isWanted(one.own)) offered.set(one.tool.name, one);
  if (left.length > 0)
    log.warn("mcp_tools_left_out", { server, count: left.length, tools: left.slice(0, 10) });
  // By default, a person approves all calls but those of tools declared read-only.
  const all = [...offered.values()];
  const gated = all.filter(
    ({ own, tool }) => approve !== "none" && (approve === "all" || tool.kind !== "read") && !unasked.has(own),
  );
  const { note, instructions: text } = connection;
  return {
    tools: all.map(({ tool }) => tool),
    gated: gated.map(({ tool }) => tool.name),
    problems: [],
    leftOut: left.map((one) => ({ ...one, server })),
    notes: note === undefined ? [] : [{ server, text: note }],
    instructions: text === "" || all.length === 0 ? [] : [{ server, text }],
  };
}
