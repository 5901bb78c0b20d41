import {
  bearerAuthChallengeResponse,
  OAuthError,
  OAuthErrorCode,
  verifyBearerToken,
  type AuthInfo,
  type OAuthTokenVerifier,
} from "@modelcontextprotocol/server";
import type { Principal } from "../runs/run.ts";

/** Whoever reaches a server that authenticates nobody: over stdio, or over HTTP on this machine. */
const LOCAL: Principal = "local";

/** Whose request it is, or the response that refuses it. */
export type Authenticated = { ok: true; auth: AuthInfo } | { ok: false; response: Response };

/** Decides about requests by their `Authorization` header. */
export interface Authenticator {
  authenticate(authorization: string | undefined): Promise<Authenticated>;
}

export interface AuthenticatorOptions {
  /** Asked in this order; `undefined`: the token is not of this kind. A refused token throws `OAuthError`. */
  verifiers: readonly TokenVerifier[];
  /** Where clients learn which authorization server issues tokens. */
  resourceMetadataUrl?: string;
}

export type TokenVerifier = (token: string) => AuthInfo | undefined | Promise<AuthInfo | undefined>;

/** Longest `Authorization` header that is looked at, in characters. */
const MAX_HEADER = 16_384;

/** Accepts bearer tokens that one of the verifiers knows. The answer never says why a token was refused. */
export function createAuthenticator({ verifiers, resourceMetadataUrl }: AuthenticatorOptions): Authenticator {
  const verifier: OAuthTokenVerifier = {
    verifyAccessToken: async (token) => {
      for (const verify of verifiers) {
        const auth = await verify(token);
        if (auth !== undefined) return auth;
      }
      throw invalidToken();
    },
  };
  const options = resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl };
  return {
    authenticate: async (authorization) => {
      try {
        if ((authorization?.length ?? 0) > MAX_HEADER) throw invalidToken();
        return { ok: true, auth: await verifyBearerToken(authorization, { verifier, ...options }) };
      } catch (error) {
        return { ok: false, response: bearerAuthChallengeResponse(error, options) };
      }
    },
  };
}

export const invalidToken = (): OAuthError =>
  new OAuthError(OAuthErrorCode.InvalidToken, "The token is unknown, expired or not for this server");

export interface Identity {
  principal: Principal;
  scopes: readonly string[];
  /** Seconds since the epoch; a token that does not expire has none. */
  expiresAt?: number;
}

/** What is known about a verified request. The token itself goes no further. */
export function authInfoOf({ principal, scopes, expiresAt = Number.MAX_SAFE_INTEGER }: Identity): AuthInfo {
  return { token: "", clientId: principal, scopes: [...scopes], expiresAt, extra: { principal } };
}

/** Whose request it is. Without authentication everyone who reaches the server is the same user. */
export function principalOf(auth: AuthInfo | undefined): Principal {
  if (auth === undefined) return LOCAL;
  const principal = auth.extra?.["principal"];
  if (typeof principal !== "string" || principal === "")
    throw new Error("a verified token names no principal");
  return principal;
}

/** Tells sessions apart: only tokens of the same principal with the same scopes may share one. */
export function ownerOf(auth: AuthInfo | undefined): string {
  return JSON.stringify([principalOf(auth), auth === undefined ? null : [...auth.scopes].sort()]);
}
