import { createHash, timingSafeEqual } from "node:crypto";
import type { TokenConfig } from "../config/http-schema.ts";
import { authInfoOf, type TokenVerifier } from "./auth.ts";

/**
 * Verifies the tokens of the configuration, which holds their hashes only. Every entry is compared, in
 * constant time, so that the time says nothing about how close a guess came.
 */
export function tokenVerifier(tokens: readonly TokenConfig[]): TokenVerifier {
  const entries = tokens.map((entry) => ({ entry, hash: Buffer.from(entry.sha256, "hex") }));
  return (token) => {
    const given = createHash("sha256").update(token).digest();
    const [found] = entries.filter(({ hash }) => timingSafeEqual(hash, given));
    return found === undefined ? undefined : authInfoOf(found.entry);
  };
}
