import type { ServerResponse } from "node:http";
import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import { maySucceed, ownerOf, type Authenticator } from "../auth/auth.ts";
import type { AuthenticatedRequest } from "./modern.ts";

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
 * Responses that are open, with the tokens they were opened with. A stream ends when its token expires: the
 * client opens the next with a better one and, in a 2025-era session, gets what it missed. A call that began
 * in time is answered, because it ends by itself. When a token is revoked, both end.
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
      end: () => endResponse(response),
    };
    this.#open.add(open);
    response.once("close", () => this.#open.delete(open));
  }

  /** Ends the streams whose tokens have expired. */
  expire(): void {
    const now = this.#options.clock() / 1000;
    for (const open of this.#open) if (open.lasting && open.expiresAt <= now) open.end();
  }

  /**
   * Ends what is open with tokens that would be refused now, or that allow less than then. What cannot be
   * found out changes nothing.
   */
  async recheck(): Promise<void> {
    const { authenticator, clock, logger } = this.#options;
    const now = clock() / 1000;
    const current = [...this.#open].filter(({ expiresAt }) => expiresAt > now);
    for (const authorization of new Set(current.map((open) => open.authorization))) {
      const outcome = await authenticator.authenticate(authorization);
      if (!outcome.ok && !FINAL.has(outcome.reason)) continue;
      const ended = current.filter(
        (open) =>
          open.authorization === authorization && !(outcome.ok && maySucceed(outcome.auth, open.owner)),
      );
      if (ended.length > 0) logger.info("auth.token_revoked", { ended: ended.length });
      for (const open of ended) open.end();
    }
  }
}

const FINAL: ReadonlySet<string> = new Set(["invalid_token", "no_scope"]);

function endResponse(response: ServerResponse): void {
  // Whoever is still writing finds out by the close that follows.
  response.on("error", () => {});
  if (response.headersSent) response.end();
  else response.destroy();
}
