/** Serves an editor over the Agent Client Protocol: a session is a thread, a prompt is a run or a message to it. */
import * as acp from "@agentclientprotocol/sdk";
import { randomUUID } from "node:crypto";
import { isoTime, monotonicClock } from "../../core/clock.ts";
import { DeepAgentError } from "../../core/errors.ts";
import { type IdSource, randomId } from "../../core/ids.ts";
import type { Logger } from "../../core/logger.ts";
import { displayText, oneLine } from "../../core/text.ts";
import { type Run, type RunSummary, nameOf } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import type { OfferedCommand } from "../contracts/deps.ts";
import { goalOf, taskOf } from "./prompt.ts";
import type { Editor } from "./people.ts";
import { MAX_REPLAYED, Session } from "./session.ts";
import { messageOf } from "./updates.ts";
import type { AnyMessage } from "@agentclientprotocol/sdk";
import { isRecord } from "../../core/unknown.ts";
import words from "./words.json" with { type: "json" };

/** Sessions in one answer. */
const LISTED = 50;

export interface EditorDeps {
  version: string;
  logger: Logger;
  /** Opens the runs of a folder, whose agents also get these MCP servers. */
  open: (folder: string, servers: readonly acp.McpServer[]) => Promise<OpenedFolder>;
  /** The runs of all folders, to look at. */
  runs: () => Promise<PrincipalRuns>;
  folderOf: (run: Pick<Run, "environment">) => string | undefined;
  /** A line for a shell of this machine that opens the page of a run. */
  openCommand: (runId: string) => string;
  /** Default: random. */
  newId?: IdSource;
}

export type OpenedFolder =
  | {
      ok: true;
      runs: PrincipalRuns;
      folder: string;
      /** Reads the commands that the person may start. */
      commands(): Promise<readonly OfferedCommand[]>;
      /** Sentence about the missing abilities of the session. */
      note?: string;
      worksOn(run: Pick<Run, "environment">): boolean;
    }
  | { ok: false; problem: string };

/** Serves until the editor leaves; then nothing is shown any more, and the runs are kept. */
export async function serveEditor(deps: EditorDeps, stream: acp.Stream): Promise<void> {
  const served = new EditorServer(deps);
  const connection = served.connect({
    writable: stream.writable,
    readable: stream.readable.pipeThrough(
      new TransformStream<AnyMessage, AnyMessage>({
        transform: (message, controller) => controller.enqueue(strictRequest(message)),
      }),
    ),
  });
  await connection.closed.catch((error: unknown) => deps.logger.info("acp.closed", { error }));
  served.close();
}

class EditorServer {
  readonly #deps: EditorDeps;
  readonly #sessions = new Map<string, Session>();
  readonly #commands = new Map<string, () => Promise<readonly OfferedCommand[]>>();
  #capabilities: acp.ClientCapabilities = {};
  #connection: acp.AgentConnection | undefined;

  constructor(deps: EditorDeps) {
    this.#deps = deps;
  }

