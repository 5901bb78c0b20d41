import {
  type AuthInfo,
  type JSONRPCRequest,
  OAuthError,
  OAuthErrorCode,
  bearerAuthChallengeResponse,
  isJSONRPCRequest,
} from "@modelcontextprotocol/server";
import { SCOPES, type Scope } from "../../config/sections.ts";
import { toolNamed } from "../tools/tools.ts";

/**
 * Refuses a body whose requests need scopes that the token does not have: 403 with all the scopes they need,
 * so that the client can ask for a better token and repeat them. No request of such a body is carried out, in
 * a batch neither. `undefined`: the token suffices.
 *
 * This check only provides the status code in time. The run service enforces the same scopes.
 */
export function scopeChallenge(body: unknown, auth: AuthInfo | undefined): Response | undefined {
  if (auth === undefined) return undefined;
  const messages: unknown[] = Array.isArray(body) ? body : [body];
  const needed = new Set(messages.filter((message) => isJSONRPCRequest(message)).flatMap(neededScopes));
  if ([...needed].every((scope) => auth.scopes.includes(scope))) return undefined;
  const scopes = SCOPES.filter((scope) => needed.has(scope));
  const { resourceMetadataUrl } = auth;
  return bearerAuthChallengeResponse(
    new OAuthError(
      OAuthErrorCode.InsufficientScope,
      `This needs a token with the scope ${scopes.join(" and ")}`,
    ),
    { requiredScopes: scopes, ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }) },
  );
}

/** All scopes that a request needs. Looking at a run that is named needs none: every token may. */
export function neededScopes({ method, params = {} }: JSONRPCRequest): readonly Scope[] {
  if (method !== "tools/call") return METHODS.get(method)?.(params) ?? [];
  const tool = toolNamed(params["name"]);
  if (tool === undefined) return [];
  return [...new Set([...tool.scopes, ...forAnswers(params)])];
}

/** Scopes for answers: a person's answers decide on approvals; those of the client's model only continue the run. */
function forAnswers({ inputResponses }: Params): Scope[] {
  const answers = isObject(inputResponses) ? Object.values(inputResponses) : [];
  return answers.map((answer) => (isObject(answer) && "action" in answer ? "approve" : "run"));
}

type Params = Readonly<Record<string, unknown>>;

const read = (): readonly Scope[] => ["read"];
/** A map, because a client may send a method name such as `toString`. */
const METHODS = new Map<string, (params: Params) => readonly Scope[]>(
  Object.entries({
    "resources/list": read,
    // The document that hosts render with results is public.
    "resources/read": ({ uri }: Params) =>
      typeof uri === "string" && uri.startsWith("ui://") ? [] : ["read"],
    "resources/subscribe": read,
    "resources/directory/read": read,
    "skills/list": read,
    "skills/get": read,
    "completion/complete": ({ ref }: Params) =>
      isObject(ref) && ref["type"] === "ref/resource" ? ["read"] : [],
    "subscriptions/listen": ({ notifications }: Params) =>
      isObject(notifications) &&
      ("resourceSubscriptions" in notifications || "resourcesListChanged" in notifications)
        ? ["read"]
        : [],
    "tasks/update": (params: Params) => [...new Set(forAnswers(params))],
    "tasks/cancel": () => ["run"],
  }),
);

const isObject = (value: unknown): value is Params => typeof value === "object" && value !== null;
