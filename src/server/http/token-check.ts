/** Checks the tokens of requests, and bounds how many an address may have refused. */
import type { IncomingMessage } from "node:http";
import type { Authenticator, Checked, Tokens } from "../auth/auth.ts";
import { type AddressOf, type RateLimit, clientNetwork } from "./admission.ts";
import type { Counter } from "./operations.ts";

export interface TokenCheckOptions {
  authenticator: Authenticator;
  /** Limits refused tokens, by network. */
  refusalLimit: RateLimit;
  refusals: Counter;
  addressOf: AddressOf;
}

/**
 * After too many refused tokens an address is served only with tokens that are known to be good; unknown ones are
 * not checked any more.
 */
export class TokenCheck implements Tokens {
  readonly #options: TokenCheckOptions;

  constructor(options: TokenCheckOptions) {
    this.#options = options;
  }

  wait(request: IncomingMessage): number {
    return this.#options.refusalLimit.wait(this.#networkOf(request));
  }

  async check(request: IncomingMessage, authorization: string | undefined): Promise<Checked> {
    const outcome = await this.recheck(request, authorization);
    if (outcome.ok) return outcome;
    // A missing token is not a guess, and a token that could not be checked may be valid.
    const isGuess = outcome.reason !== "no_token" && outcome.reason !== "issuer_unavailable";
    const wait = isGuess ? this.#options.refusalLimit.take(this.#networkOf(request)) : 0;
    return { ...outcome, wait };
  }

  async recheck(request: IncomingMessage, authorization: string | undefined): Promise<Checked> {
    const { authenticator, refusals } = this.#options;
    const mayAsk = this.wait(request) === 0;
    const outcome = await authenticator.authenticate(authorization, { mayAsk });
    if (outcome.ok) return outcome;
    refusals.count(outcome.reason);
    return { ...outcome, wait: 0 };
  }

  #networkOf(request: IncomingMessage): string {
    return clientNetwork(this.#options.addressOf(request));
  }
}
