import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import type { Clock } from "../../core/clock.ts";
import type { Principal } from "../../runs/run.ts";

/** `watch`: look at the run. `decide`: also decide on its approvals; never given to a model. */
export type PagePurpose = "watch" | "decide";

export interface PageGrant {
  run: string;
  principal: Principal;
  purpose: PagePurpose;
}

const Claims = z.object({
  run: z.string(),
  principal: z.string(),
  purpose: z.enum(["watch", "decide"]),
  /** The page server it was made for: single use is a fact of that server's memory. */
  server: z.string(),
  nonce: z.string(),
  /** Milliseconds, by the clock of that server. */
  expires: z.number(),
});

const LIFETIME_MS = 12 * 60 * 60 * 1000;
/** Longer ones are not worth reading. */
const MAX_CHARACTERS = 4000;

/** Tokens in links to the page: signed, single use, good for one run, one principal and one purpose. */
export class LinkTokens {
  readonly #key: Buffer;
  readonly #clock: Clock;
  readonly #server = randomBytes(12).toString("base64url");
  /** Nonces of redeemed tokens that have not expired. */
  readonly #used = new Map<string, number>();

  constructor(stateKey: Uint8Array, clock: Clock) {
    // A key of its own, so that nothing else that is signed with the secret passes for a token.
    this.#key = createHmac("sha256", stateKey).update("deepagent-mcp page link").digest();
    this.#clock = clock;
  }

  mint({ run, principal, purpose }: PageGrant): string {
    const claims: z.output<typeof Claims> = {
      run,
      principal,
      purpose,
      server: this.#server,
      nonce: randomBytes(16).toString("base64url"),
      expires: this.#clock() + LIFETIME_MS,
    };
    const payload = Buffer.from(JSON.stringify(claims)).toString("base64url");
    return `${payload}.${this.#sign(payload).toString("base64url")}`;
  }

  /** What the token grants, without using it up; `undefined` when it grants nothing (any more). */
  inspect(token: string): PageGrant | undefined {
    return this.#valid(token);
  }

  /** The same, once. */
  redeem(token: string): PageGrant | undefined {
    const claims = this.#valid(token);
    if (claims === undefined) return undefined;
    for (const [nonce, expires] of this.#used) if (expires <= this.#clock()) this.#used.delete(nonce);
    this.#used.set(claims.nonce, claims.expires);
    return claims;
  }

  #valid(token: string): z.output<typeof Claims> | undefined {
    if (token.length > MAX_CHARACTERS) return undefined;
    const [payload = "", signature = "", ...rest] = token.split(".");
    const expected = this.#sign(payload);
    const given = Buffer.from(signature, "base64url");
    if (rest.length > 0 || given.length !== expected.length || !timingSafeEqual(given, expected)) {
      return undefined;
    }
    const claims = Claims.parse(JSON.parse(Buffer.from(payload, "base64url").toString("utf8")));
    const isGood = claims.server === this.#server && claims.expires > this.#clock();
    return isGood && !this.#used.has(claims.nonce) ? claims : undefined;
  }

  #sign(payload: string): Buffer {
    return createHmac("sha256", this.#key).update(payload).digest();
  }
}
