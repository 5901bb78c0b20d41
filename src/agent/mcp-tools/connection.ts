/** One connection to another MCP server: its transport, and bounds on the tools that it lists. */
import type { ChildProcess } from "node:child_process";
import { setImmediate as nextTurn } from "node:timers/promises";
import type {
  CallToolResult,
  Client,
  JSONRPCMessage,
  Tool,
  Transport,
  jsonSchemaValidator,
} from "@modelcontextprotocol/client";
import type { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { bytesShapeProblem } from "../../core/json.ts";
import type { Logger } from "../../core/logger.ts";
import { type LineChecks, checkedBody, checkedEvents, checkedLines } from "../../core/message-lines.ts";
import { decodeUtf8, headOf, shownName } from "../../core/text.ts";
import type { Environment } from "../models/choose.ts";
import {
  type ExpandedServer,
  type McpServerConfig,
  McpUnavailableError,
  expandServer,
  reasonOf,
  redacted,
} from "./server-config.ts";

const MAX_REDIRECTS = 3;

/** A way to reach a server, not yet opened. */
interface OpenableTransport {
  transport: Transport;
  /** The server's process while it is ours to end; `null`: there is none. */
  pid(): number | null;
}

async function createTransport(
  name: string,
  { server, secrets }: ExpandedServer,
  log: Logger,
): Promise<OpenableTransport> {
  if ("url" in server) {
    if (!URL.canParse(server.url)) throw new McpUnavailableError("its url is not a valid address");
    const { SSEClientTransport, StreamableHTTPClientTransport } =
      await import("@modelcontextprotocol/client");
    const Http = server.isOlder ? SSEClientTransport : StreamableHTTPClientTransport;
    const transport = new Http(new URL(server.url), {
      requestInit: { headers: { ...server.headers } },
      fetch: async (url, init) => checkedResponse(await sameOriginFetch(url, init)),
    });
    return { transport, pid: () => null };
  }
  const { deserializeMessage } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const { command, args, env, cwd } = server;
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    // The transport adds PATH, HOME and the like, and nothing else of this process.
    env: { ...env },
    stderr: "pipe",
    ...(cwd === undefined ? {} : { cwd }),
  });
  transport.stderr?.on("data", (chunk: Buffer) => {
    log.debug("mcp_server_stderr", () => ({ server: name, text: redacted(chunk.toString("utf8"), secrets) }));
  });
  const start = transport.start.bind(transport);
  transport.start = async () => {
    await start();
    void readMessages(transport, deserializeMessage);
  };
  return { transport, pid: () => transport.pid };
}

function messageOf(line: Buffer, parse: (text: string) => JSONRPCMessage): JSONRPCMessage | undefined {
  try {
    return parse(decodeUtf8(line) ?? line.toString("utf8"));
  } catch {
    return undefined;
  }
}

/** Largest message of a server: as much as media of 5 MB take, and values that are parsed in 25 ms. */
const MAX_BYTES = 8 * 1024 * 1024;
const MAX_SHAPE = { depth: 200, values: 50_000 };
const TOO_LARGE = `its answer was not read: it has more than ${MAX_BYTES} bytes, ${MAX_SHAPE.values} elements and members, or ${MAX_SHAPE.depth} levels; ask it for less at a time`;
/** Longest body over HTTP that is neither JSON nor events, such as the page of a proxy. */
const MAX_OTHER_BYTES = 64 * 1024;

const CHECKS: LineChecks = {
  maxBytes: MAX_BYTES,
  tooLong: TOO_LARGE,
  problemOf: (message) => bytesShapeProblem(message, MAX_SHAPE) && TOO_LARGE,
  refuse: () => undefined,
};

/**
 * Reads a server's messages in the place of the package, which decodes and parses everything that has arrived in one
 * turn of the event loop. Lines that are no messages are ignored, as the package ignores them.
 */
