import {
  type AuthInfo,
  type JSONRPCRequest,
  OAuthError,
  OAuthErrorCode,
  bearerAuthChallengeResponse,
  isJSONRPCRequest,
} from "@modelcontextprotocol/server";
import { SCOPES, type Scope } from "../../config/sections.ts";
import { SERVER_TOOLS } from "../tools/index.ts";

/**
 * The answer to a body whose requests need scopes that the token does not have: 403 with all the scopes they
 * need, so that the client can ask for a better token and repeat them. Nothing of such a body is carried
 * out, of a batch neither. `undefined`: the token suffices.
 *
 * What a request needs is known here before it is answered. The run service refuses the same once more; it
 * is what holds, this only says it in time for a status code.
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
  const tool = SERVER_TOOLS.find(({ name }) => name === params["name"]);
  if (tool === undefined) return [];
  return [...new Set([...tool.scopes, ...forAnswers(params)])];
}

/** Answers of a person decide on approvals; those of a client's model let the run go on. */
function forAnswers({ inputResponses }: Params): Scope[] {
  const answers = isObject(inputResponses) ? Object.values(inputResponses) : [];
  return answers.map((answer) => (isObject(answer) && "action" in answer ? "approve" : "run"));
}

type Params = Readonly<Record<string, unknown>>;

const read = (): readonly Scope[] => ["read"];
/** A map: a client may name a method like something that every object has. */
const METHODS = new Map<string, (params: Params) => readonly Scope[]>(
  Object.entries({
    "resources/list": read,
    // What hosts render with a result is the same for everybody.
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
