/** One connection to another MCP server: opened, kept and opened again, with bounds on the tools that it lists. */
import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as nextTurn, setTimeout as wait } from "node:timers/promises";
import type { Client, ElicitResult, RequestOptions, Result, Tool } from "@modelcontextprotocol/client";
import { type Clock, LONGEST_TIMER_MS, monotonicClock } from "../../core/clock.ts";
import { defined } from "../../core/unknown.ts";
import { TooManyQuestions, questionCounter } from "../../tools/question-quota.ts";
import type { HoldQuestion } from "../../tools/tool.ts";
import { codeOf, orElse } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import type { Environment } from "../models/choose.ts";
import type { ReadResult, TheirTask } from "./answers.ts";
import { acceptAnyAnswer, rawAnswer, readResult, readTask } from "./answers.ts";
import { McpUnavailableError, findHttpStatus, describeServerFailure, retryPause } from "./failure-reasons.ts";
import { isSessionLost } from "./messages.ts";
import { callTimer } from "./call-time.ts";
import { type LoginOptions, ServerLogin } from "./login.ts";
import { Redactor } from "./redactor.ts";
import type { Continuation, InputRequired } from "./elicitation.ts";
import { elicitResult, parseElicitation, refusedUntilOpened } from "./elicitation.ts";
import { type McpServerConfig, expandServer, takesLogin } from "./server-config.ts";
import { ToolList } from "./tool-list.ts";
import { BROKEN_OFF, type Way, createTransport, isDetour, mayAnswer, waysTo } from "./transports.ts";

/** Ends a process, unless it has ended already. */
const killProcess = (pid: number | null): boolean =>
  pid !== null && orElse(() => process.kill(pid, "SIGKILL"), false);

/** Time a server may take to list its protocol revisions, in ms; older servers may not answer. */
const PROBE_MS = 4000;

export interface ConnectionOptions {
  env: Environment;
  /** Version that this client reports to servers. */
  version: string;
  log: Logger;
  /** The folder for which `${workspaceFolder}` stands in entries. */
  workspace?: string | undefined;
  /** Milliseconds an agent waits for a server that is starting. Default 15 s. */
  patienceMs?: number;
  /** Log-ins at servers by OAuth. Default: none. */
  logins?: LoginOptions;
  /** Measures the pauses between failed attempts to connect. Default: the process's own clock. */
  clock?: Clock;
}

export interface CallOptions {
  /** A second call changes nothing more. */
  isRepeatable?: boolean;
  /** Asks a person while the call is at work. */
  hold?: HoldQuestion | undefined;
  /** Called with the reason why nobody was asked a question that may belong to this call. */
  lose?: (why: string) => void;
  /** Answers that the server asked for when the call was first made. */
  continuation?: Continuation | undefined;
  /** A task of 2025-11-25 that the call began: its result is requested. */
  task?: TheirTask;
}

type CallAtWork = Pick<CallOptions, "hold" | "lose"> & {
  time: ReturnType<typeof callTimer>;
  count: ReturnType<typeof questionCounter>;
};

/** The call on whose stream a message came. One for all connections, because each one slows all promises down. */
const heardCall = new AsyncLocalStorage<CallAtWork>();

interface Attempt {
  client: Promise<Client>;
  /** Rejects when an agent has waited long enough; the attempt itself continues. */
  patience: Promise<never>;
  /** The id of the server's process, if there is one. */
  pid: () => number | null;
  /** The last lines of its standard output that are not messages. */
  noise: () => string;
  isOpen: boolean;
  waiting: number;
}

