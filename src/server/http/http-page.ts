/** The page at the address of the HTTP server, for people who log in with a token. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Pages, type PagesOptions, isPageAddress } from "../page/pages.ts";
import { isApiAddress } from "../contracts/viewer.ts";
import type { SharedRuns } from "../../runs/shares.ts";
import { Reply, isFrom } from "../page/responses.ts";
import { SharedLinks, SharingSignIn } from "../page/shared-links.ts";
import { secretOf } from "../page/tab-secrets.ts";
import { TokenSignIn, type TokenSignInOptions, findByToken } from "../page/token-sign-in.ts";

export interface HttpPageOptions
  extends
    Omit<PagesOptions, "signIn" | "base" | "sharing">,
    Pick<TokenSignInOptions, "key" | "logIn" | "logOut"> {
  /** Finds runs by links to them. Default: no links are made. */
  sharedRuns?: (() => Promise<SharedRuns>) | undefined;
  /** The address that browsers use. Default: any host that the server accepts. */
  publicUrl?: URL | undefined;
}

export class HttpPage {
  readonly #pages: Pages;
  readonly #tokens: TokenSignInOptions["tokens"];
  readonly #publicUrl: URL | undefined;

  constructor(options: HttpPageOptions, { tokens }: Pick<TokenSignInOptions, "tokens">) {
    const base = options.publicUrl?.pathname.replace(/(?<!\/)\/+$/, "") ?? "";
    this.#publicUrl = options.publicUrl;
    this.#tokens = tokens;
    const own = new TokenSignIn({ ...options, tokens });
    const { key, sharedRuns: runs, logger } = options;
    const sharing = runs && new SharedLinks({ key, runs, holds: (made) => tokens.holds(made) });
    const signIn = sharing === undefined ? own : new SharingSignIn(own, sharing, logger);
    this.#pages = new Pages({ ...options, base, signIn, sharing });
  }

  /** True if a request is for the page, and not for MCP. */
  isFor(request: IncomingMessage): boolean {
    const { method, url = "" } = request;
    const path = url.split("?", 1)[0] ?? "";
    if (isApiAddress(path)) return secretOf(request) !== undefined;
    // Clients that take the server's address for the endpoint get the endpoint's address.
    return path === "/" ? method === "GET" || method === "HEAD" : isPageAddress(path);
  }

  /** Answers a request whose host has been checked. */
  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { host } = request.headers;
    const own = this.#publicUrl?.origin;
    // Without a public address the browser's own words count: which of them a proxy passed on is not known.
    if (isFrom(request, own === undefined ? [`http://${host}`, `https://${host}`] : [own]))
      return this.#pages.serve(request, response);
    new Reply(request, response).text(
      403,
      "text/plain",
      own === undefined
        ? "This came from another address than that of the page. Where a proxy changes it, the setting http.publicUrl has to say what browsers see."
        : `Open the page at ${own}.`,
    );
  }

  /** Answers a request for the API by its token. Its host and origin have been checked as for MCP. */
  serveApi(request: IncomingMessage, response: ServerResponse): Promise<void> {
    return this.#pages.serve(request, response, findByToken(this.#tokens));
  }

  close(): void {
    this.#pages.stop.abort();
  }
}
