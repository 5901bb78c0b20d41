import { fstatSync, readFileSync, writeSync } from "node:fs";
import { homedir } from "node:os";
import { codeOf } from "../core/errors.ts";
import { createLogger } from "../core/logger.ts";
import { hasName } from "../core/text.ts";
import { acceptedStart } from "./settings.ts";
import { isRecord, memberOf, parsedJson, textMemberOf } from "../core/unknown.ts";

/** A connection over stdio whose first request may have been answered. */
export interface StdioConnection {
  /** All that the client sent, but without the requests whose answers it has; the first is in it. */
  readonly stdin: AsyncIterable<Buffer>;
  /** Id of the first request, if its answer was sent. */
  readonly answered?: string | number;
}

/**
 * Answers of the built server to the first requests of a client, as JSON texts. The build records them
 * (scripts/handshake.mjs); `"@id@"` and `"@revision@"` are placeholders for values of the request.
 */
interface Answers {
  readonly initialize: string;
  readonly discover: string;
  readonly ping: string;
  /** Revisions with a handshake, and the one in which each request names its revision. */
  readonly revisions: { readonly session: readonly string[]; readonly latest: string };
  /** Names of clients whose results are text alone; one with `*` at its end is the beginning of a name. */
  readonly textClients: readonly string[];
  /**
   * Lists of tools by the kind of revision and the form of results: without the tools of the setting `codexTools`, and
   * with them.
   */
  readonly tools: Record<"session" | "latest", Record<"structure" | "text", readonly [string, string]>>;
}

/**
 * Longest wait for the request for tools before the program is loaded, in ms. Loading takes the only thread, and
 * clients with little patience (Codex) leave out a server whose list comes after it.
 */
const LIST_WAIT_MS = 2000;
/** Longest line that is looked at, in bytes. */
const MAX_LINE_BYTES = 16 * 1024;

/** Loads the program and returns its main function. */
type Load = () => Promise<(connection: StdioConnection) => unknown>;

/**
 * Starts to answer a client over stdio. Returns false if the program has to do that from the first byte: it judges this
 * command line, or there are no recorded answers.
 */
export function startHandshake(load: Load): boolean {
  const file = new URL("handshake.json", import.meta.url);
  try {
    const host = { cwd: process.cwd(), home: homedir(), platform: process.platform, env: process.env };
    const start = acceptedStart(process.argv.slice(2), host);
    const input = fstatSync(process.stdin.fd);
    // Clients use pipes or sockets; terminals and files are read by the program.
    if (start === undefined || !(input.isFIFO() || input.isSocket())) return false;
    const answers = JSON.parse(readFileSync(file, "utf8")) as Answers; // our build wrote it
    new Handshake(answers, start.codexTools, load).begin();
    return true;
  } catch (error) {
    // Missing: the answers, before a build, or the current folder, which the program reports.
    if (codeOf(error) !== "ENOENT") createLogger("warn").warn("handshake.failed", { error });
    return false;
  }
}

/**
 * Answers the requests with which clients begin, until anything else arrives or the client has its list of tools. Then
 * `load` loads the program, which gets the connection. Ends the process when the client leaves before that.
 */
