/** Serves MCP over standard input and output. */
import type { EventEmitter } from "node:events";
import { Readable, type Writable } from "node:stream";
import type { JSONRPCMessage, McpServerFactory, RequestId, Transport } from "@modelcontextprotocol/server";
import {
  PROTOCOL_VERSION_META_KEY,
  ProtocolErrorCode,
  isInitializeRequest,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
} from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";
import { isDoneWithin } from "../../core/clock.ts";
import { MAX_MESSAGE_BYTES, MESSAGE_TOO_LONG, bytesShapeProblem } from "../../core/json.ts";
import { checkedLines } from "../../core/message-lines.ts";
import { createServerFactory } from "../protocol/create-server.ts";
import type { ServerDeps } from "../contracts/deps.ts";
import { type ErrorAnswer, type Received, errorAnswer, readMessages } from "../contracts/envelope.ts";
import { REVISIONS, type Revision, revisionOf } from "../contracts/revisions.ts";
import { followListened } from "../resources/changes.ts";
import { forwardChanges } from "../resources/subscriptions.ts";
import { BEHIND_BYTES, LatestOnly, MOST_BYTES, supersededBy } from "./output-bounds.ts";

/** Longest time to park runs and release resources; clients kill the process soon after. */
const GRACE_MS = 700;
/** Silence after the handshake before agent and storage are loaded: clients ask for lists first. */
const QUIET_MS = 200;
const SIGNALS = ["SIGINT", "SIGTERM"] as const;

export interface StdioOptions {
  /** Parks runs and releases what `deps` holds. */
  close(): Promise<void>;
  /** Default: those of the process. */
  stdin?: AsyncIterable<Buffer>;
  /** Id of the client's first request, if its answer was sent before. */
  answered?: RequestId;
  stdout?: Writable;
  stderr?: Writable;
  /** Source of SIGINT and SIGTERM. Default: the process. */
  signals?: Pick<EventEmitter, "on" | "off">;
}

export interface StdioServer {
  /**
   * Resolves with the reason once the client has gone or a signal came and everything is released, within a
   * second. The caller then exits the process, whatever may still hold it.
   */
  readonly closed: Promise<string>;
  close(): Promise<void>;
}

/** Serves MCP over standard input and output until the client leaves. Writes nothing but protocol there. */
export function serveStdioServer(deps: ServerDeps, options: StdioOptions): StdioServer {
  const { stdin = process.stdin, stdout = process.stdout, stderr = process.stderr } = options;
  const { signals = process } = options;
  // A client may close our standard error; a log line that nobody reads must not end the server.
  stderr.on("error", () => {});
  const { logger } = deps;
  const transport = openTransport(stdin, stdout);
  const received = options.answered === undefined ? undefined : leaveOutAnswer(transport, options.answered);
  const create = createServerFactory(deps);
  let revision: Revision | undefined;
  const factory: McpServerFactory = (context) => {
    revision = revisionOf(context.era);
    const mcp = create(context);
    // An instance without sessions lasts as long as the connection and passes changes on itself.
    if (!revision.sessions) forwardChanges(mcp, { ...deps, principal: deps.principalOf(undefined) });
    return mcp;
  };
  const handle = serveStdio(factory, {
    transport,
    onerror: (error) => logger.debug("stdio.error", { error: error.message }),
  });
  const warmUp = warmUpWhenQuiet(deps);
  let closing: Promise<void> | undefined;
  let resolveClosed: (reason: string) => void;
  const closed = new Promise<string>((resolve) => {
    resolveClosed = resolve;
  });

  const close = async (reason: string): Promise<void> => {
    logger.info("stdio.closing", { reason });
    warmUp.cancel();
    for (const name of SIGNALS) signals.off(name, onSignal);
    const released = handle
      .close()
      .then(() => options.close())
      .catch((error: unknown) => logger.error("stdio.close_failed", { error }));
    if (!(await isDoneWithin(GRACE_MS, released)))
      logger.warn("stdio.closed_late", { milliseconds: GRACE_MS });
    resolveClosed(reason);
  };
  const shutDown = (reason: string): Promise<void> => (closing ??= close(reason));
  const onSignal = (name: NodeJS.Signals): void => void shutDown(name);
  for (const name of SIGNALS) signals.on(name, onSignal);

  observe(transport, {
    revision: () => revision,
    received: (message) => {
      received?.(message);
      warmUp.received();
      followListened(deps.changes, deps.principalOf(undefined), message);
    },
    sent: (message) => {
      if (isJSONRPCResultResponse(message)) warmUp.answered();
    },
    closed: () => void shutDown("the client closed the connection"),
  });
  return { closed, close: () => shutDown("closed") };
}