  connect(stream: acp.Stream): acp.AgentConnection {
    const { session, initialize, authenticate } = acp.methods.agent;
    const app = acp
      .agent({ name: "deepagent-mcp" })
      .onRequest(initialize, ({ params }) => {
        this.#capabilities = params.clientCapabilities ?? {};
        return {
          protocolVersion: acp.PROTOCOL_VERSION,
          agentInfo: { name: "deepagent-mcp", title: "Deep Agent", version: this.#deps.version },
          agentCapabilities: words.abilities,
          authMethods: [],
        };
      })
      .onRequest(authenticate, () => {
        throw refusal("This agent needs no log-in. Keys of models are set with: deepagent-mcp keys set NAME");
      })
      .onRequest(session.new, ({ params }) => this.#guarded(() => this.#new(params)))
      .onRequest(session.load, ({ params }) => this.#guarded(() => this.#load(params)))
      .onRequest(session.list, ({ params }) => this.#guarded(() => this.#list(params)))
      .onRequest(session.prompt, ({ params, signal }) =>
        this.#guarded(async () => {
          const open = this.#sessions.get(params.sessionId);
          if (open === undefined) throw unknownSession(params.sessionId);
          const task = taskOf(params.prompt, open.folder);
          if (!task.ok) throw refusal(task.problem);
          const given = goalOf(params);
          if (!given.ok) throw refusal(given.problem);
          const text = await this.#filled(params.sessionId, task.text);
          return open.prompt({ text, goal: given.goal }, signal);
        }),
      )
      .onNotification(session.cancel, ({ params }) =>
        this.#guarded(async () => this.#sessions.get(params.sessionId)?.cancel()),
      );
    return (this.#connection = app.connect(stream));
  }

  close(): void {
    for (const session of this.#sessions.values()) session.close();
    this.#sessions.clear();
  }

  async #new({ cwd, mcpServers }: acp.NewSessionRequest): Promise<{ sessionId: string }> {
    const opened = await this.#open(cwd, mcpServers);
    const sessionId = (this.#deps.newId ?? randomId)("thr");
    this.#add(sessionId, opened, false);
    // The editor has to know the session first.
    setImmediate(() => void this.#showCommands(sessionId).catch(() => undefined));
    return { sessionId };
  }

  async #load({ sessionId, cwd, mcpServers }: acp.LoadSessionRequest): Promise<Record<string, never>> {
    const opened = await this.#open(cwd, mcpServers);
    const { folderOf } = this.#deps;
    const found = await opened.runs.read.summaries({ threadId: sessionId }, { limit: MAX_REPLAYED });
    const [newest] = found;
    if (newest === undefined) throw unknownSession(sessionId);
    const folder = folderOf(newest);
    if (folder !== opened.folder)
      throw refusal(
        `This session works in another folder${folder === undefined ? "" : `: ${folder}`}. Open that folder in the editor to continue it.`,
      );
    this.#sessions.get(sessionId)?.close();
    const session = this.#add(sessionId, opened, true);
    await session.replay(found.toReversed());
    if (newest.endedAt === undefined && !opened.worksOn(newest)) {
      const message =
        "_This run was started with another kind of model (offline or a language model) and continues only with that one. Start the agent with it again, or cancel the run._";
      await this.#say(sessionId, message);
    }
    await this.#showCommands(sessionId);
    return {};
  }

  async #showCommands(sessionId: string): Promise<void> {
    const commands = (await this.#commandsOf(sessionId)).map(({ name, description, hint, inputs }) => ({
      name,
      description: description || name,
      input: { hint: hint ?? (inputs.join(" ") || "what the command is about") },
    }));
    const availableCommands = [words.goalCommand, ...commands];
    return this.#update(sessionId, { sessionUpdate: "available_commands_update", availableCommands });
  }

  async #commandsOf(sessionId: string): Promise<readonly OfferedCommand[]> {
    try {
      const commands = (await this.#commands.get(sessionId)?.()) ?? [];
      return commands.filter(({ name }) => name !== words.goalCommand.name);
    } catch (error) {
      this.#deps.logger.warn("acp.commands_not_read", { error });
      return [];
    }
  }

  /** The text of a prompt, or the task of the command that it names. */
  async #filled(sessionId: string, text: string): Promise<string> {
    const [, named, args = ""] = /^\/(\S+)(?:\s+([\s\S]*))?$/.exec(text) ?? [];
    const commands = named === undefined ? [] : await this.#commandsOf(sessionId);
    return commands.find(({ name }) => name === named)?.fill(args) ?? text;
  }

