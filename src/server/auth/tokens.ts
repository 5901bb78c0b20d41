import { createHash, timingSafeEqual } from "node:crypto";
import type { TokenConfig } from "../../config/http-schema.ts";
import { authInfoOf, type TokenVerifier } from "./auth.ts";

/**
 * Verifies the tokens that the configuration has now, which holds their hashes only. Every entry is compared, in
 * constant time, so that the time says nothing about how close a guess came.
 */
export function tokenVerifier(current: () => readonly TokenConfig[]): TokenVerifier {
  return (token) => {
    const given = createHash("sha256").update(token).digest();
    const [found] = current().filter(({ sha256 }) => timingSafeEqual(Buffer.from(sha256, "hex"), given));
    return found === undefined ? undefined : authInfoOf(found);
  };
}
