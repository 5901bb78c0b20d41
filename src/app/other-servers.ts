/** The other MCP servers that are configured, with the log-ins of this data directory. */
import { basename } from "node:path";
import { type PendingLogin, LoginFailed, beginLogin } from "../agent/mcp-tools/authorize.ts";
import { McpUnavailableError } from "../agent/mcp-tools/failure-reasons.ts";
import type { LoginOptions } from "../agent/mcp-tools/login.ts";
import { type McpTools, leftOutText, openMcpTools } from "../agent/mcp-tools/open-mcp-tools.ts";
import { takesLogin } from "../agent/mcp-tools/server-config.ts";
import type { Environment } from "../agent/models/choose.ts";
import { packageVersion } from "../config/paths.ts";
import type { Config } from "../config/schema.ts";
import type { Logger } from "../core/logger.ts";
import type { OtherServers, ServerState } from "../runs/other-servers.ts";
import { loginPlace, loginsOf } from "./logins.ts";
import { parsedUrl } from "../core/unknown.ts";

type Settings = Pick<Config, "dataDir" | "mcpServers" | "web" | "workspace">;

export const openOtherServers = (config: Settings, env: Environment, log: Logger): McpTools =>
  openMcpTools(config.mcpServers, {
    env,
    version: packageVersion(),
    log,
    logins: loginsOf(config, env),
    workspace: config.workspace,
  });

/** The servers of this process for the page. */
export class ServersForPeople implements OtherServers {
  readonly #tools: McpTools;
  readonly #config: Settings;
  readonly #env: Environment;
  readonly #logins: LoginOptions;
  /** Log-ins that wait for a browser, at most 20. */
  readonly #pending = new Map<string, { server: string; login: PendingLogin; until: number }>();

  constructor(tools: McpTools, config: Settings, env: Environment) {
    this.#tools = tools;
    this.#config = config;
    this.#env = env;
    this.#logins = loginsOf(config, env);
  }

  states(): ServerState[] {
    return this.#tools.states().map(serverState);
  }

  async ask(): Promise<void> {
    await this.#tools.forAgent({ isAskedFor: true });
  }

  beginLogin: OtherServers["beginLogin"] = async (name, redirectUrl) => {
    const given = this.#config.mcpServers[name];
    if (given === undefined) return { ok: false, problem: "It is not configured any more." };
    const place = loginPlace(given, this.#env);
    if (!place.ok) return { ok: false, problem: `It ${place.problem}` };
    const { server, secrets } = place;
    try {
      const { fetchFor, clock } = this.#logins;
      const login = await beginLogin({ server, secrets, redirectUrl, fetch: fetchFor(server.url), clock });
      const now = clock();
      for (const [state, { until }] of this.#pending) if (until < now) this.#pending.delete(state);
      if (this.#pending.size >= 20) return { ok: false, problem: "Too many log-ins wait." };
      this.#pending.set(login.state, { server: name, login, until: now + 600_000 });
      return { ok: true, address: login.address };
    } catch (error) {
      return { ok: false, problem: publicProblem(error) };
    }
  };

  finishLogin: OtherServers["finishLogin"] = async (answer) => {
    const state = answer.get("state") ?? "";
    const pending = this.#pending.get(state);
    if (pending === undefined || pending.until < this.#logins.clock())
      return { ok: false, problem: "This log-in has ended, or belongs to another process. Begin again." };
    this.#pending.delete(state);
    const { server } = pending;
    try {
      const login = await pending.login.finish(answer);
      await this.#logins.store.change(server, async () => login);
    } catch (error) {
      return { ok: false, problem: publicProblem(error), server };
    }
    await this.#tools.forAgent({ isAskedFor: true });
    return { ok: true, server };
  };
}

/** Returns only the text that is meant for people. */
function publicProblem(error: unknown): string {
  if (error instanceof LoginFailed) return error.message;
  if (error instanceof McpUnavailableError) return `It cannot be logged in at: ${error.message}.`;
  throw error;
}

function serverState({ name, config, last }: ReturnType<McpTools["states"]>[number]): ServerState {
  const { tools = [], gated = [], leftOut = [], notes = [], problems = [] } = last?.set ?? {};
  const [problem] = problems;
  const isGated = new Set(gated);
  return {
    name,
    // A URL whose variables are not filled in may not be valid yet.
    place:
      "url" in config
        ? (parsedUrl(config.url)?.host ?? "an address")
        : basename(config.command) || "not started",
    askedAt: last?.at,
    tools: tools.map((tool) => ({ name: tool.name.slice(name.length + 2), isGated: isGated.has(tool.name) })),
    notes: [...(config.notes ?? []), ...leftOut.map(leftOutText), ...notes.map(({ text }) => text)],
    problem: problem?.reason,
    needsLogin: problem?.needsLogin === true && takesLogin(config),
  };
}
