/** Verify tokens of an authorization server: by its published keys, or by asking it about each. */
import { createHash } from "node:crypto";
import {
  type AuthInfo,
  OAuthError,
  OAuthErrorCode,
  getOAuthProtectedResourceMetadataUrl,
} from "@modelcontextprotocol/server";
import { createRemoteJWKSet, errors, jwtVerify } from "jose";
import { z } from "zod";
import type { OAuthConfig } from "../../config/sections.ts";
import type { Clock } from "../../core/clock.ts";
import { defined } from "../../core/unknown.ts";
import { ConfigurationError, errorMessage } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import { NewestOf } from "../../core/newest-of.ts";
import type { Logins } from "../../runs/logins.ts";
import { SCOPES } from "../../runs/run.ts";
import { type OAuthClaims, type TokenVerifier, bothForms, requestedNames } from "./auth.ts";
import { CLOCK_TOLERANCE_SECONDS, authInfoOf, holderOf, invalidToken, issuerUnavailable } from "./auth.ts";

/** Signatures by private keys only: with a shared secret every verifier could also sign. */
const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
const KEYS_TIMEOUT_MS = 5000;

/**
 * Verifies access tokens of an OAuth 2.1 authorization server: signature by its published keys, kind, issuer,
 * audience, expiry.
 */
export function jwtVerifier(config: OAuthConfig & { jwksUrl: string }, logger: Logger): TokenVerifier {
  const keys = createRemoteJWKSet(new URL(config.jwksUrl), { timeoutDuration: KEYS_TIMEOUT_MS });
  const options = {
    issuer: bothForms(config.issuer),
    audience: bothForms(config.audience ?? config.resource),
    algorithms: ALGORITHMS,
    requiredClaims: ["exp", "sub"],
    clockTolerance: CLOCK_TOLERANCE_SECONDS,
  };
  return async (token) => {
    const { payload, protectedHeader } = await jwtVerify(token, keys, options).catch((error: unknown) => {
      // The client learns only whether its token or this server is at fault; the log has the reason.
      const reason = error instanceof errors.JOSEError ? error.code : "unreachable";
      if (KEYS_UNAVAILABLE.has(reason)) {
        logger.warn("auth.keys_unavailable", { reason, error });
        throw issuerUnavailable();
      }
      const claim = error instanceof errors.JWTClaimValidationFailed ? error.claim : undefined;
      logger.info("auth.token_refused", defined({ reason, claim }));
      throw invalidToken();
    });
    const type: unknown = protectedHeader.typ;
    // An access token (RFC 9068, 2.1), or the general kind, or none. Case does not count, and `application/` may be
    // left out (RFC 7515, 4.1.9).
    const isKnown = typeof type === "string" && /^(?:application\/)?(?:at\+)?jwt$/i.test(type);
    if (type !== undefined && !isKnown) {
      logger.info("auth.token_refused", { reason: "kind of token" });
      throw invalidToken();
    }
    return holderOf(config, payload);
  };
}

const KEYS_UNAVAILABLE = new Set(["unreachable", "ERR_JWKS_TIMEOUT", "ERR_JWKS_INVALID", "ERR_JOSE_GENERIC"]);

/** Returns the metadata address of the protected resource (RFC 9728). */
export const resourceMetadataUrl = ({ resource }: OAuthClaims): string =>
  getOAuthProtectedResourceMetadataUrl(new URL(resource));

/** Returns that document by its path, at the root for clients that look only there, and below a proxy's path. */
export function resourceMetadata(config: OAuthClaims): ReadonlyMap<string, unknown> {
  const document = {
    resource: config.resource,
    authorization_servers: [config.issuer],
    scopes_supported: [...requestedNames(config).values()],
    bearer_methods_supported: ["header"],
    resource_name: "deepagent-mcp",
  };
  return new Map([
    [new URL(resourceMetadataUrl(config)).pathname, document],
    ["/.well-known/oauth-protected-resource", document],
    ["/.well-known/oauth-protected-resource/mcp", document],
  ]);
}