class Handshake {
  readonly #stdin = process.stdin;
  readonly #answers: Answers;
  readonly #codexTools: boolean;
  readonly #load: Load;
  /** Lines for the program. */
  readonly #lines: Buffer[] = [];
  #rest: Buffer = Buffer.alloc(0);
  #first: { id: string | number; isLatest: boolean; client: string } | undefined;
  #isTaking = true;
  #isLoading = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(answers: Answers, codexTools: boolean, load: Load) {
    this.#answers = answers;
    this.#codexTools = codexTools;
    this.#load = load;
  }

  begin(): void {
    this.#stdin.on("data", this.#onData).on("end", this.#onEnd);
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (this.#isTaking) {
      const end = this.#rest.indexOf("\n");
      const isWhole = end !== -1;
      const length = isWhole ? end : this.#rest.length;
      if (length > MAX_LINE_BYTES || (isWhole && !this.#take(this.#rest.subarray(0, end + 1)))) {
        this.#isTaking = false;
        break;
      }
      if (!isWhole) break;
      this.#rest = this.#rest.subarray(end + 1);
    }
    if (this.#isTaking) return;
    this.#stdin.pause();
    void this.#handOver();
  };

  readonly #onEnd = (): void => {
    if (this.#isTaking && this.#first !== undefined && this.#rest.length === 0) process.exit(0);
    this.#isTaking = false;
    void this.#handOver();
  };

  /** Nothing runs yet that would have to be parked. */
  readonly #onSignal = (): void => process.exit(0);

  /** Answers a message, or keeps it for the program. Returns false if it is none that clients begin with. */
  #take(line: Buffer): boolean {
    const message = readMessage(line.toString());
    if (message === undefined) return false;
    if (this.#first === undefined) return this.#open(message, line);
    const { id, method, params } = message;
    const { isLatest: latest } = this.#first;
    const { revisions } = this.#answers;
    if (id === undefined && method === "notifications/initialized" && !latest && isBare(params)) {
      this.#lines.push(line);
      return true;
    }
    if (id === undefined || id === this.#first.id) return false;
    if (method === "tools/list" && (latest ? isLatest(message, revisions.latest) : isBare(params))) {
      const client = latest ? clientName(message) : this.#first.client;
      const form = hasName(this.#answers.textClients, client) ? "text" : "structure";
      const lists = this.#answers.tools[latest ? "latest" : "session"][form];
      this.#reply(lists[this.#codexTools ? 1 : 0], id);
      this.#wait(0);
      return true;
    }
    if (method !== "ping" || latest || !isBare(params)) return false;
    this.#reply(this.#answers.ping, id);
    return true;
  }

  /** Answers the first message of the connection. */
  #open(message: FirstMessage, line: Buffer): boolean {
    const { id, method } = message;
    if (id === undefined) return false;
    const { revisions, initialize, discover } = this.#answers;
    const revision = sessionRevision(message, revisions.session);
    if (revision !== undefined) this.#reply(initialize.replace('"@revision@"', JSON.stringify(revision)), id);
    else if (method === "server/discover" && isLatest(message, revisions.latest)) this.#reply(discover, id);
    else return false;
    this.#first = { id, isLatest: revision === undefined, client: clientName(message) };
    this.#lines.push(line);
    process.on("SIGINT", this.#onSignal).on("SIGTERM", this.#onSignal);
    this.#wait(LIST_WAIT_MS);
    return true;
  }

  #reply(answer: string, id: string | number): void {
    const bytes = Buffer.from(`${answer.replace('"@id@"', () => JSON.stringify(id))}\n`);
    for (let at = 0; at < bytes.length;) {
      try {
        at += writeSync(process.stdout.fd, bytes, at);
      } catch (error) {
        if (codeOf(error) === "EPIPE") process.exit(0);
        // The client does not read: the rest waits in the stream, before all that the program writes.
        this.#isTaking = false;
        process.stdout.write(bytes.subarray(at));
        return;
      }
    }
  }

  #wait(milliseconds: number): void {
    clearTimeout(this.#timer);
    // A timer, so that the other requests of the chunk are answered first.
    this.#timer = setTimeout(() => void this.#handOver(), milliseconds);
  }

  /** Loads the program, and continues to answer until it is loaded. */
  async #handOver(): Promise<void> {
    if (this.#isLoading) return;
    this.#isLoading = true;
    clearTimeout(this.#timer);
    const run = await this.#load();
    this.#isTaking = false;
    this.#stdin.off("data", this.#onData).off("end", this.#onEnd).pause();
    run({ stdin: this.#forProgram(), ...(this.#first && { answered: this.#first.id }) });
  }

  async *#forProgram(): AsyncGenerator<Buffer> {
    // By now the program handles signals itself.
    process.off("SIGINT", this.#onSignal).off("SIGTERM", this.#onSignal);
    const begun = Buffer.concat([...this.#lines, this.#rest]);
    if (begun.length > 0) yield begun;
    yield* this.#stdin;
  }
}

export interface FirstMessage {
  readonly id?: string | number;
  readonly method: string;
  readonly params?: Record<string, unknown>;
}

/** The message of a line; `undefined` if anything in it would have to be repaired or refused. */
export function readMessage(line: string): FirstMessage | undefined {
  const message = parsedJson(line);
  if (!isRecord(message)) return undefined;
  const { jsonrpc, id, method, params, ...others } = message;
  if (jsonrpc !== "2.0" || typeof method !== "string" || Object.keys(others).length > 0) return undefined;
  if ("params" in message && !isRecord(params)) return undefined;
  if ("id" in message && !isToken(id)) return undefined;
  return { method, ...(isToken(id) ? { id } : {}), ...(isRecord(params) ? { params } : {}) };
}

/** The revision that an `initialize` asks for, if it is one of `revisions`, those with a handshake. */
export function sessionRevision(
  { method, params = {} }: FirstMessage,
  revisions: readonly string[],
): string | undefined {
  const { protocolVersion, capabilities, clientInfo, ...others } = params;
  const revision = revisions.find((known) => known === protocolVersion);
  if (method !== "initialize" || revision === undefined) return undefined;
  return areCapabilities(capabilities) && isClient(clientInfo) && isBare(others) ? revision : undefined;
}

/** True for a request of the revision `latest`, in which each request names its revision and its client. */
export function isLatest({ params = {} }: FirstMessage, latest: string): boolean {
  const { _meta: meta, ...others } = params;
  if (!isRecord(meta) || Object.keys(others).length > 0) return false;
  const {
    "io.modelcontextprotocol/protocolVersion": revision,
    "io.modelcontextprotocol/clientInfo": client,
    "io.modelcontextprotocol/clientCapabilities": capabilities,
    ...rest
  } = meta;
  return revision === latest && isClient(client) && areCapabilities(capabilities) && isBare({ _meta: rest });
}

/** The name of the client that a message declares: in the handshake, or in the envelope of the latest revision. */
function clientName({ params = {} }: FirstMessage): string {
  const info = params["clientInfo"] ?? memberOf(params["_meta"], "io.modelcontextprotocol/clientInfo");
  return textMemberOf(info, "name") ?? "";
}

/** True for parameters that change no answer of a handshake: none, or a token for progress, as Codex sends. */
export const isBare = (params: Record<string, unknown> = {}): boolean =>
  Object.entries(params).every(
    ([name, meta]) =>
      name === "_meta" &&
      isRecord(meta) &&
      Object.entries(meta).every(([key, token]) => key === "progressToken" && isToken(token)),
  );

const isToken = (value: unknown): value is string | number =>
  typeof value === "string" || Number.isSafeInteger(value);

const isClient = (client: unknown): boolean =>
  isRecord(client) &&
  "name" in client &&
  "version" in client &&
  Object.entries(client).every(
    ([name, value]) =>
      ["name", "title", "version", "description", "websiteUrl"].includes(name) && typeof value === "string",
  );

/** Accepts a subset of the protocol's schemas: nested objects, with its switches and lists of texts. */
const areCapabilities = (value: unknown, level = 0): boolean =>
  isRecord(value) &&
  level < 6 &&
  Object.entries(value).every(([name, member]) => {
    if (typeof member === "boolean") return level > 0 && ["listChanged", "applyDefaults"].includes(name);
    if (Array.isArray(member)) return level > 1 && member.every((one) => typeof one === "string");
    return areCapabilities(member, level + 1);
  });