async function readMessages(
  transport: StdioClientTransport,
  parse: (text: string) => JSONRPCMessage,
): Promise<void> {
  // The package keeps the process to itself; its version is exact, and a test reads a message this way.
  const child = Reflect.get(transport, "_process") as ChildProcess | undefined;
  if (!child?.stdout) return;
  child.stdout.removeAllListeners("data");
  const lines = checkedLines(child.stdout, CHECKS);
  try {
    for await (const line of lines) {
      const message = messageOf(line, parse);
      if (message) transport.onmessage?.(message);
    }
  } catch (error) {
    transport.onerror?.(error instanceof Error ? error : new Error(String(error)));
    await transport.close();
  }
}

/** Checks what a server answers over HTTP. A body that is no message, such as a proxy's page, is kept only in part. */
function checkedResponse(response: Response): Response {
  if (response.body === null) return response;
  const [type] = (response.headers.get("content-type") ?? "").split(";", 1);
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(checkFor(type)), { status, statusText, headers });
}

function checkFor(type = ""): TransformStream<Uint8Array, Uint8Array> {
  if (type === "text/event-stream") return checkedEvents(CHECKS);
  return checkedBody(type === "application/json" ? CHECKS : { ...CHECKS, maxBytes: MAX_OTHER_BYTES });
}

/** Ends a server's process at once. */
function killProcess(pid: number | null): void {
  if (pid === null) return;
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended already.
  }
}

/** `fetch` that follows a redirect only within its origin: the headers may carry a key. */
async function sameOriginFetch(input: string | URL, init?: RequestInit): Promise<Response> {
  let url = new URL(input);
  for (let redirects = 0; ; redirects += 1) {
    const response = await fetch(url, { ...init, redirect: "manual" });
    const location = response.headers.get("location");
    if (response.status < 300 || response.status >= 400 || location === null) return response;
    const next = new URL(location, url);
    // A 301, 302 or 303 would turn a request with a body into one without.
    const keepsMethod = response.status === 307 || response.status === 308;
    if (next.origin !== url.origin || !keepsMethod || redirects === MAX_REDIRECTS) {
      await response.body?.cancel();
      throw new McpUnavailableError(`it redirects to another address; configure the address it answers at`);
    }
    await response.body?.cancel();
    url = next;
  }
}

/** How long an agent waits for a server that is starting. */
const PATIENCE_MS = 15_000;
/** How long a server may take to start in all: the first `npx` of a package downloads it. */
const START_MS = 120_000;
/** How long a server's process may take to end by itself. */
const CLOSE_MS = 500;

export interface ConnectionOptions {
  env: Environment;
  /** Version this client tells servers. */
  version: string;
  log: Logger;
  /** Milliseconds an agent waits for a server that is starting. Default 15 s. */
  patienceMs?: number;
}

interface Attempt {
  client: Promise<Client>;
  /** Rejects when an agent has waited long enough; the attempt itself goes on. */
  patience: Promise<never>;
  /** The id of the server's process, if there is one. */
  pid: () => number | null;
}

/** One MCP server: connected on first use, and again after its connection was lost. */
export class McpConnection {
  readonly name: string;
  readonly config: McpServerConfig;
  readonly #options: ConnectionOptions;
  #attempt: Attempt | undefined;
  #secrets: readonly string[] = [];
  #closed = false;

  constructor(name: string, config: McpServerConfig, options: ConnectionOptions) {
    this.name = name;
    this.config = config;
    this.#options = options;
  }

