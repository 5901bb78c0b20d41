/** Checks the settings of `serve --http`. */
import type { Config } from "../../config/schema.ts";
import { errorMessage } from "../../core/errors.ts";
import { requireLoopback } from "../../server/http/admission.ts";
import { type Check, type OwnFacts, within } from "./check.ts";

/** Finds an address that other machines reach while requests need no token. */
export function checkAddress({ http: { host, tokens, oauth, owner } }: Config): Check[] {
  if (tokens.length > 0 || oauth !== undefined || owner) return [];
  try {
    requireLoopback(host);
    return [];
  } catch (error) {
    return [{ name: "HTTP", ok: false, text: errorMessage(error) }];
  }
}

/** Asks the authorization server once, with a token that is none. */
export async function checkIssuer({ config, env }: OwnFacts): Promise<Check[]> {
  const { oauth } = config.http;
  if (oauth === undefined) return [];
  const { issuerProblem } = await import("../../server/auth/verifiers.ts");
  const late = (time: string): string => `${oauth.issuer} did not answer within ${time}`;
  const problem = await within(8, () => issuerProblem(oauth, env), late);
  return [{ name: "OAuth", ok: problem === undefined, text: problem ?? `${oauth.issuer} answers` }];
}
