/** Lets in people who log in with a token, such as MCP clients send. */
import { createHash, createHmac } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { EncryptJWT, errors, jwtDecrypt } from "jose";
import { z } from "zod";
import { SCOPES } from "../../config/sections.ts";
import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import { type AuthFailure, principalOf } from "../auth/auth.ts";
import { allows } from "../auth/scopes.ts";
import type { Checked, TokenCheck } from "../http/token-check.ts";
import { renderLogIn } from "../views/room/log-in.ts";
import { renderNotice } from "../views/room/shell.ts";
import { type Reply, readForm } from "./responses.ts";
import { LIFETIME_MS, isOwnForm } from "./sessions.ts";
import type { SignIn, SignedIn } from "./sign-in.ts";

export interface TokenSignInOptions {
  /** Seals tokens in cookies: at least 32 bytes, the same at all servers of one address. */
  key: () => Promise<Uint8Array>;
  tokens: TokenCheck;
  /** Path below which browsers reach the page, without a slash at its end. */
  base: string;
  clock: Clock;
  logger: Logger;
}

const Sealed = z.object({ jti: z.string(), sub: z.string(), exp: z.number(), token: z.string() });

/** What a cookie holds. `exp` is in seconds. */
interface Cookie extends z.output<typeof Sealed> {
  value: string;
}

/** Longest cookie that browsers keep, with its name and attributes. */
const MAX_COOKIE = 4096;
const MAX_FORM_BYTES = 64 * 1024;

/**
 * A session is the token, sealed in a cookie that only servers with the key can open. So it is checked like those
 * of MCP requests each time it comes: what ends a token ends its sessions, and any server knows them.
 */
export class TokenSignIn implements SignIn {
  readonly nothing = NOTHING;
  readonly #options: TokenSignInOptions;
  /** Ids of sessions that were logged out here, and when they would have ended. */
  readonly #loggedOut = new Map<string, number>();

  constructor(options: TokenSignInOptions) {
    this.#options = options;
  }

  async answer(reply: Reply, url: URL): Promise<boolean> {
    if (url.pathname === "/login") await this.#logIn(reply);
    else if (url.pathname === "/logout") await this.#logOut(reply, url);
    else return false;
    return true;
  }

  async find(request: IncomingMessage, url: URL): Promise<SignedIn> {
    const next = request.method === "GET" ? url.pathname + url.search : "/";
    const cookie = await this.#cookieOf(request);
    if (cookie === undefined) {
      return isFromElsewhere(request) ? AGAIN : { ok: false, status: 401, page: renderLogIn({ next }) };
    }
    const { tokens } = this.#options;
    const checked = await tokens.recheck(request, `Bearer ${cookie.token}`);
    const problem = problemOf(checked, ENDED);
    if (!checked.ok || problem !== undefined || principalOf(checked.auth) !== cookie.sub) {
      const { status, text } = problem ?? ENDED;
      return { ok: false, status, page: renderLogIn({ next, problem: text }) };
    }
    const csrf = await this.#sign("csrf", cookie.value);
    const scopes = SCOPES.filter((scope) => allows(checked.auth, scope));
    const session = { principal: cookie.sub, scopes, csrf, isLoggedIn: true };
    return { ok: true, session };
  }

