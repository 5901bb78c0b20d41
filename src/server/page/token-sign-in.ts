/** Lets in people who log in with a token, such as MCP clients send. */
import { createHash, createHmac, randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { AuthInfo } from "@modelcontextprotocol/server";
import { EncryptJWT, errors, jwtDecrypt } from "jose";
import { z } from "zod";
import { SCOPES } from "../../runs/run.ts";
import type { Clock } from "../../core/clock.ts";
import { defined, parsedUrl } from "../../core/unknown.ts";
import type { Logger } from "../../core/logger.ts";
import { type Checked, type Tokens, madeWith, principalOf } from "../auth/auth.ts";
import { allows } from "../../runs/scopes.ts";
import type { Html } from "../views/html.ts";
import { renderLogIn } from "../views/room/log-in.ts";
import { SHELL, renderNotice } from "../views/room/shell.ts";
import { type Reply, readForm } from "./responses.ts";
import { LIFETIME_MS, type PageSession } from "../contracts/viewer.ts";
import type { SignIn, SignedIn } from "./link-sign-in.ts";
import { TabSecrets, secretOf } from "./tab-secrets.ts";
import problems from "./sign-in-problems.json" with { type: "json" };

export interface TokenSignInOptions {
  /** Seals tokens in cookies: at least 32 bytes, the same at all servers of one address. */
  key: () => Promise<Uint8Array>;
  tokens: Tokens;
  /** Makes a token for a person, by name, password and code; `undefined`: refused. Absent: people need a token. */
  logIn?: ((request: IncomingMessage, form: URLSearchParams) => Promise<string | undefined>) | undefined;
  /** Ends such a token. */
  logOut?: ((token: string) => Promise<void>) | undefined;
  clock: Clock;
  logger: Logger;
}

const Sealed = z.object({ jti: z.string(), sub: z.string(), exp: z.number(), token: z.string() });

/** The content of a session. `exp` is in seconds. */
type Session = z.output<typeof Sealed>;

/**
 * A session is the token, sealed so that only a server can open it. So it is checked like those of MCP requests each
 * time it comes: a session ends with its token.
 *
 * Over HTTPS the browser keeps it in a cookie of this host, and any server with the key knows it. Cookies of
 * this machine and of plain HTTP reach other programs, so the tab keeps the session there, sealed for this server
 * alone.
 */
export class TokenSignIn implements SignIn {
  readonly shell = SHELL;
  readonly nothing = renderNotice("Page not found", "This page doesn’t exist, or your token can’t see it.");
  readonly #options: TokenSignInOptions;
  /** Seals sessions that tabs keep. */
  readonly #ownKey = randomBytes(32);
  readonly #form: (next: string, problem?: string) => Html;
  readonly #secrets: TabSecrets;
  /** Ids of sessions that were logged out here, and when they would have ended. */
  readonly #loggedOut = new Map<string, number>();

  constructor(options: TokenSignInOptions) {
    this.#options = options;
    this.#form = renderLogIn.bind(undefined, options.logIn !== undefined);
    this.#secrets = new TabSecrets(options.clock);
  }

  async answer(reply: Reply, { pathname }: URL): Promise<boolean> {
    const { method } = reply.request;
    if (pathname === "/login" && method === "GET") reply.html(200, this.#form("/"));
    else if (pathname === "/login" && method === "POST") await this.#logIn(reply);
    else if (pathname === "/logout" && method === "POST") await this.#logOut(reply);
    else return false;
    return true;
  }

  async find(request: IncomingMessage, url: URL): Promise<SignedIn> {
    const next = request.method === "GET" ? url.pathname + url.search : "/";
    const { session, proof } = await this.#read(request);
    if (session === undefined) return { ok: false, status: 401, page: this.#form(next) };
    const { tokens } = this.#options;
    const checked = await tokens.recheck(request, `Bearer ${session.token}`);
    const problem = pageProblem(checked, problems.ended);
    if (!checked.ok || problem !== undefined || principalOf(checked.auth) !== session.sub) {
      const { status, text } = problem ?? problems.ended;
      return { ok: false, status, page: this.#form(next, text), proof };
    }
    return { ok: true, session: toSession(checked.auth, session.jti), proof };
  }

  async #logIn(reply: Reply): Promise<void> {
    const { request } = reply;
    const { tokens, logIn, logger } = this.#options;
    const form = await readForm(request, 64 * 1024);
    const url = parsedUrl(form?.get("next") ?? "/", "http://page");
    // Never an address of another server.
    const next = url?.host === "page" && !url.pathname.startsWith("//") ? url.pathname + url.search : "/";
    const refuse = ({ status, text }: Problem, headers: Record<string, string> = {}): void =>
      reply.html(status, this.#form(next, text), headers);
    const given = (form?.get("token") ?? "").trim();
    const isPerson = logIn !== undefined && form !== undefined && given === "" && form.has("name");
    if (given === "" && !isPerson) return refuse({ status: 422, text: "There was no token in the form." });
    // Unlike MCP requests, a guess is not looked at any more: whoever has a good token can wait for a minute.
    const wait = tokens.wait(request);
    if (wait > 0) return refuse(problems.too_many_failures, { "retry-after": String(wait) });
    const token = isPerson ? await logIn(request, form) : given;
    if (token === undefined) return refuse(problems.wrong_person);
    const checked = await tokens.check(request, `Bearer ${token}`);
    const problem = pageProblem(checked, problems.invalid_token);
    if (!checked.ok || problem !== undefined) {
      logger.info("page.log_in_refused", { status: problem?.status });
      return refuse(problem ?? problems.invalid_token);
    }
    const principal = principalOf(checked.auth);
    const until = (checked.auth.expiresAt ?? Infinity) * 1000;
    const expires = Math.min(this.#options.clock() + LIFETIME_MS, until);
    const granted = { principal, token, expires };
    const secret = keepsCookies(request) ? undefined : await seal(this.#ownKey, granted);
    const session = secret === undefined ? undefined : { secret, proof: this.#secrets.proofOf(secret) };
    const cookie = session === undefined ? await this.#cookieFor(request, granted) : {};
    if (cookie === undefined)
      return refuse({
        status: 422,
        text: "This token is too long for a browser to keep. Ask for one with fewer claims.",
      });
    logger.info("page.logged_in", { principal });
    return reply.enter({ at: next, ...defined({ session }) }, cookie);
  }

  /** The header for a cookie. `undefined`: no browser keeps so long a cookie. */
  async #cookieFor(request: IncomingMessage, granted: Granted): Promise<Record<string, string> | undefined> {
    const seconds = Math.floor((granted.expires - this.#options.clock()) / 1000);
    const cookie = await this.#cookie(await seal(await this.#sharedKey(), granted), seconds);
    // Browsers keep no longer cookie, with its name and attributes.
    if (cookie.length > 4096) return undefined;
    // The earlier session of the browser would stay valid for anyone with a copy of its cookie.
    const { session } = await this.#read(request);
    if (session !== undefined) this.#end(session);
    return { "set-cookie": cookie };
  }

  async #logOut(reply: Reply): Promise<void> {
    const { session, proof } = await this.#read(reply.request);
    if (session !== undefined) this.#end(session);
    await this.#options.logOut?.(session?.token ?? "");
    if (proof === undefined)
      return reply.enter({ at: "/login" }, { "set-cookie": await this.#cookie("", 0) });
    reply.prove(proof);
    return reply.enter({ at: "/login" });
  }

  #end({ jti, exp, sub }: Session): void {
    const now = this.#options.clock();
    for (const [id, expires] of this.#loggedOut) if (expires <= now) this.#loggedOut.delete(id);
    this.#loggedOut.set(jti, exp * 1000);
    this.#options.logger.info("page.logged_out", { principal: sub });
  }

  /** The session of a tab, or of the browser's cookie where the tab has none. */
  async #read(request: IncomingMessage): Promise<{ session?: Session | undefined; proof?: string }> {
    const secret = secretOf(request);
    if (secret === undefined) return {};
    const session = await this.#open(this.#ownKey, secret);
    if (session !== undefined) return { session, proof: this.#secrets.proofOf(secret) };
    const beginning = `${await this.#name()}=`;
    const sent = (request.headers.cookie ?? "").split(";").map((text) => text.trim());
    const [own, ...others] = sent.filter((text) => text.startsWith(beginning));
    // Only one of two can be from here.
    if (own === undefined || others.length > 0) return {};
    return { session: await this.#open(await this.#sharedKey(), own.slice(beginning.length)) };
  }

  /** Returns undefined if it was not sealed with this key, or has ended. */
  async #open(key: Uint8Array, value: string): Promise<Session | undefined> {
    const currentDate = new Date(this.#options.clock());
    try {
      const { payload } = await jwtDecrypt(value, key, {
        keyManagementAlgorithms: ["dir"],
        contentEncryptionAlgorithms: ["A256GCM"],
        currentDate,
      });
      const session = Sealed.parse(payload);
      return this.#loggedOut.has(session.jti) ? undefined : session;
    } catch (error) {
      if (error instanceof errors.JOSEError) return undefined;
      throw error;
    }
  }

  async #cookie(value: string, seconds: number): Promise<string> {
    return `${await this.#name()}=${value}; Path=/; Max-Age=${seconds}; Secure; HttpOnly; SameSite=Strict`;
  }

  /**
   * The prefix keeps other hosts, other paths and plain HTTP from setting such a cookie. The rest belongs to the
   * key, because several servers may be below one host.
   */
  async #name(): Promise<string> {
    const key = await this.#options.key();
    return `__Host-deepagent-${createHash("sha256").update("cookie").update(key).digest("hex").slice(0, 12)}`;
  }

  async #sharedKey(): Promise<Uint8Array> {
    return createHmac("sha256", await this.#options.key())
      .update("page seal")
      .digest();
  }
}

const toSession = (auth: AuthInfo, id: string): PageSession => {
  const scopes = SCOPES.filter((scope) => allows(auth, scope));
  return { id, principal: principalOf(auth), scopes, isLoggedIn: true, madeWith: () => madeWith(auth) };
};

/** Finds the session of one request by its bearer token, such as MCP clients send. */
export function findByToken(tokens: Tokens): SignIn["find"] {
  let how: "check" | "recheck" = "check";
  return async (request) => {
    const checked = await tokens[how](request, request.headers.authorization);
    how = "recheck";
    if (checked.ok) return { ok: true, session: toSession(checked.auth, principalOf(checked.auth)) };
    const { wait, response } = checked;
    const headers = wait > 0 ? { "retry-after": String(wait) } : Object.fromEntries(response.headers);
    return { ok: false, status: wait > 0 ? 429 : response.status, page: SHELL, headers };
  };
}

interface Granted {
  principal: string;
  token: string;
  expires: number;
}

const seal = (key: Uint8Array, { principal, token, expires }: Granted): Promise<string> =>
  new EncryptJWT({ token })
    .setProtectedHeader({ alg: "dir", enc: "A256GCM" })
    .setSubject(principal)
    .setJti(crypto.randomUUID())
    .setExpirationTime(Math.floor(expires / 1000))
    .encrypt(key);

/**
 * True if the browser reaches this server by HTTPS and a name of its own. Its own word counts, because it names the
 * scheme that it uses, whatever a proxy does on the way. All programs of a machine share the cookies of loopback names.
 */
function keepsCookies({ headers: { origin = "" } }: IncomingMessage): boolean {
  const { protocol, hostname } = parsedUrl(origin) ?? {};
  if (protocol === undefined || hostname === undefined) return false;
  return protocol === "https:" && !/^(?:.*\.)?localhost$|^127\.|^\[::1\]$/.test(hostname);
}

type Problem = (typeof problems)["ended"];

/** Returns why a token opens no page. `refused`: the problem to report for an invalid one. */
function pageProblem(checked: Checked, refused: Problem): Problem | undefined {
  if (checked.ok)
    return allows(checked.auth, "read")
      ? undefined
      : { status: 403, text: "This token may not look at runs. Use one that has the scope read." };
  const { reason } = checked;
  return reason === "no_token" || reason === "invalid_token" ? refused : problems[reason];
}
