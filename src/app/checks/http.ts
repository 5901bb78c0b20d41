/** Checks the settings of `serve --http`. */
import type { Config } from "../../config/schema.ts";
import { errorMessage } from "../../core/errors.ts";
import { requireLoopback } from "../../server/http/admission.ts";
import { type Check, type OwnFacts, within } from "./check.ts";

/** Finds an address that other machines reach while requests need no token. */
export function checkAddress({ http: { host, tokens, oauth } }: Config): Check[] {
  if (tokens.length > 0 || oauth !== undefined) return [];
  try {
    requireLoopback(host);
    return [];
  } catch (error) {
    return [{ name: "HTTP", ok: false, text: errorMessage(error) }];
  }
}

/** An authorization server that answers later than this is reported. */
const ISSUER_MS = 8000;

/** Asks the authorization server once, with a token that is none. */
export async function checkIssuer({ config, env }: OwnFacts): Promise<Check[]> {
  const { oauth } = config.http;
  if (oauth === undefined) return [];
  const { issuerProblem } = await import("../../server/auth/verifiers.ts");
  const problem = await within(
    ISSUER_MS,
    () => issuerProblem(oauth, env),
    `${oauth.issuer} did not answer within ${ISSUER_MS / 1000} s`,
  );
  return [{ name: "OAuth", ok: problem === undefined, text: problem ?? `${oauth.issuer} answers` }];
}