  async #logIn(reply: Reply): Promise<void> {
    const { request } = reply;
    const { tokens, logger } = this.#options;
    if (request.method === "GET") return reply.html(200, renderLogIn({ next: "/" }));
    const form = request.method === "POST" ? await readForm(request, MAX_FORM_BYTES) : undefined;
    const next = ownAddress(form?.get("next") ?? "/");
    const refuse = ({ status, text }: Problem, headers: Record<string, string> = {}): void =>
      reply.html(status, renderLogIn({ next, problem: text }), headers);
    const token = (form?.get("token") ?? "").trim();
    if (token === "") return refuse(NO_TOKEN);
    // Unlike MCP requests, a guess is not looked at any more: whoever has a good token can wait for a minute.
    const wait = tokens.wait(request);
    if (wait > 0) return refuse(PROBLEMS.too_many_failures, { "retry-after": String(wait) });
    const checked = await tokens.check(request, `Bearer ${token}`);
    const problem = problemOf(checked, PROBLEMS.invalid_token);
    if (!checked.ok || problem !== undefined) {
      logger.info("page.log_in_refused", { status: problem?.status });
      return refuse(problem ?? PROBLEMS.invalid_token);
    }
    const principal = principalOf(checked.auth);
    const expires = Math.min(
      this.#options.clock() + LIFETIME_MS,
      (checked.auth.expiresAt ?? Infinity) * 1000,
    );
    const cookie = await this.#seal(request, { principal, token, expires });
    if (cookie.length > MAX_COOKIE) return refuse(TOO_LONG);
    logger.info("page.logged_in", { principal });
    return reply.redirect(next, cookie);
  }

  async #logOut(reply: Reply, url: URL): Promise<void> {
    const { request } = reply;
    if (request.method !== "POST") return reply.html(405, NOTHING);
    const cookie = await this.#cookieOf(request);
    const found = await this.find(request, url);
    const form = await readForm(request, MAX_FORM_BYTES);
    if (found.ok && !isOwnForm(found.session, form?.get("csrf") ?? "")) return reply.html(403, NOT_OWN);
    if (cookie !== undefined) this.#end(cookie);
    return reply.redirect("/login", await this.#cookieText(request, "", 0));
  }

  #end({ jti, exp, sub }: Cookie): void {
    const now = this.#options.clock();
    for (const [id, expires] of this.#loggedOut) if (expires <= now) this.#loggedOut.delete(id);
    this.#loggedOut.set(jti, exp * 1000);
    this.#options.logger.info("page.logged_out", { principal: sub });
  }

  /** The session's cookie; `undefined`: there is none that was sealed here and has not ended. */
  async #cookieOf({ headers }: IncomingMessage): Promise<Cookie | undefined> {
    const beginning = `${await this.#name()}=`;
    const sent = (headers.cookie ?? "").split(";").map((text) => text.trim());
    const value = sent.find((text) => text.startsWith(beginning))?.slice(beginning.length);
    if (value === undefined) return undefined;
    const cookie = await this.#open(value);
    return cookie === undefined || this.#loggedOut.has(cookie.jti) ? undefined : cookie;
  }

  async #open(value: string): Promise<Cookie | undefined> {
    const currentDate = new Date(this.#options.clock());
    try {
      const { payload } = await jwtDecrypt(value, await this.#sealingKey(), { ...SEALING, currentDate });
      return { ...Sealed.parse(payload), value };
    } catch (error) {
      if (error instanceof errors.JOSEError) return undefined;
      throw error;
    }
  }

  async #seal(
    request: IncomingMessage,
    { principal, token, expires }: { principal: string; token: string; expires: number },
  ): Promise<string> {
    const value = await new EncryptJWT({ token })
      .setProtectedHeader({ alg: "dir", enc: "A256GCM" })
      .setSubject(principal)
      .setJti(crypto.randomUUID())
      .setExpirationTime(Math.floor(expires / 1000))
      .encrypt(await this.#sealingKey());
    return this.#cookieText(request, value, Math.floor((expires - this.#options.clock()) / 1000));
  }

  async #cookieText({ headers }: IncomingMessage, value: string, seconds: number): Promise<string> {
    // Browsers name the scheme that they use here, whatever a proxy does with it on the way.
    const secure = headers.origin?.startsWith("https:") ? "; Secure" : "";
    const path = `${this.#options.base}/`;
    return `${await this.#name()}=${value}; Path=${path}; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`;
  }

  /** Belongs to the key: browsers do not tell apart the ports of a host. */
  async #name(): Promise<string> {
    const key = await this.#options.key();
    return `deepagent_login_${createHash("sha256").update("cookie").update(key).digest("hex").slice(0, 12)}`;
  }

  async #sealingKey(): Promise<Uint8Array> {
    return createHmac("sha256", await this.#options.key())
      .update("page seal")
      .digest();
  }

  async #sign(use: string, text: string): Promise<string> {
    return createHmac("sha256", await this.#options.key())
      .update(`page ${use} ${text}`)
      .digest("base64url");
  }
}

const SEALING = { keyManagementAlgorithms: ["dir"], contentEncryptionAlgorithms: ["A256GCM"] };

interface Problem {
  status: number;
  text: string;
}

const PROBLEMS: Readonly<Record<Exclude<AuthFailure, "no_token">, Problem>> = {
  invalid_token: { status: 401, text: "This token is unknown, has expired or is not for this server." },
  no_scope: { status: 403, text: "This token has no scope of this server. Use one that has the scope read." },
  issuer_unavailable: { status: 503, text: "The token cannot be checked now. Try again in a moment." },
  too_many_failures: {
    status: 429,
    text: "Too many tokens from your address were refused. Try again in a minute.",
  },
};
const NO_TOKEN: Problem = { status: 422, text: "There was no token in the form." };
const CANNOT_READ: Problem = {
  status: 403,
  text: "This token may not look at runs. Use one that has the scope read.",
};
const TOO_LONG: Problem = {
  status: 422,
  text: "This token is too long for a browser to keep. Ask for one with fewer claims.",
};
const ENDED: Problem = {
  status: 401,
  text: "You were logged out: your token has expired, or was taken back or changed.",
};

/** Why a token opens no page; `refused`: what to say of one that is not good. */
function problemOf(checked: Checked, refused: Problem): Problem | undefined {
  if (checked.ok) return allows(checked.auth, "read") ? undefined : CANNOT_READ;
  const { reason } = checked;
  return reason === "no_token" || reason === "invalid_token" ? refused : PROBLEMS[reason];
}

/**
 * Whether a link of another site was followed. Browsers keep the session's cookie to themselves then, so the page
 * asks for itself once more.
 */
const isFromElsewhere = ({ method, headers }: IncomingMessage): boolean =>
  method === "GET" && headers["sec-fetch-site"] === "cross-site" && headers["sec-fetch-mode"] === "navigate";

/** Where to go after the log-in: never to another server. */
function ownAddress(next: string): string {
  const url = URL.canParse(next, "http://page") ? new URL(next, "http://page") : undefined;
  return url?.host === "page" && !url.pathname.startsWith("//") ? url.pathname + url.search : "/";
}

const AGAIN: SignedIn = {
  ok: false,
  status: 200,
  page: renderNotice("Opening deepagent", "Reload the page if nothing happens."),
  headers: { refresh: "0" },
};
const NOTHING = renderNotice("Nothing to see here", "There is no such page among those of your token.");
const NOT_OWN = renderNotice("You are still logged in", "Go back, reload the page and try again.");
