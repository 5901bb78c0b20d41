import {
  getOAuthProtectedResourceMetadataUrl,
  OAuthError,
  OAuthErrorCode,
} from "@modelcontextprotocol/server";
import { createRemoteJWKSet, errors, jwtVerify, type JWTPayload } from "jose";
import { SCOPES, type OAuthConfig } from "../config/http-schema.ts";
import type { Logger } from "../core/logger.ts";
import { authInfoOf, invalidToken, type TokenVerifier } from "./auth.ts";

/** Signatures by private keys only: with a shared secret everyone who can verify could also sign. */
const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
const CLOCK_TOLERANCE_SECONDS = 5;

/**
 * Verifies access tokens of an OAuth 2.1 authorization server: signature by its published keys, issuer,
 * audience, expiry. The principal is issuer and subject together, so it is nobody from `http.tokens`.
 */
export function oauthVerifier(config: OAuthConfig, logger: Logger): TokenVerifier {
  const keys = createRemoteJWKSet(new URL(config.jwksUrl), { timeoutDuration: 5000 });
  const options = {
    issuer: config.issuer,
    audience: config.audience ?? config.resource,
    algorithms: ALGORITHMS,
    requiredClaims: ["exp", "sub"],
    clockTolerance: CLOCK_TOLERANCE_SECONDS,
  };
  return async (token) => {
    const payload = await jwtVerify(token, keys, options).then(
      (verified) => verified.payload,
      (error: unknown) => {
        throw refusal(error, logger);
      },
    );
    if (typeof payload.sub !== "string" || payload.sub === "") throw invalidToken();
    const scopes = scopesOf(payload);
    if (scopes.length === 0) {
      throw new OAuthError(
        OAuthErrorCode.InsufficientScope,
        `The token has none of the scopes ${SCOPES.join(", ")}`,
      );
    }
    return authInfoOf({
      principal: `${config.issuer}#${payload.sub}`,
      scopes,
      ...(payload.exp === undefined ? {} : { expiresAt: payload.exp + CLOCK_TOLERANCE_SECONDS }),
    });
  };
}

/** `scope` as RFC 9068 has it, or `scp` as other servers do. */
function scopesOf({ scope, scp }: JWTPayload): string[] {
  const claimed: unknown[] = typeof scope === "string" ? scope.split(" ") : Array.isArray(scp) ? scp : [];
  return SCOPES.filter((known) => claimed.includes(known));
}

/** The client learns only whether its token or this server is at fault; the log says why. */
function refusal(error: unknown, logger: Logger): OAuthError {
  const ours = !(error instanceof errors.JOSEError) || KEYS_UNAVAILABLE.has(error.code);
  const reason = error instanceof errors.JOSEError ? error.code : "unreachable";
  if (!ours) {
    logger.info("auth.token_refused", { reason });
    return invalidToken();
  }
  logger.warn("auth.keys_unavailable", { reason, error });
  return new OAuthError(OAuthErrorCode.ServerError, "The keys of the authorization server cannot be read");
}

const KEYS_UNAVAILABLE = new Set(["ERR_JWKS_TIMEOUT", "ERR_JWKS_INVALID", "ERR_JOSE_GENERIC"]);

/** Where clients find the metadata of the protected resource (RFC 9728). */
export function resourceMetadataUrl({ resource }: OAuthConfig): string {
  return getOAuthProtectedResourceMetadataUrl(new URL(resource));
}

/** That document by its path, also at the root for clients that look only there. */
export function resourceMetadata(config: OAuthConfig): ReadonlyMap<string, unknown> {
  const document = {
    resource: config.resource,
    authorization_servers: [config.issuer],
    scopes_supported: SCOPES,
    bearer_methods_supported: ["header"],
    resource_name: "deepagent-mcp",
  };
  return new Map([
    [new URL(resourceMetadataUrl(config)).pathname, document],
    ["/.well-known/oauth-protected-resource", document],
  ]);
}
