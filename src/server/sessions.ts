import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import type { McpServerFactory } from "@modelcontextprotocol/server";
import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import { createEventStore } from "./http-event-store.ts";
import { sendError } from "./http-body.ts";

export interface SessionOptions {
  factory: McpServerFactory;
  logger: Logger;
  clock: Clock;
  /** Sessions at one time; when it is reached, the one idle for longest makes room. */
  limit: number;
  /** Milliseconds without a request or an open stream after which a session ends. */
  idleMs: number;
  /** Milliseconds between keep-alive comments on open streams. */
  keepAliveMs: number;
}

interface Session {
  transport: NodeStreamableHTTPServerTransport;
  close(): Promise<void>;
  /** Requests and streams open now. */
  open: number;
  lastUsed: number;
}

/** The sessions of 2025-era HTTP clients: one server instance each, from `initialize` to DELETE or expiry. */
export class Sessions {
  readonly #options: SessionOptions;
  readonly #sessions = new Map<string, Session>();
  #opening = 0;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Serves a request that carries a session id; 404 tells the client to initialise again. */
  async serve(id: string, request: IncomingMessage, response: ServerResponse, body: unknown): Promise<void> {
    const session = this.#sessions.get(id);
    if (session === undefined) {
      sendError(response, 404, -32001, "Session not found");
      return;
    }
    this.#track(session, response);
    await session.transport.handleRequest(request, response, body);
  }

  /** Serves `initialize`: opens a session, unless the request turns out to be malformed. */
  async open(request: IncomingMessage, response: ServerResponse, body: unknown): Promise<void> {
    if (!(await this.#makeRoom())) {
      sendError(response, 503, -32000, "Too many sessions: close one or try again later");
      return;
    }
    this.#opening += 1;
    try {
      const session = await this.#create();
      this.#track(session, response);
      await session.transport.handleRequest(request, response, body);
      if (session.transport.sessionId === undefined) await session.close();
    } finally {
      this.#opening -= 1;
    }
  }

  /** Ends the sessions that have been idle for too long. */
  async expire(): Promise<void> {
    const oldest = this.#options.clock() - this.#options.idleMs;
    const expired = [...this.#sessions.values()].filter(
      (session) => session.open === 0 && session.lastUsed <= oldest,
    );
    await Promise.all(expired.map((session) => session.close()));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => session.close()));
  }

  async #create(): Promise<Session> {
    const { factory, keepAliveMs, clock } = this.#options;
    const mcp = await factory({ era: "legacy" });
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      keepAliveMs,
      retryInterval: 1000,
      eventStore: createEventStore(),
      onsessioninitialized: (id) => void this.#sessions.set(id, session),
    });
    const session: Session = { transport, close: () => mcp.close(), open: 0, lastUsed: clock() };
    await mcp.connect(transport);
    // connect() installed its own hook; it must still run.
    const closed = transport.onclose;
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK object is no event target
    transport.onclose = () => {
      closed?.();
      if (transport.sessionId !== undefined) this.#sessions.delete(transport.sessionId);
    };
    return session;
  }

  #track(session: Session, response: ServerResponse): void {
    session.open += 1;
    response.once("close", () => {
      session.open -= 1;
      session.lastUsed = this.#options.clock();
    });
  }

  async #makeRoom(): Promise<boolean> {
    if (this.#sessions.size + this.#opening < this.#options.limit) return true;
    const idle = [...this.#sessions.values()].filter((session) => session.open === 0);
    const [oldest] = idle.sort((a, b) => a.lastUsed - b.lastUsed);
    if (oldest === undefined) return false;
    this.#options.logger.warn("http.session_evicted", { sessions: this.#sessions.size });
    await oldest.close();
    return true;
  }
}