export interface IntrospectionOptions {
  oauth: OAuthClaims;
  /** Introspection endpoint of the authorization server. */
  url: string;
  /** Credentials of this server at that endpoint. */
  clientId: string;
  clientSecret: string;
  clock: Clock;
  logger: Logger;
}

/** Lifetime of an answer, in ms: requests with a revoked token are refused within this time. */
const KEPT_MS = 30_000;
/** Tokens whose answers are kept; the one used least recently goes first. */
const KEPT_TOKENS = 1000;
const TIMEOUT_MS = 5000;

/**
 * Verifies access tokens, opaque ones too, by asking the authorization server about them (RFC 7662). Only
 * good answers are kept, briefly and never past the expiry of the token, under the token's hash.
 */
export function introspectionVerifier(options: IntrospectionOptions): TokenVerifier {
  const { oauth, clock, logger } = options;
  /** Times in milliseconds since the epoch. */
  const kept = new NewestOf<{ auth: AuthInfo; since: number; until: number }>(KEPT_TOKENS);
  const asked = new Map<string, Promise<AuthInfo>>();
  const askAndKeep = async (token: string, key: string): Promise<AuthInfo> => {
    const answer = await ask(token, options).catch((error: unknown) => {
      logger.warn("auth.introspection_failed", { reason: errorReason(error) });
      throw issuerUnavailable();
    });
    const reason = tokenProblem(answer, oauth, clock() / 1000);
    if (reason !== undefined) {
      kept.delete(key);
      logger.info("auth.token_refused", { reason });
      throw invalidToken();
    }
    const auth = holderOf(oauth, answer);
    const since = clock();
    kept.keep(key, { auth, since, until: Math.min(since + KEPT_MS, (auth.expiresAt ?? Infinity) * 1000) });
    return auth;
  };

  return async (token, { mayAsk, maxAgeMs = KEPT_MS }) => {
    const key = createHash("sha256").update(token).digest("base64");
    const known = kept.get(key);
    const now = clock();
    // The system's clock could be set back, and the answer would be used for longer.
    if (known !== undefined && known.since <= now && now < known.until) {
      kept.keep(key, known);
      if (now < known.since + maxAgeMs) return known.auth;
    } else kept.delete(key);
    let answer = asked.get(key);
    if (answer === undefined) {
      if (!mayAsk) {
        const message = "Too many refused tokens from this address. Try again later.";
        throw new OAuthError(OAuthErrorCode.TooManyRequests, message);
      }
      answer = askAndKeep(token, key).finally(() => asked.delete(key));
      asked.set(key, answer);
    }
    return answer;
  };
}

const Answer = z.looseObject({ active: z.boolean() });
type Answer = z.output<typeof Answer>;

async function ask(
  token: string,
  { url, clientId, clientSecret }: Pick<IntrospectionOptions, "url" | "clientId" | "clientSecret">,
): Promise<Answer> {
  // The parts are encoded (RFC 6749, 2.3.1), so that a colon in one of them is not a separator.
  const parts = [clientId, clientSecret].map((part) => new URLSearchParams([["", part]]).toString().slice(1));
  const response = await fetch(url, {
    method: "POST",
    headers: {
      authorization: `Basic ${Buffer.from(parts.join(":")).toString("base64")}`,
      accept: "application/json",
    },
    body: new URLSearchParams({ token, token_type_hint: "access_token" }),
    // Sends credentials and token to this address only, never after a redirect.
    redirect: "error",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`HTTP ${response.status}`);
  }
  let text = "";
  for await (const part of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    text += part;
    if (text.length > 65_536) throw new Error("the answer is too long");
  }
  return Answer.parse(JSON.parse(text));
}

