/** Names of scopes in the tokens of identity providers. */
import type { OAuthConfig } from "../../config/sections.ts";
import { memberOf } from "../../core/unknown.ts";
import { SCOPES, type Scope } from "../../runs/run.ts";

/**
 * Claims with permissions, as text with blanks or as a list: RFC 9068 has `scope`, Okta, Kinde, and Ory a list `scp`,
 * Microsoft Entra the text `scp` and for clients `roles`, Auth0 and Kinde `permissions`.
 */
const CLAIMS = ["scope", "scp", "permissions", "roles"];
/** Claims with groups and roles, which count under configured names only: Keycloak, Amazon Cognito, Authentik. */
const GROUPS = [["realm_access", "roles"], ["cognito:groups"], ["groups"]];

type ScopeConfig = Pick<OAuthConfig, "scopes" | "resource" | "audience">;

/** Configured names by scope. A name of a list is that of the scope after its last `/`, `:` or `.`. */
function configuredNames({ scopes = [] }: ScopeConfig): Readonly<Record<Scope, readonly string[]>> {
  const names = (scope: Scope): readonly string[] => {
    if (Array.isArray(scopes)) return scopes.filter((name) => name.split(/[/:.]/).at(-1) === scope);
    const given = scopes[scope] ?? [];
    return typeof given === "string" ? [given] : given;
  };
  return { run: names("run"), approve: names("approve"), read: names("read") };
}

/** Returns the names that clients ask an authorization server for: configured ones, or the scopes themselves. */
export function requestedNames(config: ScopeConfig): ReadonlyMap<Scope, string> {
  const names = configuredNames(config);
  return new Map(SCOPES.map((scope) => [scope, names[scope][0] ?? scope]));
}

/** Returns the scopes that the claims of a token contain, also as names below the audience (`api://app/run`). */
export function scopesOf(claims: Readonly<Record<string, unknown>>, config: ScopeConfig): Scope[] {
  const { resource, audience = resource } = config;
  const texts = (claim: unknown): unknown[] =>
    typeof claim === "string" ? claim.split(" ") : Array.isArray(claim) ? claim : [];
  const granted = new Set(CLAIMS.flatMap((name) => texts(claims[name])));
  const groups = GROUPS.map((path) => path.reduce<unknown>(memberOf, claims)).flatMap(texts);
  const configured = configuredNames(config);
  return SCOPES.filter((scope) => {
    const own = [audience, resource].map((place) => `${withoutSlash(place)}/${scope}`);
    return (
      [scope, ...own].some((name) => granted.has(name)) ||
      // Entra is asked for `api://app/Agent.Run`, and writes `Agent.Run`.
      configured[scope].some((name) => [name, name.split("/").at(-1)].some((one) => granted.has(one))) ||
      configured[scope].some((name) => groups.includes(name))
    );
  });
}

const withoutSlash = (address: string): string => (address.endsWith("/") ? address.slice(0, -1) : address);

/** An address with and without a slash at its end: providers and people write either. */
export const bothForms = (address: string): string[] => [withoutSlash(address), `${withoutSlash(address)}/`];
