/** A log-in at another MCP server by OAuth 2.1: its stored part, and the token of each request. */
import type {
  AuthorizationServerMetadata,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import { codeOf, errorMessage } from "../../core/errors.ts";
import { oneLine } from "../../core/text.ts";
import { isRecord, parsedJson, defined } from "../../core/unknown.ts";
import { McpUnavailableError } from "./failure-reasons.ts";
import { Redactor } from "./redactor.ts";

export interface Login {
  /** Address of the server. At another address, the log-in counts for nothing. */
  url: string;
  authorizationServer: string;
  metadata?: AuthorizationServerMetadata | undefined;
  /** The server as the authorization server knows it (RFC 8707). */
  resource?: string | undefined;
  client: StoredOAuthClientInformation;
  tokens: StoredOAuthTokens;
  /** Milliseconds since 1970. Absent if the authorization server did not report it. */
  expiresAt?: number | undefined;
}

export interface LoginStore {
  /** @throws McpUnavailableError if the stored log-in cannot be read. */
  read(server: string): Promise<Login | undefined>;
  /** Stores the result of `change`; `undefined` deletes the log-in. No other process changes it at the same time. */
  change(
    server: string,
    change: (kept: Login | undefined) => Promise<Login | undefined>,
  ): Promise<Login | undefined>;
}

export interface LoginOptions {
  /** Learns every secret of the log-in before one is sent. Default: nothing is blacked out. */
  redactor?: Redactor;
  store: LoginStore;
  /** For the authorization server of the MCP server at this address. */
  fetchFor: (url: string) => AuthorizationFetch;
  /** The command that a person types to log in. */
  command: (server: string, scope?: string) => string;
  clock: () => number;
}

/** A request was not carried out, because it needs another log-in. */
class LoginProblem extends McpUnavailableError {
  /** No other way of asking the server helps. */
  readonly status = 401;
}

/** The log-in of one server as its requests use it. */
export class ServerLogin {
  readonly #server: string;
  readonly #url: string;
  readonly #options: LoginOptions;
  readonly #redactor: Redactor;
  #renewal: Promise<string> | undefined;

  constructor(server: string, url: string, options: LoginOptions) {
    this.#server = server;
    this.#url = url;
    this.#options = options;
    this.#redactor = options.redactor ?? new Redactor();
  }

  /** The access token, renewed if it is about to expire; `undefined` if nobody logged in. @throws McpUnavailableError */
  async token(): Promise<string | undefined> {
    const login = await this.#own();
    if (login === undefined) return undefined;
    const { expiresAt = Infinity } = login;
    const { access_token: token, refresh_token: refreshToken } = login.tokens;
    // Clocks differ, and a call takes time.
    const isOld = expiresAt - 30_000 <= this.#options.clock();
    return isOld && refreshToken !== undefined ? this.renewed(token) : token;
  }

  /** Returns a new token after one was refused. @throws McpUnavailableError, which names the remedy. */
  renewed(refused: string | undefined): Promise<string> {
    return (this.#renewal ??= this.#renew(refused).finally(() => (this.#renewal = undefined)));
  }

  /** The error for a server that wants a log-in with further permissions: a new one has to ask for all of them. */
  async needsScope(scope: string): Promise<McpUnavailableError> {
    const granted = (await this.#own())?.tokens.scope ?? "";
    const shown = (text: string): string => oneLine(this.#redactor.text(text), 500);
    const all = new Set(`${granted} ${scope}`.split(" ").filter((one) => one !== ""));
    return this.#needed(`it needs further permissions (${shown(scope)})`, shown([...all].join(" ")));
  }

  async #own(): Promise<Login | undefined> {
    const login = await this.#options.store.read(this.#server);
    return login?.url === this.#url ? this.#known(login) : undefined;
  }

  /** Adds the secrets of the log-in to the redactor, so that no answer can leak them. */
  #known(login: Login): Login {
    const { access_token: access, refresh_token: refresh, id_token: id } = login.tokens;
    this.#redactor.add(access, refresh, id, login.client.client_secret);
    return login;
  }

  #needed(why: string, scope?: string): LoginProblem {
    return new LoginProblem(`${why}; run ${this.#options.command(this.#server, scope)}`);
  }

  async #renew(refused: string | undefined): Promise<string> {
    let problem: unknown;
    if ((await this.#own()) === undefined)
      throw this.#needed("it needs a log-in or headers.Authorization (HTTP 401)");
    const login = await this.#options.store.change(this.#server, async (kept) => {
      if (kept?.url !== this.#url) return kept;
      // Another process has renewed it.
      if (kept.tokens.access_token !== refused) return kept;
      try {
        return await renewedLogin(kept, this.#options);
      } catch (error) {
        problem = error;
        // A token to renew with is used once; one that is refused is worth nothing.
        const { refresh_token: _used, ...tokens } = kept.tokens;
        return isRefusal(error) ? { ...kept, tokens } : kept;
      }
    });
    if (login?.url !== this.#url) throw this.#needed("its log-in has ended");
    if (problem === undefined) return this.#known(login).tokens.access_token;
    if (isRefusal(problem)) throw this.#needed("its log-in has expired");
    // The package puts the whole answer into its error.
    const [, status] = /^HTTP (\d{3})/.exec(errorMessage(problem)) ?? [];
    const answered = status && `the authorization server answered with HTTP ${status}`;
    const why = this.#redactor.text(answered ?? oneLine(errorMessage(problem), 200));
    throw new LoginProblem(`its log-in could not be renewed: ${why}`, { cause: problem });
  }
}

/** @throws LoginProblem, OAuthError, or what `fetch` throws. */
async function renewedLogin(login: Login, { fetchFor, clock }: LoginOptions): Promise<Login> {
  const { refresh_token: refreshToken } = login.tokens;
  if (refreshToken === undefined) throw new LoginProblem("its log-in has expired");
  const { refreshAuthorization } = await import("@modelcontextprotocol/client");
  const { authorizationServer, metadata, client: clientInformation, resource, url } = login;
  const fetch = fetchFor(url);
  const fetchFn = readingAnyAnswer((address, init) => {
    const { scope } = login.tokens;
    // Names the granted permissions: Entra refuses to renew a token without them.
    if (scope !== undefined && init?.body instanceof URLSearchParams) init.body.set("scope", scope);
    return fetch(address, init);
  });
  const tokens = await refreshAuthorization(authorizationServer, {
    clientInformation,
    refreshToken,
    fetchFn,
    ...defined({ metadata, resource }),
  });
  return { ...login, tokens: { ...login.tokens, ...tokens }, expiresAt: tokenExpiry(tokens, clock()) };
}

export const tokenExpiry = (
  { expires_in: seconds }: { expires_in?: number | undefined },
  now: number,
): number | undefined => (seconds === undefined ? undefined : now + seconds * 1000);

/** True if the authorization server will not renew the token: a person has to log in again. */
function isRefusal(error: unknown): boolean {
  const refusals = ["invalid_grant", "invalid_client", "unauthorized_client", "access_denied"];
  return error instanceof LoginProblem || refusals.includes(codeOf(error) ?? "");
}

/** The `fetch` with which authorization servers are asked. */
export type AuthorizationFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** An issuer without a slash at its end: servers write it with one in one place, and without it in another. */
export const issuerName = (issuer: string): string => issuer.replace(/\/$/, "");

/** `fetch` whose answers the package takes: it refuses a log-in for one null. */
export const readingAnyAnswer =
  (fetch: AuthorizationFetch): AuthorizationFetch =>
  async (url, init) => {
    const answer = await fetch(url, init);
    if (!answer.ok) return answer;
    const { status, statusText, headers } = answer;
    const text = await answer.text();
    // GitHub answers with a form unless it is asked for JSON.
    const given =
      parsedJson(text) ??
      (text.startsWith("access_token=") || text.includes("&access_token=")
        ? Object.fromEntries(new URLSearchParams(text))
        : undefined);
    if (!isRecord(given)) return new Response(text === "" ? null : text, { status, statusText, headers });
    const { scope, issuer, client_id_issued_at: issued, ...others } = given;
    const said = Object.entries(others).filter(([, value]) => value !== null && value !== "");
    const strict = {
      // Each kind of answer is recognized by a required member, and gets the members that servers omit.
      ...("access_token" in given ? { token_type: "Bearer" } : {}),
      ...("client_id" in given ? { redirect_uris: [] } : {}),
      ...("authorization_endpoint" in given ? { response_types_supported: ["code"] } : {}),
      ...Object.fromEntries(said),
      ...(typeof issuer === "string" ? { issuer: issuerName(issuer) } : {}),
      ...(typeof issued === "number" ? { client_id_issued_at: issued } : {}),
      ...(Array.isArray(scope) ? { scope: scope.join(" ") } : typeof scope === "string" ? { scope } : {}),
    };
    return new Response(JSON.stringify(strict), { status, statusText, headers });
  };
