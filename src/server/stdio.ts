import type { EventEmitter } from "node:events";
import { Readable, type Writable } from "node:stream";
import {
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type McpServerFactory,
  ProtocolErrorCode,
  type RequestId,
} from "@modelcontextprotocol/server";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { bytesShapeProblem } from "../core/json-shape.ts";
import { checkedLines } from "../core/message-lines.ts";
import { createServerFactory } from "./create-server.ts";
import type { Era, ServerDeps } from "./deps.ts";
import { followListened } from "./resources/bus.ts";
import { MAX_MESSAGE_BYTES, TOO_LONG } from "./message-limit.ts";
import { forwardChanges } from "./resources/subscriptions.ts";
import { boundOutput } from "./stdio-output.ts";
import { refusalOf, type Refusal } from "./stdio-refusals.ts";

/** Longest time for parking runs and releasing everything; clients kill what is left soon after. */
const GRACE_MS = 700;
/** Silence after the handshake before agent and storage are loaded: clients ask for lists first. */
const QUIET_MS = 200;
const SIGNALS = ["SIGINT", "SIGTERM"] as const;

export interface StdioOptions {
  /** Parks runs and releases what `deps` holds. */
  close(): Promise<void>;
  /** Default: those of the process. */
  stdin?: Readable;
  stdout?: Writable;
  stderr?: Writable;
  /** Where SIGINT and SIGTERM arrive. Default: the process. */
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
  const {
    stdin = process.stdin,
    stdout = process.stdout,
    stderr = process.stderr,
    signals = process,
  } = options;
  // A client may close our standard error; a log line that nobody reads must not end the server.
  stderr.on("error", () => {});
  const { logger } = deps;
  const transport = openTransport(stdin, stdout);
  const create = connectionFactory(deps);
  let era: Era | undefined;
  const factory: McpServerFactory = (context) => {
    ({ era } = context);
    return create(context);
  };
  const handle = serveStdio(factory, {
    transport,
    onerror: (error) => logger.debug("stdio.error", { error: error.message }),
  });
  const warmUp = warmUpWhenQuiet(deps);
  let closing: Promise<string> | undefined;
  let resolveClosed: (reason: string) => void;
  const closed = new Promise<string>((resolve) => {
    resolveClosed = resolve;
  });

  const shutDown = (reason: string): Promise<string> => {
    closing ??= (async () => {
      logger.info("stdio.closing", { reason });
      warmUp.cancel();
      for (const name of SIGNALS) signals.off(name, onSignal);
      await withinGrace(async () => {
        await handle.close();
        await options.close();
      }, deps);
      resolveClosed(reason);
      return reason;
    })();
    return closing;
  };
  const onSignal = (name: NodeJS.Signals): void => void shutDown(name);
  for (const name of SIGNALS) signals.on(name, onSignal);

  observe(transport, {
    era: () => era,
    received: (message) => {
      warmUp.postpone();
      followListened(deps.changes, deps.principalOf(undefined), message);
    },
    sent: (message) => {
      if (isJSONRPCResultResponse(message)) warmUp.start();
    },
    closed: () => void shutDown("the client closed the connection"),
  });
  return { closed, close: async () => void (await shutDown("closed")) };
}

/** Reads messages that are bounded, in turns, and writes no more than is read. */
function openTransport(stdin: Readable, stdout: Writable): StdioServerTransport {
  const checked = checkedLines(stdin, {
    maxBytes: MAX_MESSAGE_BYTES,
    tooLong: TOO_LONG,
    problemOf: (line) => bytesShapeProblem(line),
    refuse: (id, message) => refuse(transport, id, { code: ProtocolErrorCode.InvalidRequest, message }),
  });
  const lines = Readable.from(checked, { objectMode: false });
  const transport = new StdioServerTransport(lines, stdout, { maxBufferSize: 2 * MAX_MESSAGE_BYTES });
  boundOutput(transport, lines, stdout);
  return transport;
}

/** On 2026-07-28 one instance lasts as long as the connection and passes changes on itself. */
function connectionFactory(deps: ServerDeps): McpServerFactory {
  const create = createServerFactory(deps);
  return (context) => {
    const mcp = create(context);
    if (context.era === "modern") forwardChanges(mcp, { ...deps, principal: deps.principalOf(undefined) });
    return mcp;
  };
}

interface Observer {
  /** What the connection speaks, once its first message has settled it. */
  era(): Era | undefined;
  received(message: JSONRPCMessage): void;
  sent(message: JSONRPCMessage): void;
  closed(): void;
}

/** Listens in on a transport that is in use; what its user has installed goes on working. */
function observe(transport: StdioServerTransport, observer: Observer): void {
  const { onmessage, onclose } = transport;
  const send = transport.send.bind(transport);
  /* oxlint-disable unicorn/prefer-add-event-listener -- a transport is no event target */
  transport.onmessage = (message) => {
    const refusal = refusalOf(message, observer.era());
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

/** Answers a request with an error. */
function refuse(transport: StdioServerTransport, id: RequestId, error: Refusal): void {
  // A client that does not read any more does not miss the answer.
  transport.send({ jsonrpc: "2.0", id, error }).catch(() => undefined);
}

/** Loads agent and storage in the background, so that the first run need not wait for them. */
function warmUpWhenQuiet({ runs, logger }: ServerDeps) {
  let state: "waiting" | "armed" | "done" = "waiting";
  let timer: NodeJS.Timeout | undefined;
  const load = (): void => {
    state = "done";
    runs().catch((error: unknown) => logger.warn("stdio.warm_up_failed", { error }));
  };
  const postpone = (): void => {
    if (state !== "armed") return;
    clearTimeout(timer);
    timer = setTimeout(load, QUIET_MS);
  };
  return {
    /** The handshake was answered. */
    start: (): void => {
      if (state === "waiting") state = "armed";
      postpone();
    },
    postpone,
    cancel: (): void => {
      state = "done";
      clearTimeout(timer);
    },
  };
}

async function withinGrace(work: () => Promise<void>, { logger }: ServerDeps): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      logger.warn("stdio.closed_late", { milliseconds: GRACE_MS });
      resolve();
    }, GRACE_MS);
  });
  const done = work().catch((error: unknown) => logger.error("stdio.close_failed", { error }));
  await Promise.race([done, late]);
  clearTimeout(timer);
}