/** Opens a transport that limits the size of messages and the output that waits for the client. */
function openTransport(stdin: AsyncIterable<Buffer>, stdout: Writable): StdioServerTransport {
  const checked = checkedLines(stdin, {
    maxBytes: MAX_MESSAGE_BYTES,
    tooLong: MESSAGE_TOO_LONG,
    problemOf: (line) => bytesShapeProblem(line),
    refuse: (id, message) => refuse(transport, id, { code: ProtocolErrorCode.InvalidRequest, message }),
  });
  const lines = Readable.from(
    messageLines(checked, (answer) => {
      // The SDK has no type for an error without an id. Sending fails only if the client is gone.
      transport.send(answer as JSONRPCMessage).catch(() => undefined);
    }),
    { objectMode: false },
  );
  const transport = new StdioServerTransport(lines, stdout, { maxBufferSize: 2 * MAX_MESSAGE_BYTES });
  boundOutput(transport, lines, stdout);
  return transport;
}

/** Yields each message of a client in the form that the SDK takes, and answers invalid ones. */
async function* messageLines(lines: AsyncIterable<Uint8Array>, answer: (error: ErrorAnswer) => void) {
  let takesBatches = false;
  for await (const line of lines) {
    const text = new TextDecoder().decode(line);
    // A byte order mark or a carriage return alone is a blank line.
    if (text.trim() === "") continue;
    const { messages, errors } = readLine(text, takesBatches);
    errors.forEach(answer);
    for (const message of messages) {
      // The revision that a client asks for is the one it gets, if the server speaks it.
      if (isInitializeRequest(message))
        takesBatches = REVISIONS.some((one) => one.batches && one.id === message.params.protocolVersion);
      yield Buffer.from(`${JSON.stringify(message)}\n`);
    }
  }
}

function readLine(line: string, takesBatches: boolean): Received {
  try {
    return readMessages(JSON.parse(line), takesBatches);
  } catch {
    const problem = "Parse error: a line must hold one message as JSON in UTF-8";
    return { messages: [], errors: [errorAnswer(null, ProtocolErrorCode.ParseError, problem)] };
  }
}

/**
 * Observes a transport that is in use, and keeps the hooks of its user working. `revision`: that of the connection;
 * undefined before its first message.
 */
function observe(
  transport: StdioServerTransport,
  observer: {
    revision(): Revision | undefined;
    received(message: JSONRPCMessage): void;
    sent(message: JSONRPCMessage): void;
    closed(): void;
  },
): void {
  const { onmessage, onclose } = transport;
  const send = transport.send.bind(transport);
  /* oxlint-disable unicorn/prefer-add-event-listener -- a transport is not an event target */
  transport.onmessage = (message) => {
    const refusal = messageRefusal(message, observer.revision());
    if (refusal !== undefined && isJSONRPCRequest(message)) return refuse(transport, message.id, refusal);
    observer.received(message);
    onmessage?.(message);
  };
  transport.send = async (message) => {
    await send(message);
    observer.sent(message);
  };
  transport.onclose = () => {
    onclose?.();
    observer.closed();
  };
  /* oxlint-enable unicorn/prefer-add-event-listener */
}

