/** Lets in browsers that follow a link of this server, which works once. */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import type { Principal } from "../../runs/run.ts";
import { renderNotice, renderOpening } from "../views/room/shell.ts";
import { answerProof } from "./find-page.ts";
import { type Reply, readForm } from "./responses.ts";
import { LIFETIME_MS, type PageLink, PageSessions, runPath } from "./sessions.ts";
import type { SignIn, SignedIn } from "./sign-in.ts";

const MAX_LINKS = 10_000;

/** Tokens in links to the page: good once, on the server that made them. The oldest makes room for a new one. */
export class LinkTokens {
  readonly #links = new Map<string, { link: PageLink; expires: number }>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  mint(link: PageLink): string {
    const token = randomBytes(32).toString("base64url");
    this.#links.set(token, { link, expires: this.#clock() + LIFETIME_MS });
    const oldest = this.#links.keys().next();
    if (this.#links.size > MAX_LINKS && oldest.done !== true) this.#links.delete(oldest.value);
    return token;
  }

  /** Returns what the token opens, without using it up; `undefined` when it opens nothing (any more). */
  inspect(token: string): PageLink | undefined {
    const found = this.#links.get(token);
    return found !== undefined && found.expires > this.#clock() ? found.link : undefined;
  }

  /** Uses the token up, and returns what it opened. */
  redeem(token: string): PageLink | undefined {
    const link = this.inspect(token);
    this.#links.delete(token);
    return link;
  }
}

export interface LinkSignInOptions {
  clock: Clock;
  /** Signs sessions; at least 32 bytes. */
  key: Uint8Array;
  /** Whose data folder it is: they may ask for a link with its key. Default: nobody. */
  local?: Principal;
  logger: Logger;
}

export class LinkSignIn implements SignIn {
  /** Host and port under which the page is served. */
  host = "";
  readonly nothing = NOTHING;
  readonly #tokens: LinkTokens;
  readonly #sessions: PageSessions;
  readonly #options: LinkSignInOptions;

  constructor(options: LinkSignInOptions) {
    this.#options = options;
    this.#tokens = new LinkTokens(options.clock);
    this.#sessions = new PageSessions(options.key, options.clock);
  }

  /** An address that opens the page once. */
  link(link: PageLink): string {
    return `http://${this.host}/open?token=${this.#tokens.mint(link)}`;
  }

  async find(request: IncomingMessage, _url: URL, runId: string | undefined): Promise<SignedIn> {
    const session = this.#sessions.find(request, runId);
    return session === undefined ? { ok: false, status: 404, page: NOTHING } : { ok: true, session };
  }

  async answer(reply: Reply, url: URL): Promise<boolean> {
    if (url.pathname === "/open") await this.#open(reply, url);
    else if (url.pathname === "/link") await this.#link(reply);
    else return false;
    return true;
  }

  async #open(reply: Reply, url: URL): Promise<void> {
    const { request } = reply;
    if (request.method === "GET") {
      const token = url.searchParams.get("token") ?? "";
      if (this.#tokens.inspect(token) === undefined) return reply.html(403, SPENT);
      return reply.html(200, renderOpening(token));
    }
    const form = request.method === "POST" ? await readForm(request) : undefined;
    const link = this.#tokens.redeem(form?.get("token") ?? "");
    if (link === undefined) {
      this.#options.logger.warn("page.link_refused");
      return reply.html(403, SPENT);
    }
    const { run, first = run, purpose } = link;
    this.#options.logger.info("page.opened", { ...(run === undefined ? {} : { runId: run }), purpose });
    return reply.redirect(first === undefined ? "/" : runPath(first), this.#sessions.open(link));
  }

  /** For a command of the person whose data folder this is, who can read its key. */
  async #link(reply: Reply): Promise<void> {
    const { request } = reply;
    const { key, clock, local } = this.#options;
    const [, proof = ""] = /^Proof (\S+)$/.exec(request.headers.authorization ?? "") ?? [];
    const answer = answerProof(key, this.host, proof, clock());
    if (request.method !== "POST" || local === undefined || answer === undefined) {
      return reply.text(403, "text/plain", "Forbidden");
    }
    const first = (await readForm(request))?.get("first") ?? undefined;
    const link = this.link({
      principal: local,
      purpose: "decide",
      ...(first === undefined ? {} : { first }),
    });
    reply.text(200, "application/json", JSON.stringify({ link, proof: answer }));
  }
}

const ANOTHER =
  "Ask for a new link: `deepagent-mcp open` in a terminal gives one to all runs, and check_deep_agent one to its run.";
const SPENT = renderNotice("This link cannot be used", `It was used before, or is too old. ${ANOTHER}`);
const NOTHING = renderNotice("Nothing to see here", `This browser has not opened that. ${ANOTHER}`);
