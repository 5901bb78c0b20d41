/** Checks the answers of people to requests for approval. */
import type { HitlRequest } from "../contracts/question.ts";
import type { Decision, DecisionType } from "../../tools/request.ts";
import { isObject, isRecord, memberOf } from "../../core/unknown.ts";

export const ALL_DECISIONS: readonly DecisionType[] = ["approve", "edit", "reject"];

/** Longest description a person is shown, in characters: it is stored with the request. */
export const MAX_DESCRIPTION = 20_000;

/** The problem of an answer to a request, in words for its author; undefined if there is none. */
export function responseProblem(request: HitlRequest, response: unknown): string | undefined {
  const given = memberOf(response, "decisions");
  if (!Array.isArray(given) || !given.every(isObject))
    return "An answer must be an object with a list of decisions.";
  const decisions = given as Decision[]; // whose fields are checked now
  if (decisions.length !== request.actionRequests.length)
    return `${request.actionRequests.length} decision(s) expected, got ${decisions.length}.`;
  for (const [index, decision] of decisions.entries()) {
    const allowed = request.reviewConfigs[index]?.allowedDecisions ?? ALL_DECISIONS;
    // A deadline denies whatever a person may do.
    const isExpiry = decision.type === "reject" && decision.expired === true;
    if (!allowed.includes(decision.type) && !isExpiry)
      return `Decision '${decision.type}' is not allowed here; allowed: ${allowed.join(", ")}.`;
    const action: unknown = decision.type === "edit" && decision.editedAction;
    const isAction = isRecord(action) && typeof action["name"] === "string" && isRecord(action["args"]);
    if (decision.type === "edit" && !isAction)
      return "An edit needs editedAction with the name and the arguments to run instead.";
    if (decision.type === "reject" && !["string", "undefined"].includes(typeof decision.message))
      return "The message of a reject must be a text.";
  }
  return undefined;
}
