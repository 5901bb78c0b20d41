/** Links that open a page once, and the sessions of browsers that followed one. */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { z } from "zod";
import type { Clock } from "../../core/clock.ts";
import type { Principal } from "../../runs/run.ts";

/** One browser that redeemed a link. */
export interface PageSession extends PageGrant {
  /** Has to come with every decision. */
  csrf: string;
  expires: number;
}

/** Who looks at a run: a browser, or an MCP App in a host, which only looks. */
export type Viewer = PageSession | "app";

/** A viewer of approvals, who may have to go to a terminal to decide. */
export interface ApprovalViewer {
  session: Viewer;
  /** A line to paste there; `undefined`: a terminal does not show the run. */
  openCommand: string | undefined;
}

const SESSION_LIFETIME_MS = 12 * 60 * 60 * 1000;
const CAPACITY = 1000;

/** Sessions of one page server, each bound to one run; gone when the server closes. */
export class PageSessions {
  readonly #sessions = new Map<string, PageSession>();
  readonly #clock: Clock;
  /** Of this server alone: browsers do not tell apart the ports of a host. */
  readonly #cookie = `deepagent_page_${randomBytes(6).toString("hex")}`;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The cookie of a new session. It is sent for its run's addresses only. */
  open(grant: PageGrant): string {
    const id = randomBytes(32).toString("base64url");
    const { run, principal, purpose } = grant;
    this.#sessions.set(id, {
      run,
      principal,
      purpose,
      csrf: randomBytes(32).toString("base64url"),
      expires: this.#clock() + SESSION_LIFETIME_MS,
    });
    const oldest = this.#sessions.keys().next();
    if (this.#sessions.size > CAPACITY && oldest.done !== true) this.#sessions.delete(oldest.value);
    const age = Math.floor(SESSION_LIFETIME_MS / 1000);
    return `${this.#cookie}=${id}; Path=${runPath(run)}; Max-Age=${age}; HttpOnly; SameSite=Strict`;
  }

  /** The session of a request, when it is one of this run's. */
  find(request: IncomingMessage, run: string): PageSession | undefined {
    const cookies = (request.headers.cookie ?? "").split(";").map((cookie) => cookie.trim());
    for (const cookie of cookies) {
      if (!cookie.startsWith(`${this.#cookie}=`)) continue;
      const session = this.#sessions.get(cookie.slice(this.#cookie.length + 1));
      if (session !== undefined && session.run === run && session.expires > this.#clock()) return session;
    }
    return undefined;
  }
}

/** Address of a run's page on its server. */
export const runPath = (run: string): string => `/runs/${encodeURIComponent(run)}`;

/** Address of what it did to one file. */
export const changesPath = (run: string, path: string): string =>
  `${runPath(run)}/changes?path=${encodeURIComponent(path)}`;

/** Whether a form came out of a page of this session. */
export function isOwnForm(session: PageSession, csrf: string): boolean {
  const given = Buffer.from(csrf);
  const expected = Buffer.from(session.csrf);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** `watch`: look at the run. `decide`: also decide on its approvals; never given to a model. */
export type PagePurpose = "watch" | "decide";

export interface PageGrant {
  run: string;
  principal: Principal;
  purpose: PagePurpose;
}

const Claims = z.object({
  run: z.string(),
  principal: z.string(),
  purpose: z.enum(["watch", "decide"]),
  /** The page server it was made for: single use is a fact of that server's memory. */
  server: z.string(),
  nonce: z.string(),
  /** Milliseconds, by the clock of that server. */
  expires: z.number(),
});

const LINK_LIFETIME_MS = 12 * 60 * 60 * 1000;
/** Longer ones are not worth reading. */
const MAX_CHARACTERS = 4000;

/** Tokens in links to the page: signed, single use, good for one run, one principal and one purpose. */
export class LinkTokens {
  readonly #key: Buffer;
  readonly #clock: Clock;
  readonly #server = randomBytes(12).toString("base64url");
  /** Nonces of redeemed tokens that have not expired. */
  readonly #used = new Map<string, number>();

  constructor(stateKey: Uint8Array, clock: Clock) {
    // A key of its own, so that nothing else that is signed with the secret passes for a token.
    this.#key = createHmac("sha256", stateKey).update("deepagent-mcp page link").digest();
    this.#clock = clock;
  }

  mint({ run, principal, purpose }: PageGrant): string {
    const claims: z.output<typeof Claims> = {
      run,
      principal,
      purpose,
      server: this.#server,
      nonce: randomBytes(16).toString("base64url"),
      expires: this.#clock() + LINK_LIFETIME_MS,
    };
    const payload = Buffer.from(JSON.stringify(claims)).toString("base64url");
    return `${payload}.${this.#sign(payload).toString("base64url")}`;
  }

  /** What the token grants, without using it up; `undefined` when it grants nothing (any more). */
  inspect(token: string): PageGrant | undefined {
    return this.#valid(token);
  }

  /** The same, once. */
  redeem(token: string): PageGrant | undefined {
    const claims = this.#valid(token);
    if (claims === undefined) return undefined;
    for (const [nonce, expires] of this.#used) if (expires <= this.#clock()) this.#used.delete(nonce);
    this.#used.set(claims.nonce, claims.expires);
    return claims;
  }

  #valid(token: string): z.output<typeof Claims> | undefined {
    if (token.length > MAX_CHARACTERS) return undefined;
    const [payload = "", signature = "", ...rest] = token.split(".");
    const expected = this.#sign(payload);
    const given = Buffer.from(signature, "base64url");
    if (rest.length > 0 || given.length !== expected.length || !timingSafeEqual(given, expected)) {
      return undefined;
    }
    const claims = Claims.parse(JSON.parse(Buffer.from(payload, "base64url").toString("utf8")));
    const isGood = claims.server === this.#server && claims.expires > this.#clock();
    return isGood && !this.#used.has(claims.nonce) ? claims : undefined;
  }

  #sign(payload: string): Buffer {
    return createHmac("sha256", this.#key).update(payload).digest();
  }
}
