/** Lets a person log in at another MCP server by OAuth 2.1: the address they open, and the tokens that follow. */
import { randomBytes } from "node:crypto";
import type {
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import { defined, parsedUrl } from "../../core/unknown.ts";
import { codeOf, errorMessage } from "../../core/errors.ts";
import { oneLine } from "../../core/text.ts";
import { type AuthorizationFetch, type Login, type LoginOptions } from "./login.ts";
import { issuerName, readingAnyAnswer, tokenExpiry } from "./login.ts";
import { Redactor } from "./redactor.ts";
import type { OAuthSettings, RemoteMcpServer } from "./server-config.ts";
import { askForChallenge } from "./transports.ts";

/** A log-in did not succeed; the message is for the person. */
export class LoginFailed extends Error {}

/** A log-in that waits for the browser to come back. */
export interface PendingLogin {
  address: URL;
  /** The parameter `state` of the address to which the browser comes back. */
  state: string;
  /** @throws LoginFailed */
  finish(answer: URLSearchParams): Promise<Login>;
}

/**
 * Registers with the authorization server of an MCP server, whose variables are filled in. @throws LoginFailed
 *
 * @param secrets those of its configuration, which no message shows. Default: none.
 * @param redirectUrl address to which the browser comes back.
 * @param scope permissions to ask for. Default: those that the server asks for.
 */
export async function beginLogin({
  server,
  redirectUrl,
  ...request
}: {
  server: RemoteMcpServer;
  secrets?: readonly string[];
  redirectUrl: string;
  scope?: string | undefined;
  fetch: AuthorizationFetch;
  clock: LoginOptions["clock"];
}): Promise<PendingLogin> {
  const { auth, extractWWWAuthenticateParams } = await import("@modelcontextprotocol/client");
  const { url, oauth = {} } = server;
  const redactor = new Redactor(request.secrets);
  const orFail = async <T>(work: Promise<T>, lead = (_reason: string): string => ""): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      const code = codeOf(error);
      const reason = redactor.reason([errorMessage(error), code ? `(${code})` : ""].join(" ").trim());
      throw new LoginFailed(`${lead(reason)}${reason}`, { cause: error });
    }
  };
  const challenge = await orFail(askForChallenge(server));
  const { resourceMetadataUrl, scope = oauth.scope } = extractWWWAuthenticateParams(challenge);
  const { provider, kept } = oneLogin(redirectUrl, oauth, redactor);
  const options = {
    // The package refuses a resource that has a slash more than this address; it uses the address for nothing else.
    serverUrl: url.replace(/\/?(?=[?#]|$)/, "/"),
    fetchFn: readingAnyAnswer(request.fetch),
    ...defined({ resourceMetadataUrl, scope: request.scope ?? scope }),
  };
  await orFail(auth(provider, options), (reason) => {
    if (kept.discovery && !kept.discovery.authorizationServerMetadata)
      return "The server describes no log-in by OAuth. Set headers.Authorization instead: ";
    return /registration/i.test(reason)
      ? "The authorization server did not accept this client. If it has one registered for you, set oauth.clientId: "
      : "";
  });
  const { address, state } = kept;
  if (address === undefined || !/^https?:$/.test(address.protocol))
    throw new LoginFailed("The authorization server named no address to open.");
  return {
    address,
    state,
    finish: async (answer) => {
      const code = readAuthorizationCode(answer, state, redactor);
      const iss = issuerName(answer.get("iss") ?? "");
      await orFail(auth(provider, { ...options, authorizationCode: code, ...(iss && { iss }) }));
      const { client, tokens: given, discovery, resource } = kept;
      if (!client || !given || !discovery)
        throw new LoginFailed("The authorization server gave no token. Begin again.");
      // Without a scope of its own, the requested one was granted (RFC 6749, 5.1).
      const tokens = { ...defined({ scope: options.scope }), ...given };
      const expiresAt = tokenExpiry(tokens, request.clock());
      const { authorizationServerUrl: authorizationServer, authorizationServerMetadata: metadata } =
        discovery;
      return { url, authorizationServer, metadata, resource, client, tokens, expiresAt };
    },
  };
}

/** Reads the code with which the browser came back. */
function readAuthorizationCode(answer: URLSearchParams, state: string, redactor: Redactor): string {
  if (answer.get("state") !== state)
    throw new LoginFailed("The browser came back from another log-in. Begin again.");
  const [error, code] = [answer.get("error"), answer.get("code")];
  redactor.add(code ?? undefined);
  if (error === null && code !== null) return code;
  const said = [error ?? "no code", answer.get("error_description") ?? ""].join(" ");
  const why = oneLine(redactor.text(said), 300);
  throw new LoginFailed(`The authorization server did not log you in: ${why}.`);
}

/** The facts that the package keeps between the two halves of a log-in. */
interface KeptFacts {
  state: string;
  verifier: string;
  client?: StoredOAuthClientInformation;
  tokens?: StoredOAuthTokens;
  resource?: string;
  address?: URL;
  discovery?: OAuthDiscoveryState;
}

function oneLogin(
  redirectUrl: string,
  { clientId, clientSecret, clientMetadataUrl = "" }: OAuthSettings,
  redactor: Redactor,
): { provider: OAuthClientProvider; kept: KeptFacts } {
  const kept: KeptFacts = { state: randomBytes(32).toString("base64url"), verifier: "" };
  if (clientId !== undefined)
    kept.client = { client_id: clientId, ...(clientSecret ? { client_secret: clientSecret } : {}) };
  const provider: OAuthClientProvider = {
    redirectUrl,
    clientMetadataUrl,
    clientMetadata: {
      client_name: "deepagent-mcp",
      redirect_uris: [redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    },
    state: () => kept.state,
    // A configured client belongs to the authorization server that its MCP server names.
    clientInformation: (context) =>
      kept.client && { ...kept.client, ...(context === undefined ? {} : { issuer: context.issuer }) },
    // A refused client is an error of this log-in, which keeps nothing.
    invalidateCredentials: () => {},
    saveClientInformation: (client) => {
      kept.client = client;
      redactor.add(client.client_secret);
    },
    tokens: () => kept.tokens,
    saveTokens: (tokens) => void (kept.tokens = tokens),
    redirectToAuthorization: (address) => void (kept.address = address),
    saveCodeVerifier: (verifier) => {
      kept.verifier = verifier;
      redactor.add(verifier);
    },
    codeVerifier: () => kept.verifier,
    saveResourceUrl: (resource) => void (kept.resource = resource),
    saveDiscoveryState: (discovery) => void (kept.discovery = discovery),
    discoveryState: () => kept.discovery,
  };
  return { provider, kept };
}

/** Revokes the tokens of a log-in, if the authorization server supports it (RFC 7009). */
export async function revokeLogin(
  { metadata, client, tokens }: Login,
  fetch: AuthorizationFetch,
): Promise<void> {
  const endpoint: unknown = Reflect.get(metadata ?? {}, "revocation_endpoint");
  if (typeof endpoint !== "string" || parsedUrl(endpoint) === undefined) return;
  const { client_id, client_secret: secret = "" } = client;
  const token_type_hint = tokens.refresh_token === undefined ? "access_token" : "refresh_token";
  const token = tokens.refresh_token ?? tokens.access_token;
  const basic = `Basic ${Buffer.from(`${client_id}:${secret}`).toString("base64")}`;
  await fetch(endpoint, {
    method: "POST",
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      ...(secret && { authorization: basic }),
    },
    body: new URLSearchParams({ token, token_type_hint, client_id }).toString(),
    signal: AbortSignal.timeout(10_000),
  });
}