/**
 * Leaves out the answer to `id`, which the client has. Returns a function for each message of the client: the `id` may
 * come again, for another request.
 */
function leaveOutAnswer(transport: StdioServerTransport, id: RequestId): (message: JSONRPCMessage) => void {
  const send = transport.send.bind(transport);
  let isExpected = true;
  let requests = 0;
  transport.send = async (message) => {
    const isLeftOut = isExpected && !("method" in message) && message.id === id;
    if (isLeftOut) isExpected = false;
    else await send(message);
  };
  return (message) => {
    if (isJSONRPCRequest(message) && message.id === id && (requests += 1) > 1) isExpected = false;
  };
}

function refuse(transport: StdioServerTransport, id: RequestId, error: Refusal): void {
  // Sending fails only if the client is gone.
  transport.send({ jsonrpc: "2.0", id, error }).catch(() => undefined);
}

/** Loads agent and storage in the background, so that the first run need not wait for them. */
function warmUpWhenQuiet({ runs, page, logger }: ServerDeps) {
  let timer: NodeJS.Timeout | undefined;
  let isDone = false;
  const load = (): void => {
    isDone = true;
    runs()
      .then(() => page?.address())
      .catch((error: unknown) => logger.warn("stdio.warm_up_failed", { error }));
  };
  /** Waits for quiet from now on. The first answer is that to the handshake. */
  const answered = (): void => {
    clearTimeout(timer);
    if (!isDone) timer = setTimeout(load, QUIET_MS);
  };
  return {
    answered,
    received: () => timer && answered(),
    cancel: () => {
      isDone = true;
      clearTimeout(timer);
    },
  };
}

/**
 * Bounds the output that waits for a client that does not read. Of messages that replace each other it gets only
 * the newest, after the rest; while too much waits, its requests are not read.
 */
export function boundOutput(transport: Transport, stdin: Readable, stdout: Writable): void {
  const send = transport.send.bind(transport);
  const latest = new LatestOnly<JSONRPCMessage>();
  const sendLatest = (): void => {
    // Sending fails only if the client is gone.
    for (const message of latest.take()) send(message).catch(() => undefined);
  };
  let isWaiting = false;
  // Each message that waits listens to the stream.
  stdout.setMaxListeners(0);
  stdout.on("drain", () => {
    sendLatest();
    if (isWaiting) stdin.resume();
    isWaiting = false;
  });
  transport.send = async (message, options) => {
    const key = stdout.writableLength > BEHIND_BYTES ? supersededBy(message) : undefined;
    if (key !== undefined) return latest.keep(key, message);
    sendLatest();
    const sent = send(message, options);
    if (stdout.writableLength > MOST_BYTES) {
      isWaiting = true;
      stdin.pause();
    }
    return sent;
  };
}

const Enveloped = z.looseObject({
  params: z.looseObject({ _meta: z.looseObject({ [PROTOCOL_VERSION_META_KEY]: z.string() }) }),
});

type Refusal = ErrorAnswer["error"] & { data?: unknown };

/** Refuses requests of another revision than the connection's. The SDK checks the first message only. */
function messageRefusal(message: JSONRPCMessage, revision: Revision | undefined): Refusal | undefined {
  if (revision === undefined || revision.sessions || !isJSONRPCRequest(message)) return undefined;
  const requested = Enveloped.safeParse(message).data?.params._meta[PROTOCOL_VERSION_META_KEY];
  if (requested === undefined || requested === revision.id) return undefined;
  // Revisions that every request names.
  const supported = REVISIONS.filter(({ sessions }) => !sessions).map(({ id }) => id);
  return {
    code: ProtocolErrorCode.UnsupportedProtocolVersion,
    message: `Unsupported protocol version: ${requested.slice(0, 100)}`,
    data: { supported, requested },
  };
}