  async #list({ cwd, cursor }: acp.ListSessionsRequest): Promise<acp.ListSessionsResponse> {
    const { folderOf } = this.#deps;
    const runs = await this.#deps.runs();
    const page = { limit: LISTED + 1, ...(typeof cursor === "string" ? { before: cursor } : {}) };
    const found = await runs.read.summaries({}, page);
    const shown = found.slice(0, LISTED);
    const isNewest = async ({ id, threadId }: RunSummary): Promise<boolean> => {
      const [newest] = await runs.read.summaries({ threadId }, { limit: 1 });
      return newest?.id === id;
    };
    const newest = await Promise.all(shown.map(async (run) => ((await isNewest(run)) ? [run] : [])));
    const sessions = newest.flat().flatMap((run) => {
      const folder = folderOf(run);
      if (folder === undefined || (typeof cwd === "string" && cwd !== folder)) return [];
      const title = oneLine(displayText(nameOf(run)), 120);
      return [{ sessionId: run.threadId, cwd: folder, title, updatedAt: isoTime(run.updatedAt) }];
    });
    const last = found.length > LISTED ? shown.at(-1)?.id : undefined;
    return { sessions, ...(last === undefined ? {} : { nextCursor: last }) };
  }

  async #open(cwd: string, servers: readonly acp.McpServer[]): Promise<Extract<OpenedFolder, { ok: true }>> {
    const opened = await this.#deps.open(cwd, servers);
    if (!opened.ok) throw refusal(opened.problem);
    return opened;
  }

  #add(sessionId: string, opened: Extract<OpenedFolder, { ok: true }>, hasThread: boolean): Session {
    const { logger, openCommand } = this.#deps;
    const { session: requests, elicitation } = acp.methods.client;
    const { client } = this.#connected();
    const until = (cancellationSignal: AbortSignal) => ({ cancellationSignal, stopWaitingOnCancel: true });
    const permission: Editor["permission"] = (request, signal) =>
      client.request(requests.requestPermission, request, until(signal));
    const form: Editor["form"] = (request, signal) =>
      client.request(elicitation.create, request, until(signal));
    const desk = {
      sessionId,
      cwd: opened.folder,
      runs: opened.runs,
      editor: this.#capabilities.elicitation?.form ? { permission, form } : { permission },
      logger,
      clock: monotonicClock,
      openCommand,
      say: (text: string) => this.#say(sessionId, text),
      update: (change: acp.SessionUpdate) => this.#update(sessionId, change),
    };
    const session = new Session(desk, { hasThread, note: opened.note });
    this.#sessions.set(sessionId, session);
    this.#commands.set(sessionId, () => opened.commands());
    return session;
  }

  #say(sessionId: string, text: string): Promise<void> {
    return this.#update(sessionId, messageOf("agent_message_chunk", `\n\n${text}\n\n`, randomUUID()));
  }

  async #update(sessionId: string, update: acp.SessionUpdate): Promise<void> {
    await this.#connected().client.notify(acp.methods.client.session.update, { sessionId, update });
  }

  #connected(): acp.AgentConnection {
    if (this.#connection === undefined) throw new Error("The editor is not connected yet.");
    return this.#connection;
  }

  /** Errors that are meant for people keep their text; of others the editor gets no detail. */
  async #guarded<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof acp.RequestError) throw error;
      this.#deps.logger.warn("acp.request_failed", { error });
      if (error instanceof DeepAgentError)
        throw new acp.RequestError(INTERNAL_ERROR, error.message, { reason: error.code });
      throw new acp.RequestError(INTERNAL_ERROR, "The request failed. The log of the agent says why.");
    }
  }
}

const [INVALID_PARAMS, INTERNAL_ERROR] = [-32_602, -32_603];

const refusal = (message: string): acp.RequestError => new acp.RequestError(INVALID_PARAMS, message);
const unknownSession = (sessionId: string): acp.RequestError =>
  Object.assign(acp.RequestError.sessionNotFound(sessionId), {
    message: "There is no such session. session/list names those of the folder; session/new begins one.",
  });

function strictRequest(message: AnyMessage): AnyMessage {
  const opens = "method" in message && ["session/new", "session/load"].includes(message.method);
  if (!opens || !isRecord(message.params)) return message;
  const { mcpServers = [], ...others } = message.params;
  return {
    ...message,
    params: { ...others, mcpServers: Array.isArray(mcpServers) ? mcpServers.map(strictServer) : mcpServers },
  };
}

function strictServer(server: unknown): unknown {
  if (!isRecord(server)) return server;
  const { args = [], env = [], headers = [], ...others } = server;
  return "command" in server
    ? { ...others, args: args ?? [], env: toPairs(env) }
    : { type: "http", ...others, headers: toPairs(headers) };
}

const toPairs = (given: unknown): unknown =>
  isRecord(given) ? Object.entries(given).map(([name, value]) => ({ name, value })) : (given ?? []);
