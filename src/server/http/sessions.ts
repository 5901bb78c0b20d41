import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import type { AuthInfo, McpServerFactory } from "@modelcontextprotocol/server";
import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import { maySucceed, ownerOf } from "../auth/auth.ts";
import type { SessionEvents } from "./event-store.ts";
import type { AuthenticatedRequest } from "./stateless.ts";
import { sendError } from "./request.ts";

export interface SessionOptions {
  factory: McpServerFactory;
  logger: Logger;
  /** Messages that sessions sent; its creator closes it. */
  events: SessionEvents;
  clock: Clock;
  /** Most sessions at one time. Then the longest idle one makes room; a busy one never does. */
  limit: number;
  /** Most sessions of one owner, likewise. */
  limitPerOwner: number;
  /** Milliseconds without a request or an open stream after which a session ends. */
  idleMs: number;
  /** Milliseconds between keep-alive comments on open streams. */
  keepAliveMs: number;
}

interface Session {
  /** Owner of the session, with its scopes; see `maySucceed`. */
  owner: string;
  /** Facts of the token that the server instance uses. */
  auth: AuthInfo | undefined;
  transport: NodeStreamableHTTPServerTransport;
  close(): Promise<void>;
  /** Requests and streams open now. */
  open: number;
  lastUsed: number;
}

/** A client between two calls still uses its session; after this long without a request it counts as idle. */
const BUSY_MS = 60_000;

/** Why there is no room for another session. */
interface Crowd {
  status: 429 | 503;
  message: string;
  retryAfterSeconds: number;
}

/** The sessions of 2025-era HTTP clients: one server instance each, from `initialize` to DELETE or expiry. */
export class Sessions {
  readonly #options: SessionOptions;
  readonly #sessions = new Map<string, Session>();
  /** Owners of the sessions that are being opened. */
  readonly #opening: string[] = [];
  #closing = false;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#sessions.size;
  }

  /**
   * Serves a request that carries a session id; 404 tells the client to initialise again. A session of
   * someone else is answered as one that does not exist.
   */
  async serve(
    id: string,
    request: AuthenticatedRequest,
    response: ServerResponse,
    body: unknown,
  ): Promise<void> {
    const session = this.#sessions.get(id);
    if (session === undefined || !maySucceed(request.auth, session.owner)) {
      if (await this.#sendRest(id, request, response)) return;
      sendError(response, 404, -32001, "Session not found");
      return;
    }
    grow(session, request.auth);
    this.#track(session, response);
    await session.transport.handleRequest(request, response, body);
  }

  /**
   * Sends the rest of a broken stream of a session that ended with an earlier process. Afterwards the client
   * learns that it has to initialise again.
   */
  async #sendRest(id: string, request: AuthenticatedRequest, response: ServerResponse): Promise<boolean> {
    const last = request.headers["last-event-id"];
    if (request.method !== "GET" || typeof last !== "string" || this.#sessions.has(id)) return false;
    const rest = await this.#options.events.after(id, (owner) => maySucceed(request.auth, owner), last);
    if (rest.length === 0) return false;
    response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-cache, no-transform",
    });
    for (const event of rest) {
      response.write(`event: message\nid: ${event.id}\ndata: ${event.message}\n\n`);
    }
    response.end();
    return true;
  }

  /** Serves `initialize`: opens a session, unless the request turns out to be malformed. */
  async open(request: AuthenticatedRequest, response: ServerResponse, body: unknown): Promise<void> {
    const owner = ownerOf(request.auth);
    const crowd = await this.#makeRoom(owner);
    if (crowd !== undefined) {
      response.setHeader("retry-after", String(crowd.retryAfterSeconds));
      sendError(response, crowd.status, -32000, crowd.message);
      return;
    }
    this.#opening.push(owner);
    try {
      const session = await this.#create(request.auth);
      this.#track(session, response);
      await session.transport.handleRequest(request, response, body);
      if (session.transport.sessionId === undefined) await session.close();
    } finally {
      this.#opening.splice(this.#opening.indexOf(owner), 1);
    }
  }

  /** Ends the sessions that have been idle for too long. */
  async expire(): Promise<void> {
    const oldest = this.#options.clock() - this.#options.idleMs;
    const expired = [...this.#sessions.values()].filter(
      (session) => session.open === 0 && session.lastUsed <= oldest,
    );
    await Promise.all(expired.map((session) => session.close()));
    await this.#options.events.expire();
  }

  /** Ends all sessions. Keeps their messages for clients that come back to the next process. */
  async close(): Promise<void> {
    this.#closing = true;
    await Promise.all([...this.#sessions.values()].map((session) => session.close()));
  }

  async #create(opener: AuthInfo | undefined): Promise<Session> {
    const auth = opener === undefined ? undefined : { ...opener };
    const { factory, keepAliveMs, clock } = this.#options;
    const mcp = await factory({ era: "legacy", ...(auth === undefined ? {} : { authInfo: auth }) });
    const owner = ownerOf(auth);
    const id = randomUUID();
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      keepAliveMs,
      retryInterval: 1000,
      eventStore: this.#options.events.of(id, () => session.owner),
      onsessioninitialized: () => void this.#sessions.set(id, session),
    });
    const session: Session = {
      owner,
      auth,
      transport,
      close: () => mcp.close(),
      open: 0,
      lastUsed: clock(),
    };
    await mcp.connect(transport);
    // connect() installed its own hook; it must still run.
    const closed = transport.onclose;
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK object is no event target
    transport.onclose = () => {
      closed?.();
      this.#sessions.delete(id);
      if (!this.#closing) void this.#options.events.forget(id);
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

  /**
   * Ends an idle session where another one would be too many: first among the owner's own, so that nobody loses
   * one because another opens many.
   */
  async #makeRoom(owner: string): Promise<Crowd | undefined> {
    const { limit, limitPerOwner } = this.#options;
    const own = await this.#evict(limitPerOwner, (candidate) => candidate === owner);
    if (own !== undefined) {
      const message = `You have ${limitPerOwner} sessions, all in use: end one with DELETE, or try again in ${own} s`;
      return { status: 429, message, retryAfterSeconds: own };
    }
    const any = await this.#evict(limit, () => true);
    if (any === undefined) return undefined;
    const message = `All ${limit} sessions of this server are in use: try again in ${any} s`;
    return { status: 503, message, retryAfterSeconds: any };
  }

  /** Makes room among the sessions whose owner `counts`; returns `undefined`, or the seconds to wait for it. */
  async #evict(limit: number, counts: (owner: string) => boolean): Promise<number | undefined> {
    const sessions = [...this.#sessions.values()].filter((session) => counts(session.owner));
    if (sessions.length + this.#opening.filter(counts).length < limit) return undefined;
    const quiet = sessions.filter((session) => session.open === 0);
    const [oldest] = quiet.sort((a, b) => a.lastUsed - b.lastUsed);
    const idleAt = (oldest?.lastUsed ?? Number.POSITIVE_INFINITY) + BUSY_MS;
    const waitMs = Math.min(idleAt - this.#options.clock(), BUSY_MS);
    if (oldest === undefined || waitMs > 0) return Math.ceil(waitMs / 1000);
    this.#options.logger.warn("http.session_evicted", { sessions: this.#sessions.size });
    await oldest.close();
    return undefined;
  }
}

/** Gives the session the scopes of this request's token, and asks for them from now on. */
function grow(session: Session, auth: AuthInfo | undefined): void {
  if (session.auth === undefined || auth === undefined) return;
  session.auth.scopes = [...auth.scopes];
  session.owner = ownerOf(auth);
}