/** The secret of this server at the introspection endpoint. Throws `ConfigurationError` if it is not set. */
export function introspectionSecret(
  { clientSecretVariable: name }: NonNullable<OAuthConfig["introspection"]>,
  env: Readonly<Record<string, string | undefined>>,
): string {
  const secret = env[name];
  if (secret) return secret;
  const message = `http.oauth.introspection needs the environment variable ${name}, which is not set.`;
  throw new ConfigurationError("http_introspection_secret_missing", message);
}

/** Verifies the tokens that people of this server granted; others may be of another kind. */
export const loginVerifier =
  (logins: () => Promise<Pick<Logins, "token">>, resource: string): TokenVerifier =>
  async (token) => {
    const found = await (await logins()).token(token);
    if (found?.audience !== resource) return undefined;
    const { principal, scopes, expiresAt } = found;
    const known = SCOPES.filter((scope) => scopes.includes(scope));
    const auth = authInfoOf({ principal, scopes: known, expiresAt: Math.floor(expiresAt / 1000) });
    return { ...auth, extra: { ...auth.extra, asksForAll: true } };
  };

/** Verifies the tokens of an authorization server as it is configured: by asking it, or by its keys. */
export function oauthVerifier(
  oauth: OAuthConfig,
  { env, clock, logger }: { env: Readonly<Record<string, string | undefined>>; clock: Clock; logger: Logger },
): TokenVerifier {
  const { introspection, jwksUrl } = oauth;
  if (introspection !== undefined) {
    const { url, clientId } = introspection;
    const clientSecret = introspectionSecret(introspection, env);
    return introspectionVerifier({ oauth, url, clientId, clientSecret, clock, logger });
  }
  if (jwksUrl === undefined) throw new Error("the schema wants jwksUrl where there is no introspection");
  return jwtVerifier({ ...oauth, jwksUrl }, logger);
}

/** Fetches the keys, or asks about a token that is none. Resolves with the problem; `undefined`: the issuer answers. */
export async function issuerProblem(
  { issuer, jwksUrl, introspection }: OAuthConfig,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string | undefined> {
  try {
    if (introspection !== undefined)
      await ask("doctor", { ...introspection, clientSecret: introspectionSecret(introspection, env) });
    else if (jwksUrl !== undefined)
      await createRemoteJWKSet(new URL(jwksUrl), { timeoutDuration: KEYS_TIMEOUT_MS }).reload();
    return undefined;
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message;
    const [what, setting] = introspection
      ? ["be asked about tokens", "introspection"]
      : ["give its keys", "jwksUrl"];
    const reason = error instanceof TypeError ? "unreachable" : errorReason(error);
    return `${issuer} cannot ${what} (${reason}), so no token would be accepted. Check that it runs, and http.oauth.${setting}.`;
  }
}

/** Returns why a token is not active, not for this server or not valid now. */
function tokenProblem(
  { active, iss, aud, exp, nbf, token_type: type }: Answer,
  { issuer, resource, audience = resource }: OAuthClaims,
  now: number,
): string | undefined {
  if (!active) return "inactive";
  if (iss !== undefined && !(typeof iss === "string" && bothForms(issuer).includes(iss))) return "issuer";
  const audiences: unknown[] = Array.isArray(aud) ? aud : [aud];
  if (!bothForms(audience).some((address) => audiences.includes(address))) return "audience";
  if (exp !== undefined && (typeof exp !== "number" || exp + CLOCK_TOLERANCE_SECONDS <= now))
    return "expired";
  if (nbf !== undefined && (typeof nbf !== "number" || nbf - CLOCK_TOLERANCE_SECONDS > now))
    return "too early";
  if (type !== undefined && !(typeof type === "string" && /^bearer$/i.test(type))) return "token type";
  return undefined;
}

/** Leaves the error out of the log, because it may repeat the token. */
function errorReason(error: unknown): string {
  if (error instanceof z.ZodError || error instanceof SyntaxError)
    return "the answer is not an introspection response";
  if (error instanceof TypeError) return "unreachable";
  return errorMessage(error);
}
