/** Answers requests for the API: checks rights, rate and input in one place, and hands over to a route. */
import { randomUUID } from "node:crypto";
import type { z } from "zod";
import { DeepAgentError, StorageError } from "../../core/errors.ts";
import { oneLine } from "../../core/text.ts";
import { memberOf, recordOf } from "../../core/unknown.ts";
import { HELD_MS } from "../auth/auth.ts";
import { decodeOnce } from "../contracts/uris.ts";
import { type PageSession, isShared, may } from "../contracts/viewer.ts";
import { readJsonBody } from "../http/request.ts";
import type { ApiEndpoint, ApiRequest } from "../page/screen-context.ts";
import { secretOf } from "../page/tab-secrets.ts";
import { camelCase, toDocument } from "./documents.ts";
import { openApi } from "./openapi.ts";
import { ROUTES } from "./routes.ts";
import type { Call } from "./schema.ts";
import words from "./words.json" with { type: "json" };

/** Codes of refusals by status, the usual one first; other codes are 422. */
const CODES: Readonly<Record<string, readonly string[]>> = words.statuses;
const MESSAGES: Readonly<Record<string, string>> = words.refusals;

type ApiRefusal = { ok: false; code: string; message: string; headers?: Record<string, string> | undefined };

/** `by`: a code, or a status. */
function apiRefusal(by: string | number, message?: string, headers?: Record<string, string>): ApiRefusal {
  const code = typeof by === "string" ? by : (CODES[by]?.[0] ?? "failed");
  return { ok: false, code, message: message ?? MESSAGES[code] ?? "", headers };
}

export const answerApi: ApiEndpoint = async (asked) => {
  const { reply, logger } = asked;
  const outcome = await carryOut(asked).catch((error: unknown): ApiRefusal => {
    if (error instanceof StorageError) return apiRefusal("no_storage");
    if (error instanceof DeepAgentError) return apiRefusal(error.code, error.message);
    const reference = randomUUID();
    logger.error("api.failed", { reference, error });
    return apiRefusal("failed", `${MESSAGES["failed"]} ${reference}`);
  });
  if (outcome === null || reply.response.headersSent) return void reply.response.end();
  if (outcome.ok) return reply.json(outcome.answer);
  const { code, message, headers } = outcome;
  const [status = "422"] = Object.keys(CODES).filter((one) => CODES[one]?.includes(code));
  // The rest of a refused body is received and dropped, so that the answer is not lost.
  reply.request.resume();
  reply.text(Number(status), "application/json", JSON.stringify({ error: { code, message } }), headers);
};

async function carryOut(asked: ApiRequest): Promise<ApiRefusal | { ok: true; answer: object } | null> {
  const { reply, url } = asked;
  const { method = "", headers } = reply.request;
  // Other sites cannot send the header of a tab either.
  const isForeign = (headers["sec-fetch-site"] ?? "same-origin") !== "same-origin";
  if (isForeign && secretOf(reply.request) !== undefined) return apiRefusal("forbidden");
  const path = url.pathname.slice("/api".length).replace(/\/$/, "");
  const [, ofRun] = /^\/runs\/([^/]+)/.exec(path) ?? [];
  const run = ofRun && (decodeOnce(ofRun) ?? "");
  const found = await asked.find(run);
  if (found.proof !== undefined) reply.prove(found.proof);
  if (!found.ok) return apiRefusal(found.status, undefined, found.headers);
  const { session } = found;
  const wait = asked.take(session);
  if (wait > 0) return apiRefusal("too_many_requests", undefined, { "retry-after": String(wait) });
  // Those who follow a shared link have the page alone.
  if (isShared(session)) return apiRefusal("not_found");
  if (path === "" && method === "GET") return { ok: true, answer: openApi(reply.at("/api")) };
  const known = ROUTES.flatMap((route) => {
    const match = route.pattern.exec(path);
    return match === null ? [] : [{ route, id: decodeOnce(match[1] ?? "") ?? "" }];
  });
  const chosen = known.find(({ route }) => route.method === method);
  const allow = known.map(({ route }) => route.method).join(", ");
  if (chosen === undefined) return allow ? apiRefusal(405, undefined, { allow }) : apiRefusal("not_found");
  const { route, id } = chosen;
  const { scopes } = route;
  if (!scopes.every((scope) => may(session, scope))) {
    asked.logger.info("auth.scope_missing", { principal: session.principal, scopes });
    return missingScope(scopes);
  }
  const body = method === "POST" ? await readJsonBody(reply.request) : undefined;
  if (body?.ok === false)
    return apiRefusal(body.status, String(memberOf(memberOf(body.answer, "error"), "message")));
  const input = route.input.safeParse(body ? body.value : Object.fromEntries(url.searchParams));
  if (!input.success) return apiRefusal("invalid_input", problemText(input.error.issues));
  const named = Object.entries(recordOf(input.data)).map(([name, one]) => [camelCase(name), one]);
  const context = await asked.context(session);
  const call = { context, runs: context.runs, session, reply, run: run ?? "", id };
  const stream: Call["stream"] = (send) => sendStream(asked, session, run, send);
  // The schema of the route has checked the input.
  const answer = await route.handle({ ...call, stream, input: Object.fromEntries(named) } as never);
  if (answer === null) return null;
  if (!answer || memberOf(answer, "code") === "not_found") return apiRefusal("not_found");
  if (memberOf(answer, "ok") === false) return answer as ApiRefusal; // of the service
  // Schemas of routes are of objects.
  return { ok: true, answer: toDocument(route.answer, answer === true ? {} : answer, context) as object };
}

function missingScope(scopes: readonly string[]): ApiRefusal {
  const message = `This needs a token or a link with the scope ${scopes.join(" and ")}.`;
  const challenge = `Bearer error="insufficient_scope", scope="${scopes.join(" ")}"`;
  return apiRefusal("insufficient_scope", message, { "www-authenticate": challenge });
}

function problemText(issues: readonly z.core.$ZodIssue[]): string {
  const texts = issues.map(({ path, message }) => [...path.map(String), message].join(": "));
  return oneLine(texts.slice(0, 3).join("; "), 500);
}

/** Sends a stream for as long as the session may look at the run. */
async function sendStream(
  { reply, find, hold, signal }: ApiRequest,
  session: PageSession,
  run: string | undefined,
  send: (stop: AbortSignal) => Promise<void>,
): Promise<ApiRefusal | null> {
  const stop = new AbortController();
  const end = (): void => stop.abort();
  if (reply.response.destroyed || signal.aborted) end();
  reply.response.once("close", end);
  signal.addEventListener("abort", end, { once: true });
  const recheck = setInterval(() => void find(run).then(({ ok }) => ok || end(), end), HELD_MS);
  const isSent = await hold(session, () => send(stop.signal)).finally(() => {
    clearInterval(recheck);
    signal.removeEventListener("abort", end);
  });
  return isSent ? null : apiRefusal("too_many_streams");
}
