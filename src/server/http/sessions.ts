import { randomBytes, randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { type AuthInfo, type McpServerFactory, isJSONRPCResponse } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import type { SessionStore, SharedState } from "../../runs/server-ports.ts";
import { maySucceed, ownerOf, principalOf } from "../auth/auth.ts";
import type { ErrorAnswer } from "../contracts/envelope.ts";
import { type SessionEvents, frameOf } from "./event-store.ts";
import { sendError } from "./request.ts";
import { SessionTransport, askerOf } from "./session-transport.ts";
import type { AuthenticatedRequest } from "./stateless.ts";

export interface SessionOptions {
  factory: McpServerFactory;
  logger: Logger;
  /** Messages that sessions sent; its creator closes it. */
  events: SessionEvents;
  /** Sessions that other servers serve too. Absent: there is no other server. */
  shared?: SharedSessions | undefined;
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
  transport: SessionTransport;
  /** Closes it here; other servers may keep serving it. */
  close(): Promise<void>;
  /** Ends it everywhere. */
  end(): Promise<void>;
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
  /** Sessions of other servers that are being taken up here. */
  readonly #restoring = new Map<string, Promise<Session | Crowd | undefined>>();
  /** Owners of the sessions that are being opened. */
  readonly #opening: string[] = [];
  #closing = false;
  /** Time of the last report to other servers about the use of sessions. */
  #toldAt = -Infinity;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#sessions.size;
  }

  /**
   * Serves a request that carries a session id; a 404 makes the client initialize again. A session of someone else is
   * answered like an unknown one. `errors`: answers to the rest of a batch.
   */
  async serve(
    id: string,
    request: AuthenticatedRequest,
    response: ServerResponse,
    body: unknown,
    errors: readonly ErrorAnswer[] = [],
  ): Promise<void> {
    const session = await this.#find(id, request.auth);
    if (session === undefined) {
      if (await this.#sendRest(id, request, response)) return;
      return sendError(response, 404, -32001, "Session not found");
    }
    if ("status" in session) return refuse(response, session);
    const { shared } = this.#options;
    if (session.auth !== undefined && request.auth !== undefined) {
      const before = session.owner;
      // Grants the session the scopes of this request's token, and requires them from now on.
      session.auth.scopes = [...request.auth.scopes];
      session.owner = ownerOf(request.auth);
      if (session.owner !== before) await (await shared?.store)?.setOwner(id, session.owner);
    }
    this.#track(session, response);
    if (shared === undefined) return session.transport.serve(request, response, body, { errors });
    if (shared.isForeign(body)) {
      const message =
        "Another server asked this question. If it is lost, the question is asked again. Otherwise the proxy has to send each session to one server, by the header Mcp-Session-Id";
      return sendError(response, 409, -32600, message);
    }
    await shared.remember(id, body);
    const last = lastEventId(request);
    const open = last && (await this.#options.events.openCall(id, last));
    // The server that answered the call is another one, or gone.
    if (open && !session.transport.isServing(open.stream))
      return session.transport.serveAgain(request, response, open);
    // An earlier listener may have gone, and with it changes that it would have sent.
    const listens = request.method === "GET";
    const stored = listens ? await (await shared.store).join(id) : undefined;
    await session.transport.serve(request, response, body, { errors, missed: stored?.subscriptions });
  }

  /** The session, if this client may use it; or why it cannot be served now. */
  async #find(id: string, auth: AuthInfo | undefined): Promise<Session | Crowd | undefined> {
    const { shared } = this.#options;
    const here = this.#sessions.get(id);
    const owner = shared === undefined ? here?.owner : await (await shared.store).ownerOf(id);
    // Another server has ended it.
    if (owner === undefined) await here?.close();
    if (owner === undefined || !maySucceed(auth, owner)) return undefined;
    if (!this.#restoring.has(id) && !this.#sessions.has(id)) {
      // Another server opened it.
      const restoring = this.#restore(id, auth).finally(() => this.#restoring.delete(id));
      this.#restoring.set(id, restoring);
    }
    const session = await (this.#restoring.get(id) ?? this.#sessions.get(id));
    if (session !== undefined && "transport" in session) session.owner = owner;
    return session;
  }

  async #restore(id: string, auth: AuthInfo | undefined): Promise<Session | Crowd | undefined> {
    const { shared } = this.#options;
    const crowd = await this.#makeRoom(ownerOf(auth));
    if (crowd !== undefined || shared === undefined) return crowd;
    const stored = await (await shared.store).join(id);
    if (stored === undefined) return undefined;
    const session = await this.#create(auth, id);
    await session.transport.restore(stored, auth);
    if (this.#sessions.has(id)) return session;
    await session.close();
    return undefined;
  }

  /**
   * Sends the rest of a broken stream of a session that ended with an earlier process. Afterwards the client
   * learns that it has to initialise again.
   */
  async #sendRest(id: string, request: AuthenticatedRequest, response: ServerResponse): Promise<boolean> {
    const last = lastEventId(request);
    if (last === undefined || this.#sessions.has(id)) return false;
    const rest = await this.#options.events.after(id, (owner) => maySucceed(request.auth, owner), last);
    if (rest.length === 0) return false;
    const headers = { "content-type": "text/event-stream", "cache-control": "no-cache, no-transform" };
    response.writeHead(200, headers);
    for (const event of rest) response.write(frameOf(event));
    response.end();
    return true;
  }

  /** Serves `initialize`: opens a session, unless the request turns out to be malformed. */
  async open(request: AuthenticatedRequest, response: ServerResponse, body: unknown): Promise<void> {
    const owner = ownerOf(request.auth);
    const id = randomUUID();
    const crowd = await this.#makeRoom(owner);
    if (crowd !== undefined) return refuse(response, crowd);
    this.#opening.push(owner);
    try {
      const crowdElsewhere = await this.#share(id, request.auth, body);
      if (crowdElsewhere !== undefined) return refuse(response, crowdElsewhere);
      const session = await this.#create(request.auth, id);
      this.#track(session, response);
      await session.transport.serve(request, response, body);
      if (session.transport.sessionId === undefined) await session.end();
      else if (this.#options.shared !== undefined) session.transport.initialized();
    } finally {
      this.#opening.splice(this.#opening.indexOf(owner), 1);
    }
  }

  /** Stores a new session for the other servers; returns why there is no room for it. */
  async #share(id: string, auth: AuthInfo | undefined, body: unknown): Promise<Crowd | undefined> {
    const { shared, limitPerOwner: limit, events } = this.#options;
    if (shared === undefined) return undefined;
    const store = await shared.store;
    const facts = { principal: principalOf(auth), owner: ownerOf(auth), opening: JSON.stringify(body) };
    const opened = await store.open({ id, ...facts }, { limit, busyMs: BUSY_MS });
    if (!opened.ok) return tooManyOwn(limit, Math.ceil(opened.waitMs / 1000));
    if (opened.ended !== undefined) await events.forget(opened.ended);
    return undefined;
  }

  /** Reports the sessions in use here to other servers, and closes those that another one has ended. */
  async tellUse(): Promise<void> {
    const { shared, clock } = this.#options;
    const used = [...this.#sessions].filter(([, { open, lastUsed }]) => open > 0 || lastUsed >= this.#toldAt);
    this.#toldAt = clock();
    if (shared === undefined || used.length === 0) return;
    const left = new Set(await (await shared.store).touch(used.map(([id]) => id)));
    await Promise.all(used.filter(([id]) => !left.has(id)).map(([, session]) => session.close()));
  }

  /** Ends the sessions that have been idle for too long. */
  async expire(): Promise<void> {
    const { shared, events, idleMs } = this.#options;
    const oldest = this.#options.clock() - idleMs;
    const isIdle = ({ open, lastUsed }: Session): boolean => open === 0 && lastUsed <= oldest;
    const expired = [...this.#sessions.values()].filter(isIdle);
    await Promise.all(expired.map((session) => session.close()));
    // The store knows of use at other servers.
    const ended = (await (await shared?.store)?.endIdle(idleMs)) ?? [];
    await Promise.all(ended.map((id) => events.forget(id)));
    await events.expire();
  }

  /** Ends all sessions. Keeps their messages for clients that come back to the next process. */
  async close(): Promise<void> {
    this.#closing = true;
    await Promise.all([...this.#sessions.values()].map((session) => session.close()));
  }

  async #create(opener: AuthInfo | undefined, id: string): Promise<Session> {
    const auth = opener === undefined ? undefined : { ...opener };
    const { factory, keepAliveMs, clock, shared, events } = this.#options;
    const mcp = await factory({ era: "legacy", authInfo: auth });
    const end = async (): Promise<void> => {
      await (await shared?.store)?.end(id);
      await events.forget(id);
    };
    const transport = new SessionTransport(shared?.server, {
      sessionIdGenerator: () => id,
      keepAliveMs,
      retryInterval: 1000,
      eventStore: events.of(id, () => session.owner),
      onsessioninitialized: () => void this.#sessions.set(id, session),
      onsessionclosed: shared && end,
    });
    const session: Session = {
      owner: ownerOf(auth),
      auth,
      transport,
      close: () => mcp.close(),
      end: async () => {
        await mcp.close();
        await end();
      },
      open: 0,
      lastUsed: clock(),
    };
    await mcp.connect(transport);
    transport.connected();
    // connect() installed its own hook; it must still run.
    const closed = transport.onclose;
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK object is not an event target
    transport.onclose = () => {
      closed?.();
      this.#sessions.delete(id);
      if (!this.#closing && shared === undefined) void events.forget(id);
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
    const { limit, limitPerOwner, shared } = this.#options;
    // Those at other servers count too, where there are any; see `#share`.
    const own = shared === undefined ? await this.#evict(limitPerOwner, (one) => one === owner) : undefined;
    if (own !== undefined) return tooManyOwn(limitPerOwner, own);
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

/** The event after which a client wants the rest of a broken stream. */
function lastEventId({ method, headers }: AuthenticatedRequest): string | undefined {
  const id = headers["last-event-id"];
  return method === "GET" && typeof id === "string" ? id : undefined;
}

const tooManyOwn = (limit: number, seconds: number): Crowd => ({
  status: 429,
  message: `You have ${limit} sessions, all in use: end one with DELETE, or try again in ${seconds} s`,
  retryAfterSeconds: seconds,
});

function refuse(response: ServerResponse, { status, message, retryAfterSeconds }: Crowd): void {
  response.setHeader("retry-after", String(retryAfterSeconds));
  sendError(response, status, -32000, message);
}

/** The sessions that all servers on one storage serve. */
export class SharedSessions {
  /** Names this server in the ids of its questions. */
  readonly server = randomBytes(6).toString("hex");
  readonly #open: () => Promise<Pick<SharedState, "sessions">>;

  constructor(open: () => Promise<Pick<SharedState, "sessions">>) {
    this.#open = open;
  }

  get store(): Promise<SessionStore> {
    return this.#open().then(({ sessions }) => sessions);
  }

  /** True for an answer to a question that another server asked. */
  isForeign(message: unknown): boolean {
    const asker = isJSONRPCResponse(message) ? askerOf(message.id) : undefined;
    return asker !== undefined && asker !== this.server;
  }

  /** Stores subscriptions for the server that takes over the session if this one is lost. */
  async remember(session: string, body: unknown): Promise<void> {
    for (const message of [body].flat()) {
      const { method, params } = Subscription.safeParse(message).data ?? {};
      if (params !== undefined) await (await this.store).subscribe(session, params.uri, method === SUBSCRIBE);
    }
  }
}

const SUBSCRIBE = "resources/subscribe";
const Subscription = z.looseObject({
  method: z.enum([SUBSCRIBE, "resources/unsubscribe"]),
  params: z.looseObject({ uri: z.string() }),
});
