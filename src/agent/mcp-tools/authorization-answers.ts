/** Reads the answers of authorization servers as they write them, and passes on strict ones. */
import { isRecord, parsedJson } from "../../core/unknown.ts";

/** The `fetch` with which authorization servers are asked. */
export type AuthorizationFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** An issuer without a slash at its end: servers write it with one in one place, and without it in another. */
export const issuerName = (issuer: string): string => issuer.replace(/\/$/, "");

/** `fetch` whose answers the package takes: it refuses a log-in for one null. */
export const readingAnyAnswer =
  (fetch: AuthorizationFetch): AuthorizationFetch =>
  async (url, init) => {
    const answer = await fetch(url, init);
    if (!answer.ok) return answer;
    const { status, statusText, headers } = answer;
    const text = await answer.text();
    // GitHub answers with a form unless it is asked for JSON.
    const given =
      parsedJson(text) ??
      (text.startsWith("access_token=") || text.includes("&access_token=")
        ? Object.fromEntries(new URLSearchParams(text))
        : undefined);
    const body = isRecord(given) ? JSON.stringify(strict(given)) : text;
    return new Response(body === "" ? null : body, { status, statusText, headers });
  };

function strict(given: Record<string, unknown>): Record<string, unknown> {
  const { scope, issuer, client_id_issued_at: issued, ...others } = given;
  const said = Object.entries(others).filter(([, value]) => value !== null && value !== "");
  return {
    // Members that an answer may leave out, by a member that its kind always has.
    ...("access_token" in given ? { token_type: "Bearer" } : {}),
    ...("client_id" in given ? { redirect_uris: [] } : {}),
    ...("authorization_endpoint" in given ? { response_types_supported: ["code"] } : {}),
    ...Object.fromEntries(said),
    ...(typeof issuer === "string" ? { issuer: issuerName(issuer) } : {}),
    ...(typeof issued === "number" ? { client_id_issued_at: issued } : {}),
    ...(Array.isArray(scope) ? { scope: scope.join(" ") } : typeof scope === "string" ? { scope } : {}),
  };
}