/** One MCP server: connected on first use, and again after its connection was lost. */
export class McpConnection {
  /** Time for which a list that ended late counts as the newest. */
  static readonly #lateListMs = 5 * 60_000;
  readonly name: string;
  readonly config: McpServerConfig;
  readonly #options: ConnectionOptions;
  #attempt: Attempt | undefined;
  #redactor = new Redactor();
  #closed = false;
  readonly #atWork = new Set<CallAtWork>();
  #way: Way | undefined;
  /** True if the last agent waited in vain: the next ones wait a fifth of the time. */
  #isSlow = false;
  #hasNoise = false;
  /** Reports changed tools. */
  #listening: Client | undefined;
  /** Number of notifications that the tools changed, and of lists that ended after an agent had ceased to wait. */
  toolChanges = 0;
  /** The list that is being read, with the changes before it. A late one is the newest `until` a time or a change. */
  #reading: { list: Promise<ToolList>; changes: number; until: number; ended?: Promise<false> } | undefined;
  /** Instructions of the server; empty before it was reached. */
  instructions = "";
  readonly #pause: ReturnType<typeof retryPause>;

  constructor(name: string, config: McpServerConfig, options: ConnectionOptions) {
    this.name = name;
    this.config = config;
    this.#options = options;
    this.#pause = retryPause(options.clock ?? monotonicClock);
  }

  /** Lets the next use connect at once, although the last attempt has just failed. */
  endPause(): void {
    this.#pause.end();
  }

