/** Lets in whoever follows a link to one run: they look, until the link expires or is taken back. */
import { createHmac } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Logger } from "../../core/logger.ts";
import type { Access, Holds, SharedRun, SharedRuns } from "../../runs/shares.ts";
import { renderNotice } from "../views/room/shell.ts";
import { isSame } from "./find-page.ts";
import { type Reply, readForm } from "./responses.ts";
import { type PageSession, runPath } from "../contracts/viewer.ts";
import type { SignIn, SignedIn } from "./link-sign-in.ts";
import { secretOf } from "./tab-secrets.ts";

export interface SharedLinksOptions {
  /** Signs the links: at least 32 bytes, the same at all servers of one address. */
  key: () => Promise<Uint8Array>;
  runs: () => Promise<SharedRuns>;
  /**
   * Host and port of a page that only this machine reaches. A link is good there alone: whatever gets an earlier port
   * cannot use the links that are opened at it.
   */
  localHost?: () => string;
  /** Default: links that were made without a token. */
  holds?: Holds;
}

/** The facts that a link is signed for. */
type Signed = Pick<SharedRun, "id" | "runId" | "principal" | "expiresAt">;

/** The secret of a tab that followed such a link is that of the link, so any server with the key knows it. */
const SECRET = /^shared\.([\w-]{22})\.([\w-]{43})$/;

export class SharedLinks {
  readonly #options: SharedLinksOptions;

  constructor(options: SharedLinksOptions) {
    this.#options = options;
  }

  /** True if only browsers of this machine reach the page. */
  get isLocal(): boolean {
    return this.#options.localHost !== undefined;
  }

  /** Address of a link on its server. Browsers keep what follows `#` to themselves and to scripts of the page. */
  async address(shared: Signed): Promise<string> {
    return `/shared#${await this.#secret(shared)}`;
  }

  /** Those whose tokens are still accepted, and clients, which have tokens of their own. */
  async working<Made extends Pick<Access, "principal" | "credential"> & Partial<Pick<Access, "kind">>>(
    made: readonly Made[],
  ): Promise<Made[]> {
    const { holds = async ({ credential }) => credential === undefined } = this.#options;
    const found = await Promise.all(
      made.map(async (one) => (one.kind === "client" || (await holds(one)) ? [one] : [])),
    );
    return found.flat();
  }

  /** Finds the run that a secret shows. `undefined`: its link has ended, or it is of no link. */
  async find(secret: string): Promise<SharedRun | undefined> {
    const [, id = ""] = SECRET.exec(secret) ?? [];
    if (id === "") return undefined;
    const shared = await (await this.#options.runs()).sharedRun(id);
    if (shared === undefined || !isSame(secret, await this.#secret(shared))) return undefined;
    return (await this.working([shared]))[0];
  }

  async opened(shared: SharedRun): Promise<void> {
    await (await this.#options.runs()).shareOpened(shared);
  }

  /** Goes from server to tab only. */
  proof(secret: string): Promise<string> {
    return this.#sign("proof", secret);
  }

  async #secret({ id, runId, principal, expiresAt }: Signed): Promise<string> {
    const host = this.#options.localHost?.() ?? "";
    return `shared.${id}.${await this.#sign("link", JSON.stringify([id, runId, principal, expiresAt, host]))}`;
  }

  async #sign(use: string, text: string): Promise<string> {
    const key = await this.#options.key();
    return createHmac("sha256", key).update(`page shared ${use} ${text}`).digest("base64url");
  }
}

/** Knows browsers that followed a shared link, and asks `own` about all others. */
export class SharingSignIn implements SignIn {
  readonly shell: SignIn["shell"];
  readonly nothing: SignIn["nothing"];
  readonly #own: SignIn;
  readonly #links: SharedLinks;
  readonly #logger: Logger;

  constructor(own: SignIn, links: SharedLinks, logger: Logger) {
    ({ shell: this.shell, nothing: this.nothing } = own);
    this.#own = own;
    this.#links = links;
    this.#logger = logger;
  }

  async answer(reply: Reply, url: URL): Promise<boolean> {
    if (url.pathname !== "/shared" || reply.request.method !== "POST") return this.#own.answer(reply, url);
    const secret = (await readForm(reply.request))?.get("code") ?? "";
    const shared = await this.#links.find(secret);
    if (shared === undefined) {
      this.#logger.warn("page.shared_link_refused");
      reply.html(403, ENDED);
      return true;
    }
    await this.#links.opened(shared);
    const { runId: run, expiresAt } = shared;
    this.#logger.info("page.shared_link_opened", { runId: run, shareId: shared.id });
    const proof = await this.#links.proof(secret);
    reply.enter({ at: runPath(run), session: { secret, proof, decides: false, run, until: expiresAt } });
    return true;
  }

  async find(request: IncomingMessage, url: URL, runId: string | undefined): Promise<SignedIn> {
    const secret = secretOf(request) ?? "";
    if (!SECRET.test(secret)) return this.#own.find(request, url, runId);
    const shared = await this.#links.find(secret);
    if (shared === undefined) return { ok: false, status: 401, page: ENDED };
    const proof = await this.#links.proof(secret);
    if (shared.runId !== runId) {
      const text = "This link shows one run only.";
      return { ok: false, status: 404, page: renderNotice("Page not found", text), proof };
    }
    const { id, principal, expiresAt: sharedUntil } = shared;
    const session: PageSession = { id: `shared ${id}`, principal, scopes: ["read"], run: runId, sharedUntil };
    return { ok: true, session, proof };
  }
}

const ENDED = renderNotice(
  "This link does not work",
  "It has expired, was taken back, or is not complete. Ask whoever sent it for a new one.",
);