  /**
   * The tools that the server offers now. Leaves out tools with a longer name or schema, and cuts longer descriptions.
   *
   * @throws McpUnavailableError
   */
  async listTools(): Promise<Tool[]> {
    const { patienceMs: timeout = PATIENCE_MS, log } = this.#options;
    const { tools } = await this.#guarded((client) =>
      client.listTools(undefined, { cacheMode: "refresh", timeout }),
    );
    const refused = tools.filter(isTooLong).map(({ name }) => shownName(name));
    if (refused.length > 0) {
      const named = { count: refused.length, tools: refused.slice(0, 10), problem: PROBLEM };
      log.warn("mcp_tools_refused", { server: this.name, ...named });
    }
    return tools.filter((tool) => !isTooLong(tool)).map(bounded);
  }

  /** Makes one call. @throws the error that the server answered with, or McpUnavailableError. */
  async call(tool: string, args: Record<string, unknown>, signal: AbortSignal): Promise<CallToolResult> {
    return this.#guarded((client) =>
      client.callTool(
        { name: tool, arguments: args },
        {
          signal,
          timeout: this.config.timeout * 1000,
          resetTimeoutOnProgress: true,
          onprogress: () => {},
        },
      ),
    );
  }

  /** Why something with this server failed, without its secrets. */
  reason(error: unknown): string {
    return reasonOf(error, this.#secrets);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const attempt = this.#attempt;
    this.#attempt = undefined;
    if (!attempt) return;
    const pid = attempt.pid();
    const late = setTimeout(() => killProcess(pid), CLOSE_MS);
    try {
      const client = await Promise.race([attempt.client, Promise.resolve(undefined)]);
      await client?.close();
    } catch {
      // It was never connected.
    } finally {
      clearTimeout(late);
      killProcess(attempt.pid());
    }
  }

  /** Ends the server's process at once, for when this process is about to end. */
  kill(): void {
    killProcess(this.#attempt?.pid() ?? null);
  }

  async #guarded<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const attempt = this.#connect();
    const client = await Promise.race([attempt.client, attempt.patience]);
    try {
      const answer = await work(client);
      // Parsing took this turn of the event loop; the caller's work gets the next one.
      await nextTurn();
      return answer;
    } catch (error) {
      // An error that is not the server's answer to the request leaves the connection in doubt.
      if (!isAnswer(error)) this.#drop(attempt, client);
      throw error;
    }
  }

  #connect(): Attempt {
    if (this.#closed) throw new McpUnavailableError("this server is shutting down");
    if (this.#attempt) return this.#attempt;
    const attempt: Attempt = {
      pid: () => null,
      client: Promise.resolve().then(() => this.#open(attempt)),
      patience: this.#patience(),
    };
    attempt.client.catch(() => {
      if (this.#attempt === attempt) this.#attempt = undefined;
    });
    attempt.patience.catch(() => {});
    this.#attempt = attempt;
    return attempt;
  }

  #patience(): Promise<never> {
    const { patienceMs = PATIENCE_MS } = this.#options;
    return new Promise((_resolve, reject) => {
      setTimeout(() => {
        reject(new McpUnavailableError("it is still starting; later runs may find it ready"));
      }, patienceMs).unref();
    });
  }

  async #open(attempt: Attempt): Promise<Client> {
    const { env, version, log } = this.#options;
    const expanded: ExpandedServer = expandServer(this.config, env);
    this.#secrets = expanded.secrets;
    const { Client } = await import("@modelcontextprotocol/client");
    const opened = await createTransport(this.name, expanded, log);
    attempt.pid = () => opened.pid();
    const client = new Client(
      { name: "deepagent-mcp", version },
      {
        // Asking a process which era it speaks would start it twice; servers of the newer era know both.
        versionNegotiation: { mode: "url" in this.config && !this.config.isOlder ? "auto" : "legacy" },
        inputRequired: { autoFulfill: false },
        jsonSchemaValidator: await serverSchemas(),
      },
    );
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the client has no event listeners
    client.onclose = () => {
      if (this.#attempt === attempt) this.#attempt = undefined;
    };
    try {
      await client.connect(opened.transport, { timeout: START_MS });
      if (this.#closed) throw new McpUnavailableError("this server is shutting down");
      log.info("mcp_server_connected", { server: this.name });
      return client;
    } catch (error) {
      await client.close().catch(() => {});
      killProcess(opened.pid());
      throw new McpUnavailableError(this.reason(error), { cause: error });
    }
  }

  #drop(attempt: Attempt, client: Client): void {
    if (this.#attempt === attempt) this.#attempt = undefined;
    client.close().catch(() => {}); // it is given up; how its end goes does not matter
  }
}

/** Answers of the server and cancelled or late calls: the connection itself is fine. */
function isAnswer(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code: unknown = Reflect.get(error, "code");
  return (
    typeof code === "number" ||
    error.name === "AbortError" ||
    code === "REQUEST_TIMEOUT" ||
    code === "INVALID_RESULT" ||
    code === "UNSUPPORTED_RESULT_TYPE" ||
    code === "METHOD_NOT_SUPPORTED_BY_PROTOCOL_VERSION"
  );
}

/** Longest name, in characters; the specification asks for at most 128. */
const MAX_NAME = 256;
const MAX_DESCRIPTION = 4000;
/** Characters of a schema. All of it is sent with every request to the model. */
const MAX_SCHEMA = 100_000;

const PROBLEM = `a name of more than ${MAX_NAME} characters, or a schema of more than ${MAX_SCHEMA}`;

const isTooLong = ({ name, inputSchema }: Tool): boolean =>
  name.length > MAX_NAME || isLonger(inputSchema, MAX_SCHEMA);

/** The fields of a tool that are read here, none of them longer than its limit. */
function bounded({ name, title, description = title, inputSchema, outputSchema, annotations }: Tool): Tool {
  return {
    name,
    inputSchema,
    ...(description === undefined ? {} : { description: headOf(description, MAX_DESCRIPTION) }),
    ...(title === undefined ? {} : { title: headOf(title, MAX_NAME) }),
    ...(isLonger(outputSchema, MAX_SCHEMA) ? {} : { outputSchema }),
    ...(isLonger(annotations, MAX_DESCRIPTION) ? {} : { annotations }),
  };
}

/** Whether a JSON value has more than so many characters, its own punctuation left aside. */
function isLonger(value: unknown, limit: number): boolean {
  const waiting = [value];
  let left = limit;
  while (waiting.length > 0 && left >= 0) {
    const one = waiting.pop();
    left -= typeof one === "string" ? one.length + 1 : 1;
    if (typeof one !== "object" || one === null) continue;
    for (const [key, inside] of Object.entries(one)) {
      left -= key.length;
      waiting.push(inside);
    }
  }
  return left < 0;
}

/** Characters of a schema that is compiled: 1000 take 5 to 10 ms. */
const MAX_COMPILED = 4000;

/**
 * Checks JSON by the schemas of a server. Ignores keywords that can take for ever to check (patterns, items that must
 * all differ) and schemas that take long to compile. The check only helps the model; the server makes its own.
 */
export async function serverSchemas(): Promise<jsonSchemaValidator> {
  const { AjvJsonSchemaValidator } = await import("@modelcontextprotocol/client/validators/ajv");
  const schemas = new AjvJsonSchemaValidator();
  return {
    getValidator: (schema) => {
      // Leaving keywords out of a schema makes another one.
      const checked = isLonger(schema, MAX_COMPILED) ? {} : withoutSlowChecks(schema);
      return schemas.getValidator(checked as typeof schema);
    },
  };
}

const SLOW: ReadonlySet<string> = new Set(["pattern", "patternProperties", "uniqueItems"]);
/** Keywords whose keys are names of the server's own. */
const NAMES: ReadonlySet<string> = new Set(["properties", "$defs", "definitions", "dependentSchemas"]);
/** Keywords whose values are data, not schemas. */
const DATA: ReadonlySet<string> = new Set(["const", "enum", "default", "examples"]);

function withoutSlowChecks(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutSlowChecks);
  if (!isObject(schema)) return schema;
  const kept = Object.entries(schema).filter(([keyword]) => !SLOW.has(keyword));
  return Object.fromEntries(
    kept.map(([keyword, value]) => {
      if (DATA.has(keyword)) return [keyword, value];
      if (!NAMES.has(keyword) || !isObject(value)) return [keyword, withoutSlowChecks(value)];
      const named = Object.entries(value).map(([name, own]) => [name, withoutSlowChecks(own)]);
      return [keyword, Object.fromEntries(named)];
    }),
  );
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;
