/** Serves requests of revisions without sessions, and bounds the streams that stay open. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type NodeMcpRequestHandler, toNodeHandler } from "@modelcontextprotocol/node";
import { type AuthInfo, type McpServerFactory, createMcpHandler } from "@modelcontextprotocol/server";
import { type Clock, isDoneWithin } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import type { Principal } from "../../runs/run.ts";
import { mapAtMost } from "../../core/concurrency.ts";
import { type Authenticator, maySucceed, ownerOf, principalOf } from "../auth/auth.ts";
import { allows } from "../../runs/scopes.ts";
import type { ResourceChanges } from "../contracts/changes.ts";
import { followListened } from "../resources/changes.ts";

export type AuthenticatedRequest = IncomingMessage & { auth?: AuthInfo };

export interface StatelessOptions {
  factory: McpServerFactory;
  changes: ResourceChanges;
  keepAliveMs: number;
  onerror: (error: Error) => void;
}

interface Handler {
  serve: NodeMcpRequestHandler;
  close(): Promise<void>;
  /** Requests and streams open now. */
  open: number;
}

/**
 * Serves requests that stand alone, with a handler for each principal, so that a client that listens to changes
 * learns of its principal's own only.
 */
export class StatelessHandlers {
  readonly #options: StatelessOptions;
  /** In the order of last use. */
  readonly #handlers = new Map<Principal, Handler>();

  constructor(options: StatelessOptions) {
    this.#options = options;
  }

  async serve(request: AuthenticatedRequest, response: ServerResponse, body: unknown): Promise<void> {
    const principal = principalOf(request.auth);
    const handler = this.#handlers.get(principal) ?? this.#create(principal);
    this.#handlers.delete(principal);
    this.#handlers.set(principal, handler);
    handler.open += 1;
    response.once("close", () => {
      handler.open -= 1;
      for (const [idle, one] of this.#handlers) {
        // Keeps some handlers for which no request is open.
        if (this.#handlers.size <= 1000) return;
        if (one.open > 0) continue;
        this.#handlers.delete(idle);
        one.close().catch(this.#options.onerror);
      }
    });
    if (allows(request.auth, "read")) followListened(this.#options.changes, principal, body);
    await handler.serve(request, response, body);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#handlers.values()].map((handler) => handler.close()));
  }

  #create(principal: Principal): Handler {
    const { factory, changes, keepAliveMs, onerror } = this.#options;
    const mcp = createMcpHandler(factory, { legacy: "reject", keepAliveMs, onerror });
    const detach = changes.attach(principal, mcp.notify);
    return {
      serve: toNodeHandler({
        fetch: async (request, extra) => {
          const answer = mcp.fetch(request, extra);
          const mayStream = request.headers.get("accept")?.includes("text/event-stream") === true;
          if (!mayStream || (await isDoneWithin(keepAliveMs, answer))) return answer;
          return new Response(ReadableStream.from(lateEvents(answer, keepAliveMs)), {
            headers: STREAM_HEADERS,
          });
        },
      }),
      close: async () => {
        detach();
        await mcp.close();
      },
      open: 0,
    };
  }
}

const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

/**
 * A call without a progress token is silent until its answer, and proxies close connections that are silent
 * for a minute: from then on it is answered by a stream with comments.
 */
async function* lateEvents(answer: Promise<Response>, keepAliveMs: number): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  do yield encoder.encode(": keepalive\n\n");
  while (!(await isDoneWithin(keepAliveMs, answer)));
  const { body, headers } = await answer;
  if (body === null) return;
  if (headers.get("content-type") === "text/event-stream") return yield* body;
  yield encoder.encode("event: message\ndata: ");
  yield* body;
  yield encoder.encode("\n\n");
}

export interface OpenResponsesOptions {
  authenticator: Authenticator;
  clock: Clock;
  logger: Logger;
}

interface Open {
  authorization: string | undefined;
  owner: string;
  /** Seconds since the epoch. */
  expiresAt: number;
  /** A stream without an end of its own, not the answer to a call. */
  lasting: boolean;
  end(): void;
}

/**
 * Responses that are open, with the tokens they were opened with. A stream ends when its token expires: the client
 * opens the next with a valid one and, in a session, gets the missed messages. A call that began in time is answered,
 * because it ends by itself. When a token is revoked, both end.
 */
export class OpenResponses {
  readonly #options: OpenResponsesOptions;
  readonly #open = new Set<Open>();

  constructor(options: OpenResponsesOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#open.size;
  }

  add(request: AuthenticatedRequest, response: ServerResponse, lasting: boolean): void {
    const { auth, headers } = request;
    if (auth === undefined) return;
    const open: Open = {
      authorization: headers.authorization,
      owner: ownerOf(auth),
      expiresAt: auth.expiresAt ?? Infinity,
      lasting,
      end: () => {
        // A writer learns of the end by the close that follows.
        response.on("error", () => {});
        if (response.headersSent) response.end();
        else response.destroy();
      },
    };
    this.#open.add(open);
    response.once("close", () => this.#open.delete(open));
  }

  expire(): void {
    const now = this.#options.clock() / 1000;
    for (const open of this.#open) if (open.lasting && open.expiresAt <= now) open.end();
  }

  /**
   * Ends responses whose tokens would be refused now, or allow less than before. A token that cannot be
   * checked now stays good.
   */
  async recheck(): Promise<void> {
    const { authenticator, clock, logger } = this.#options;
    const now = clock() / 1000;
    const current = [...this.#open].filter(({ expiresAt }) => expiresAt > now);
    const tokens = [...new Set(current.map((open) => open.authorization))];
    await mapAtMost(16, tokens, async (authorization) => {
      const outcome = await authenticator.authenticate(authorization, { mayAsk: true, maxAgeMs: 0 });
      if (!outcome.ok && !outcome.isFinal) return;
      const own = current.filter((open) => open.authorization === authorization);
      const ended = own.filter(({ owner }) => !(outcome.ok && maySucceed(outcome.auth, owner)));
      if (ended.length > 0) logger.info("auth.token_revoked", { ended: ended.length });
      for (const open of ended) open.end();
    });
  }
}
