import { OAuthError, OAuthErrorCode, type AuthInfo } from "@modelcontextprotocol/server";
import { SCOPES } from "../../config/http-schema.ts";
import { authInfoOf, invalidToken } from "./auth.ts";

/** Clocks of servers differ by this much, in seconds. */
export const CLOCK_TOLERANCE_SECONDS = 5;

/** What an authorization server says about a token, as far as it is read here. */
export type TokenClaims = Readonly<Record<string, unknown>>;

/**
 * Who holds a token that was found valid. The principal is issuer and subject together, so it is nobody from
 * `http.tokens`.
 *
 * @throws OAuthError when the token names nobody, has no scope of this server, or is bound to a key: such a
 * token is worth nothing without the proof that it is presented by the one it was issued to (RFC 9449).
 */
export function holderOf(issuer: string, claims: TokenClaims): AuthInfo {
  const { sub, exp, cnf } = claims; // exp: seconds since the epoch
  if (typeof sub !== "string" || sub === "" || cnf !== undefined) throw invalidToken();
  const scopes = scopesOf(claims);
  if (scopes.length === 0) {
    throw new OAuthError(
      OAuthErrorCode.InsufficientScope,
      `The token has none of the scopes ${SCOPES.join(", ")}`,
    );
  }
  return authInfoOf({
    principal: `${issuer}#${sub}`,
    scopes,
    ...(typeof exp === "number" ? { expiresAt: exp + CLOCK_TOLERANCE_SECONDS } : {}),
  });
}

/** `scope` as RFC 9068 and RFC 7662 have it, or `scp` as other servers do. */
function scopesOf({ scope, scp }: TokenClaims): string[] {
  const claimed: unknown[] = typeof scope === "string" ? scope.split(" ") : Array.isArray(scp) ? scp : [];
  return SCOPES.filter((known) => claimed.includes(known));
}
