/** The authorization server of this server's own people. */
import { createECDH } from "node:crypto";
import { type ClientMetadata, type Configuration, Provider, errors } from "oidc-provider";
import type { Logger } from "../../../core/logger.ts";
import { parsedUrl } from "../../../core/unknown.ts";
import type { Logins } from "../../../runs/logins.ts";
import { SCOPES } from "../../../runs/run.ts";
import { bothForms } from "../../auth/auth.ts";
import { adapterFor } from "./adapter.ts";
import { isKnownDocument, isKnownRedirect } from "./clients.ts";
import fixed from "./provider.json" with { type: "json" };

export interface LogInOptions {
  /** The people of this server, and their grants. */
  logins: () => Promise<Logins>;
  /** The address of this server, without a slash at its end. */
  issuer: string;
  /** Addresses to which clients may have codes sent, besides those that are known. */
  redirects: readonly string[];
  logger: Logger;
  /** Gets metadata documents and keys of clients. Default: from the public internet only. */
  fetch?: Configuration["fetch"];
}

/** `base`: path of the issuer, without a slash at its end. `renderError`: shows a problem to a browser. */
export async function createProvider(
  options: LogInOptions,
  { base, renderError }: { base: string; renderError: NonNullable<Configuration["renderError"]> },
): Promise<Provider> {
  const { issuer, logger, fetch } = options;
  const logins = await options.logins();
  const { cookieNames: names, features: _features, ...settings } = fixed;
  const cookie = { httpOnly: true, sameSite: "lax", signed: true } as const;
  const provider = new Provider(issuer, {
    ...settings,
    clientAuthMethods: ["none", "private_key_jwt"],
    responseTypes: ["code"],
    clientDefaults: { token_endpoint_auth_method: "none", id_token_signed_response_alg: "ES256" },
    enabledJWA: { idTokenSigningAlgValues: ["ES256"] },
    adapter: adapterFor(logins),
    jwks: { keys: (await logins.keysFor("id tokens")).map(signingKey) },
    cookies: {
      keys: (await logins.keysFor("cookies")).map((key) => key.toString("base64url")),
      names,
      long: { ...cookie, path: `${base}/oauth` },
      short: cookie,
    },
    pkce: { required: () => true },
    features: featuresFor(options),
    extraClientMetadata: {
      properties: ["normalized"],
      validator: (_ctx, _key, _value, client) => normalize(client),
    },
    issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed("refresh_token"),
    // Otherwise they would end with the session of the browser.
    expiresWithSession: async () => false,
    // Each log-in has a grant of its own: revoking one leaves the others, and a person consents each time.
    loadExistingGrant: async ({ oidc }) => {
      const id = oidc.result?.consent?.grantId;
      return id === undefined ? undefined : oidc.provider.Grant.find(id);
    },
    findAccount: async (_ctx, name) => {
      const [owner] = await logins.rows.read("owner", { name });
      return owner && { accountId: name, claims: async () => ({ sub: name }) };
    },
    clientBasedCORS: (_ctx, origin, { redirectUris = [] }) =>
      redirectUris.some((uri) => parsedUrl(uri)?.origin === origin),
    interactions: { url: (_ctx, { uid }) => `${base}/oauth/consent/${uid}` },
    renderError,
    ...(fetch && { fetch }),
  });
  // `discovery` only adds to the document, and cannot replace the scopes.
  provider.use(async (ctx, next) => {
    await next();
    if (ctx.oidc?.route !== "discovery") return;
    ctx.body = { ...(ctx.body as object), scopes_supported: [...SCOPES, "offline_access"] }; // a JSON document
  });
  // Trusts X-Forwarded-Proto, which `LoginServer` alone writes.
  provider.proxy = true;
  provider.on("server_error", (_ctx, error) => logger.error("login.failed", { error }));
  // Errors name parameters, and never their values.
  const refused = (at: string) => (_ctx: unknown, error: errors.OIDCProviderError) =>
    logger.info("login.refused", { at, error: error.error, reason: error.error_description });
  provider.on("authorization.error", refused("authorization"));
  provider.on("grant.error", refused("token"));
  return provider;
}

function featuresFor({ issuer, redirects }: LogInOptions): NonNullable<Configuration["features"]> {
  const resource = `${issuer}/mcp`;
  return {
    ...fixed.features,
    clientIdMetadataDocument: {
      enabled: true,
      ack: "draft-02",
      allowFetch: (_ctx, id) => isKnownDocument(id),
      allowClient: (_ctx, { redirectUris: uris = [] }) =>
        uris.every((uri) => isKnownRedirect(uri, redirects)),
      cacheDuration: { min: 3600, max: 86_400 },
    },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: (_ctx, asked) => {
        if (![...bothForms(resource), ...bothForms(issuer)].includes(asked)) throw new errors.InvalidTarget();
        return { scope: SCOPES.join(" "), audience: resource, accessTokenFormat: "opaque" };
      },
    },
  };
}

/** Corrects the metadata of a client, registered or in a document: the port of a callback is free for native ones only. */
function normalize(client: ClientMetadata): void {
  const { redirect_uris: redirects = [], client_id: id, jwks_uri: keys = "" } = client;
  const isWeb = redirects.every((uri) => uri.startsWith("https:"));
  const mayRead = isKnownDocument(id) && parsedUrl(keys)?.host === parsedUrl(id)?.host;
  const isSigned = client.token_endpoint_auth_method === "private_key_jwt" && mayRead;
  client.application_type = isWeb ? "web" : "native";
  client.grant_types = ["authorization_code", "refresh_token"];
  client.token_endpoint_auth_method = isSigned ? "private_key_jwt" : "none";
  if (!isSigned) delete client.jwks_uri;
  delete client.jwks;
  delete client.scope;
}

/** A key for ID tokens, the same on all servers with the same secret. */
function signingKey(secret: Buffer) {
  const curve = createECDH("prime256v1");
  curve.setPrivateKey(secret);
  const point = curve.getPublicKey();
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString("base64url"));
  const kid = x?.slice(0, 12);
  return { kty: "EC", crv: "P-256", x, y, d: secret.toString("base64url"), alg: "ES256", use: "sig", kid };
}
