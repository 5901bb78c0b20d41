import type { AuthInfo, JSONRPCRequest } from "@modelcontextprotocol/server";
import {
  OAuthError,
  OAuthErrorCode,
  bearerAuthChallengeResponse,
  isJSONRPCRequest,
} from "@modelcontextprotocol/server";
import { SCOPES, type Scope } from "../../runs/run.ts";
import { isObject, memberOf, defined } from "../../core/unknown.ts";
import { requiredScopes } from "../auth/auth.ts";
import { toolNamed } from "../tools/tools.ts";

/**
 * Refuses a body whose requests need scopes that the token does not have: 403 with all the scopes they need,
 * so that the client can ask for a better token and repeat them. No request of such a body is carried out, in
 * a batch neither. `undefined`: the token suffices.
 *
 * This check only provides the status code in time. The run service enforces the same scopes.
 */
export function scopeChallenge(body: unknown, auth: AuthInfo | undefined) {
  if (auth === undefined) return undefined;
  const messages: unknown[] = Array.isArray(body) ? body : [body];
  const needed = new Set(messages.filter((message) => isJSONRPCRequest(message)).flatMap(neededScopes));
  if ([...needed].every((scope) => auth.scopes.includes(scope))) return undefined;
  const scopes = SCOPES.filter((scope) => needed.has(scope));
  const { resourceMetadataUrl } = auth;
  const problem = `This needs a token with the scope ${scopes.join(" and ")}`;
  const error = new OAuthError(OAuthErrorCode.InsufficientScope, problem);
  // The consent of this server's own log-in replaces the earlier one.
  const own = auth.extra?.["asksForAll"] === true ? auth.scopes : [];
  const wanted = SCOPES.filter((scope) => needed.has(scope) || own.includes(scope));
  const challenge = { requiredScopes: requiredScopes(auth, wanted), ...defined({ resourceMetadataUrl }) };
  return { scopes, response: bearerAuthChallengeResponse(error, challenge) };
}

/** All scopes that a request needs. Looking at a run that is named needs none: every token may. */
export function neededScopes({ method, params = {} }: JSONRPCRequest): readonly Scope[] {
  switch (method) {
    case "tools/call": {
      const tool = toolNamed(params["name"]);
      return tool === undefined ? [] : [...new Set([...tool.scopes, ...forAnswers(params)])];
    }
    case "tasks/update":
      return [...new Set(forAnswers(params))];
    case "tasks/cancel":
      return ["run"];
    case "resources/list":
    case "resources/subscribe":
    case "resources/directory/read":
    case "skills/list":
    case "skills/get":
      return ["read"];
    case "resources/read":
      // The document that hosts render with results is public.
      return typeof params["uri"] === "string" && params["uri"].startsWith("ui://") ? [] : ["read"];
    case "completion/complete":
      return memberOf(params["ref"], "type") === "ref/resource" ? ["read"] : [];
    case "subscriptions/listen": {
      const kinds = ["resourceSubscriptions", "resourcesListChanged"];
      return kinds.some((kind) => memberOf(params["notifications"], kind) !== undefined) ? ["read"] : [];
    }
    default:
      return [];
  }
}

/** Scopes for answers: a person's answers decide on approvals; those of the client's model only continue the run. */
function forAnswers({ inputResponses }: Readonly<Record<string, unknown>>): Scope[] {
  const answers = isObject(inputResponses) ? Object.values(inputResponses) : [];
  return answers.map((answer) => (memberOf(answer, "action") === undefined ? "run" : "approve"));
}