  /** Names the transport over which the server was reached; `undefined` if it is the configured one. */
  get note(): string | undefined {
    if (this.#way === undefined || !isDetour(this.#way, this.config)) return undefined;
    const [transport, type] =
      this.#way === "sse" ? ["the older HTTP+SSE transport", "sse"] : ["Streamable HTTP", "http"];
    return `The MCP server '${this.name}' was reached over ${transport}. Set its type to "${type}" to connect at once.`;
  }

  /**
   * The tools that the server lists now, and those that cannot be offered. An error after the first page costs the rest
   * of the list only. An agent does not wait long for a list: its rest is reported like a change of the tools.
   *
   * @throws McpUnavailableError
   */
  async listTools(): Promise<Pick<ToolList, "tools" | "leftOut">> {
    const timeout = this.#patienceMs();
    const patience = wait(timeout, true, { ref: false });
    // A server of 2026-07-28 reports changed tools to those who listen. They may have changed when it stops.
    await this.#guarded(async (client) => {
      const { tools } = client.getServerCapabilities() ?? {};
      if (this.#listening === client || !tools?.listChanged || client.getProtocolEra() !== "modern") return;
      this.#listening = client;
      const ended = (): void => {
        this.toolChanges += 1;
        if (this.#listening === client) this.#listening = undefined;
      };
      const listen = client.listen({ toolsListChanged: true });
      listen.then(({ closed }) => closed.then(ended)).catch(() => undefined);
    }, true);
    if (this.#reading?.changes !== this.toolChanges || monotonicClock() > this.#reading.until) {
      const first = this.ask("tools/list", {}, { timeout }).catch((error: unknown) => {
        if (codeOf(error) === "REQUEST_TIMEOUT") this.#isSlow = true;
        // A server without tools may not know the question.
        if (Reflect.get(Object(error), "code") === -32_601) return {};
        throw error;
      });
      const ask = (params: object, signal: AbortSignal) => this.ask("tools/list", { ...params }, { signal });
      const list = first.then((page) => new ToolList(page, ask, (error) => this.reason(error)));
      this.#reading = { list, changes: this.toolChanges, until: Infinity };
    }
    const reading = this.#reading;
    const isCurrent = (): boolean => this.#reading === reading;
    try {
      const list = await reading.list;
      const isLate = await Promise.race([list.end, patience]);
      this.#isSlow = isLate;
      if (!isLate && reading.until === Infinity && isCurrent()) this.#reading = undefined;
      if (!isLate) return list;
      // Nobody asks for the rest if the tools have changed since.
      if (!isCurrent()) list.stop();
      reading.ended ??= list.end.then((isOpen) => {
        if (!isCurrent()) return isOpen;
        reading.changes = this.toolChanges += 1;
        reading.until = monotonicClock() + McpConnection.#lateListMs;
        return isOpen;
      });
      const rest = ToolList.further("its list has not ended yet; the rest is offered when it has");
      return { tools: [...list.tools], leftOut: [...list.leftOut, rest] };
    } catch (error) {
      if (isCurrent()) this.#reading = undefined;
      throw error;
    }
  }

  async has(capability: "resources" | "prompts"): Promise<boolean> {
    return this.#guarded(async (client) => client.getServerCapabilities()?.[capability] !== undefined, true);
  }

  /** Requests lists, resources, prompts or a task. Returns the server's answer without secrets. */
  async ask(
    method: string,
    params: Record<string, unknown>,
    options: RequestOptions,
  ): Promise<Record<string, unknown>> {
    const timed = { timeout: this.config.timeout * 1000, ...options };
    const request = { method, params };
    const answer = await this.#guarded((client) => client.request(request, ANY_RESULT, timed), true);
    return rawAnswer(answer as Result); // `ANY_RESULT` does not declare it
  }

  /**
   * Makes one call, or returns why it was not sent. Makes it once more if the server had lost the session, and so did
   * nothing; if the connection broke, only a call that `isRepeatable`. @throws the error that the server answered with,
   * or that of a connection that broke.
   */
  async call(
    { name, inputSchema, execution }: Tool,
    args: Record<string, unknown>,
    signal: AbortSignal,
    { isRepeatable = false, hold, lose, continuation, task }: CallOptions = {},
  ): Promise<ReadResult | InputRequired | TheirTask | { unsent: string }> {
    let [isSent, isTask] = [false, false];
    const time = callTimer(this.config.timeout * 1000, signal);
    const atWork = { hold, lose, time, count: questionCounter() };
    const options = {
      signal: time.signal,
      timeout: LONGEST_TIMER_MS,
      onprogress: () => time.restart(),
      allowInputRequired: true,
      // Declares the arguments that are sent as headers. Without an outputSchema, the package passes on every result.
      toolDefinition: { name, inputSchema },
    };
    this.#atWork.add(atWork);
    try {
      const answer: unknown = await this.#guarded((client) => {
        isSent = true;
        // The answer to a call of revision 2026-07-28 may be a task without asking for one.
        isTask =
          execution !== undefined &&
          client.getServerCapabilities()?.tasks?.requests?.tools?.call !== undefined;
        const params = { name, arguments: args, ...continuation, ...(isTask ? { task: {} } : {}) };
        const request = { method: "tasks/result", params: { taskId: task?.taskId } };
        return heardCall.run(atWork, () =>
          task ? client.request(request, ANY_RESULT, options) : client.callTool(params, options),
        );
      }, isRepeatable);
      if (Reflect.get(Object(answer), "resultType") === "input_required") return answer as InputRequired;
      const raw = rawAnswer(answer as Result); // the package's own type
      return readTask(raw, isTask) ?? readResult(raw);
    } catch (error) {
      if (time.signal.reason instanceof TooManyQuestions) throw time.signal.reason;
      const refused = refusedUntilOpened(error);
      if (refused !== undefined) return refused;
      // A server that wants a log-in has begun nothing.
      if (isSent && findHttpStatus(error) !== 401) throw error;
      return { unsent: this.reason(error) };
    } finally {
      this.#atWork.delete(atWork);
      time.end();
    }
  }

  /**
   * Passes a server's question during a call to a person. Servers of that generation do not name the call: over
   * HTTP its stream does, else it is one of those at work, if these are of one run.
   */
  async #elicit(params: Pick<Result, "_meta">): Promise<ElicitResult> {
    const own = heardCall.getStore();
    const calls = own && this.#atWork.has(own) ? [own] : [...this.#atWork];
    const [first] = calls;
    const question = parseElicitation(this.name, rawAnswer(params));
    if (!question || !first?.hold || calls.some(({ hold }) => hold?.run !== first.hold?.run)) {
      const why = question ? "it may be of another run" : "no form can show it";
      this.#options.log.warn("mcp_question_refused", { server: this.name, why });
      for (const { lose } of calls) lose?.(why);
      return elicitResult(undefined);
    }
    const ask = async () => {
      for (const { count } of calls) count(question);
      return first.hold?.(question, calls.length === 1 ? first.time.signal : undefined);
    };
    const asked = ask();
    try {
      await Promise.all(calls.map(({ time }) => time.during(asked)));
    } catch (error) {
      if (error instanceof TooManyQuestions) for (const { time } of calls) time.end(error);
    }
    return elicitResult(await asked);
  }

  /** Returns the reason of a failure with this server, without its secrets. */
  reason(error: unknown): string {
    return describeServerFailure(error, this.#redactor, this.#options.env);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const attempt = this.#attempt;
    this.#attempt = undefined;
    if (!attempt) return;
    const pid = attempt.pid();
    // Lets the process end by itself first.
    const late = setTimeout(() => killProcess(pid), 500);
    const client = await Promise.race([attempt.client, Promise.resolve(undefined)]).catch(() => undefined);
    await client?.close().catch(() => {}); // it is abandoned; how its end goes does not matter
    clearTimeout(late);
    killProcess(attempt.pid());
  }

  /** Ends the server's process at once, for when this process is about to end. */
  kill(): void {
    killProcess(this.#attempt?.pid() ?? null);
  }

  async #guarded<T>(work: (client: Client) => Promise<T>, isRepeatable: boolean): Promise<T> {
    const connect = async () => {
      const attempt = this.#connect();
      return { attempt, client: await Promise.race([attempt.client, attempt.patience]) };
    };
    for (let broke: unknown; ;) {
      const { attempt, client } = await connect().catch((error: unknown) => {
        throw broke ?? error;
      });
      const hasSession = this.#way === "sse" || client.transport?.sessionId !== undefined;
      attempt.waiting += 1;
      try {
        const answer = await work(client);
        // Parsing took this turn of the event loop; the caller's work gets the next one.
        await nextTurn();
        return answer;
      } catch (thrown) {
        const isClosed = Reflect.get(Object(thrown), "data") === BROKEN_OFF;
        const closed = Object.assign(new Error("the stream ended"), { code: "CONNECTION_CLOSED" });
        const error: unknown = isClosed ? closed : thrown;
        // An error that is not the server's answer to the request leaves the connection in doubt.
        if (isAnswer(error)) throw error;
        if (this.#attempt === attempt) this.#attempt = undefined;
        const isLost = hasSession && isSessionLost(findHttpStatus(error), String(error));
        if (broke !== undefined || !(isLost || isRepeatable)) throw error;
        broke = error;
        this.#options.log.info("mcp_request_repeated", { server: this.name, reason: this.reason(error) });
      } finally {
        attempt.waiting -= 1;
        // Other requests may still get their answers over HTTP.
        const isInUse = this.#attempt === attempt || (attempt.waiting > 0 && "url" in this.config);
        if (!isInUse) client.close().catch(() => {}); // it is abandoned; how its end goes does not matter
      }
    }
  }

  #connect(): Attempt {
    if (this.#closed) throw new McpUnavailableError("this server is shutting down");
    if (this.#attempt) return this.#attempt;
    const problem = this.#pause.problem((error) => this.reason(error));
    if (problem) throw problem;
    const attempt: Attempt = {
      pid: () => null,
      noise: () => "",
      client: Promise.resolve().then(() => this.#open(attempt)),
      patience: rejectAfter(this.#patienceMs(), () => {
        const noise = attempt.noise();
        return `it is still starting; later runs may find it ready${noise && ` (its standard output is not MCP so far: ${noise})`}`;
      }),
      isOpen: false,
      waiting: 0,
    };
    attempt.client.then(
      () => this.#pause.end(),
      (error: unknown) => {
        this.#pause.failed(error);
        if (this.#attempt === attempt) this.#attempt = undefined;
      },
    );
    attempt.patience.catch(() => {
      if (this.#attempt === attempt && !attempt.isOpen) this.#isSlow = true;
    });
    this.#attempt = attempt;
    return attempt;
  }

  #patienceMs(): number {
    return (this.#options.patienceMs ?? 15_000) / (this.#isSlow ? 5 : 1);
  }

  /** Connects in the way that worked last, else in each way until one works. */
  async #open(attempt: Attempt): Promise<Client> {
    const { server, secrets } = expandServer(this.config, this.#options.env, this.#options.workspace);
    this.#redactor = new Redactor(secrets);
    let failure: unknown;
    for (const way of this.#way === undefined ? waysTo(this.config) : [this.#way]) {
      if (failure !== undefined && (this.#closed || !mayAnswer(way, failure, this.config))) break;
      try {
        const client = await this.#openBy(way, server, attempt);
        this.#way = way;
        const facts = { server: this.name, ...defined({ note: this.note }) };
        this.#options.log.info("mcp_server_connected", facts);
        return client;
      } catch (error) {
        // A detour that leads nowhere does not change the configured transport.
        if (failure === undefined || !isDetour(way, this.config)) failure = error;
      }
    }
    this.#way = undefined;
    throw new McpUnavailableError(this.reason(failure), { cause: failure });
  }

  async #openBy(way: Way, server: McpServerConfig, attempt: Attempt): Promise<Client> {
    const { version, log, logins } = this.#options;
    const redactor = this.#redactor;
    const { Client } = await import("@modelcontextprotocol/client");
    const isFirstNoise = (): boolean => !this.#hasNoise && (this.#hasNoise = true);
    const takes = logins && takesLogin(server);
    const login = takes ? new ServerLogin(this.name, server.url, { ...logins, redactor }) : undefined;
    const options = { name: this.name, log, redactor, login, isFirstNoise };
    const opened = await createTransport(server, way, options);
    attempt.pid = () => opened.pid();
    attempt.noise = () => opened.noise();
    acceptAnyAnswer(opened.transport, redactor);
    const probing = { mode: "auto", probe: { timeoutMs: PROBE_MS } } as const;
    const client = new Client(
      { name: "deepagent-mcp", version },
      {
        versionNegotiation: way === "discover" ? probing : { mode: "legacy" },
        inputRequired: { autoFulfill: false },
        capabilities: {
          elicitation: { form: {}, url: {} },
          extensions: { "io.modelcontextprotocol/tasks": {} },
        },
      },
    );
    client.setNotificationHandler("notifications/tools/list_changed", () => void (this.toolChanges += 1));
    client.setRequestHandler("elicitation/create", ({ params }) => this.#elicit(params));
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the client has no event listeners
    client.onclose = () => {
      if (this.#attempt === attempt && attempt.isOpen) this.#attempt = undefined;
    };
    try {
      // The first `npx` of a package downloads it.
      const timeout = "url" in this.config ? 30_000 : 120_000;
      const late = rejectAfter(timeout + PROBE_MS, () => "it did not answer in time");
      await Promise.race([client.connect(opened.transport, { timeout }), late]);
      if (this.#closed) throw new McpUnavailableError("this server is shutting down");
      attempt.isOpen = true;
      this.instructions = client.getInstructions()?.trim() ?? "";
      return client;
    } catch (error) {
      // A process that ended by itself has been seen to end, and its last words are on their way.
      await nextTurn();
      const end = await opened.end();
      await client.close().catch(() => {});
      await opened.transport.close().catch(() => {});
      killProcess(opened.pid());
      throw end === undefined ? error : new McpUnavailableError(end, { cause: error });
    }
  }
}

/** A schema that takes all results; `answers.ts` reads them. */
const ANY_RESULT = {
  "~standard": { version: 1, vendor: "deepagent-mcp", validate: (value: unknown) => ({ value }) },
} as const;

/** A promise that only rejects. The caller may lose interest. */
function rejectAfter(ms: number, message: () => string): Promise<never> {
  const late = new Promise<never>((_resolve, reject) => {
    setTimeout(() => reject(new McpUnavailableError(message())), ms).unref();
  });
  late.catch(() => {});
  return late;
}

/** Answers of the server and cancelled or late calls: the connection itself is fine. */
export function isAnswer(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code: unknown = Reflect.get(error, "code");
  const codes =
    "REQUEST_TIMEOUT INVALID_RESULT UNSUPPORTED_RESULT_TYPE METHOD_NOT_SUPPORTED_BY_PROTOCOL_VERSION";
  return typeof code === "number" || error.name === "AbortError" || codes.split(" ").includes(String(code));
}
