/** Lets in browsers that follow a link of this server, which works once. */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Clock } from "../../core/clock.ts";
import { defined } from "../../core/unknown.ts";
import type { Logger } from "../../core/logger.ts";
import { NewestOf } from "../../core/newest-of.ts";
import type { Principal } from "../../runs/run.ts";
import { html, type Html } from "../views/html.ts";
import { LINKED_SHELL, renderNotice } from "../views/room/shell.ts";
import { LinkProofs } from "./find-page.ts";
import { type Reply, readForm } from "./responses.ts";
import { LIFETIME_MS, type PageLink, runPath, type PageSession } from "../contracts/viewer.ts";
import { TabSecrets, secretOf } from "./tab-secrets.ts";

/** Codes in links to the page: good once, on the server that made them. The oldest makes room for a new one. */
export class LinkCodes {
  readonly #links = new NewestOf<{ link: PageLink; expires: number }>(10_000);
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  mint(link: PageLink): string {
    const code = randomBytes(32).toString("base64url");
    this.#links.keep(code, { link, expires: this.#clock() + LIFETIME_MS });
    return code;
  }

  /** Uses the code up, and returns its link, or undefined if it is unknown, used or expired. */
  redeem(code: string): PageLink | undefined {
    const found = this.#links.get(code);
    this.#links.delete(code);
    return found !== undefined && found.expires > this.#clock() ? found.link : undefined;
  }
}

export interface LinkSignInOptions {
  clock: Clock;
  /** With which a command proves that it may ask for a link; at least 32 bytes. */
  key: Uint8Array;
  /** Owner of the data folder: requests a link with its key. Default: nobody. */
  local?: Principal;
  logger: Logger;
}

export class LinkSignIn implements SignIn {
  readonly shell = LINKED_SHELL;
  readonly nothing = NOTHING;
  readonly #codes: LinkCodes;
  readonly #secrets: TabSecrets;
  readonly #proofs: LinkProofs;
  readonly #options: LinkSignInOptions;
  /** Host and port under which the page is served. */
  #host = "";

  constructor(options: LinkSignInOptions) {
    this.#options = options;
    this.#codes = new LinkCodes(options.clock);
    this.#secrets = new TabSecrets(options.clock);
    this.#proofs = new LinkProofs(options.key, options.clock);
  }

  get host(): string {
    return this.#host;
  }

  /** Sets the page's host and port from now on. */
  serveAt(host: string): void {
    this.#host = host;
    this.#proofs.beginAt(host);
  }

  /** An address that opens the page once. Browsers keep what follows `#` to themselves and to scripts of the page. */
  link(link: PageLink): string {
    return `http://${this.#host}/open#${this.#codes.mint(link)}`;
  }

  async find(request: IncomingMessage, _url: URL, runId: string | undefined): Promise<SignedIn> {
    const secret = secretOf(request) ?? "";
    const session = this.#secrets.read(secret);
    if (session === undefined) return { ok: false, status: 401, page: NOTHING };
    const proof = this.#secrets.proofOf(secret);
    const isShown = session.run === undefined || session.run === runId;
    return isShown ? { ok: true, session, proof } : { ok: false, status: 404, page: NOTHING, proof };
  }

  async answer(reply: Reply, { pathname }: URL): Promise<boolean> {
    if (reply.request.method !== "POST") return false;
    if (pathname === "/open") await this.#open(reply);
    else if (pathname === "/link") await this.#link(reply);
    else return false;
    return true;
  }

  async #open(reply: Reply): Promise<void> {
    const form = await readForm(reply.request);
    const link = this.#codes.redeem(form?.get("code") ?? "");
    if (link === undefined) {
      this.#options.logger.warn("page.link_refused");
      const text = html`It was used before, or is too old. ${ANOTHER}`;
      return reply.html(403, renderNotice("This link cannot be used", text));
    }
    const { run, first = run, purpose } = link;
    this.#options.logger.info("page.opened", { ...defined({ runId: run }), purpose });
    const at = first === undefined ? "/" : runPath(first);
    return reply.enter({ at, session: this.#secrets.open(link) });
  }

  /** Serves a command of the data folder's owner, which proves that it has the key. */
  async #link(reply: Reply): Promise<void> {
    const { request } = reply;
    const { local } = this.#options;
    const [, proof = ""] = /^Proof (\S+)$/.exec(request.headers.authorization ?? "") ?? [];
    const answer = local === undefined ? undefined : this.#proofs.answer(proof);
    if (local === undefined || answer === undefined) return reply.text(403, "text/plain", "Forbidden");
    const first = (await readForm(request))?.get("first") ?? undefined;
    const link = this.link({ principal: local, purpose: "decide", ...defined({ first }) });
    return reply.json({ link, proof: answer });
  }
}

const ANOTHER = html`Ask for a new link: <code>deepagent-mcp open</code> in a terminal gives one to all runs,
  and <code>check_deep_agent</code> one to its run.`;
const NOTHING = renderNotice("Page not found", html`This tab isn’t signed in. ${ANOTHER}`);

/** Returns the session of a request, or the response that replaces the screen. */
export type SignedIn = (
  | { ok: true; session: PageSession }
  | { ok: false; status: number; page: Html; headers?: Readonly<Record<string, string>> }
) & {
  /** Proves to the tab that this server issued its secret. Absent: it did not, or there is only a cookie. */
  proof?: string | undefined;
};

export interface SignIn {
  /** Answers a form of its own, such as that of the log-in; false: it is none. */
  answer(reply: Reply, url: URL): Promise<boolean>;
  /** Finds the session of a request. Called again before each update of an open page. */
  find(request: IncomingMessage, url: URL, runId: string | undefined): Promise<SignedIn>;
  /** The empty document that every address answers to a browser that opens it. */
  readonly shell: Html;
  /** The page for addresses that do not exist or that the session may not see. */
  readonly nothing: Html;
}
