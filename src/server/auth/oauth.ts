import { getOAuthProtectedResourceMetadataUrl } from "@modelcontextprotocol/server";
import { createRemoteJWKSet, errors, jwtVerify } from "jose";
import { type OAuthConfig, SCOPES } from "../../config/sections.ts";
import type { Logger } from "../../core/logger.ts";
import {
  CLOCK_TOLERANCE_SECONDS,
  type TokenVerifier,
  holderOf,
  invalidToken,
  issuerUnavailable,
} from "./auth.ts";

/** Signatures by private keys only: with a shared secret everyone who can verify could also sign. */
const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
const TIMEOUT_MS = 5000;

/**
 * Verifies access tokens of an OAuth 2.1 authorization server: signature by its published keys, issuer,
 * audience, expiry.
 */
export function jwtVerifier(config: OAuthConfig & { jwksUrl: string }, logger: Logger): TokenVerifier {
  const keys = createRemoteJWKSet(new URL(config.jwksUrl), { timeoutDuration: TIMEOUT_MS });
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
    return holderOf(config.issuer, payload);
  };
}

/** The client learns only whether its token or this server is at fault; the log says why. */
function refusal(error: unknown, logger: Logger): Error {
  const ours = !(error instanceof errors.JOSEError) || KEYS_UNAVAILABLE.has(error.code);
  const reason = error instanceof errors.JOSEError ? error.code : "unreachable";
  if (!ours) {
    logger.info("auth.token_refused", { reason });
    return invalidToken();
  }
  logger.warn("auth.keys_unavailable", { reason, error });
  return issuerUnavailable();
}

const KEYS_UNAVAILABLE = new Set(["ERR_JWKS_TIMEOUT", "ERR_JWKS_INVALID", "ERR_JOSE_GENERIC"]);

/** Where clients find the metadata of the protected resource (RFC 9728). */
export function resourceMetadataUrl({ resource }: OAuthConfig): string {
  return getOAuthProtectedResourceMetadataUrl(new URL(resource));
}

/** Returns that document by its path, and at the root for clients that look only there. */
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
