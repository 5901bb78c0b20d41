/** Answers requests for the API: checks rights, rate and input in one place, and hands over to a route. */
import { randomUUID } from "node:crypto";
import { DeepAgentError, StorageError } from "../../core/errors.ts";
import { oneLine } from "../../core/text.ts";
import { memberOf } from "../../core/unknown.ts";
import { HELD_MS } from "../auth/auth.ts";
import { decodeOnce } from "../contracts/uris.ts";
import { type PageSession, isShared, may } from "../contracts/viewer.ts";
import { readJsonBody } from "../http/request.ts";
import type { ApiEndpoint, ApiRequest } from "../page/screen-context.ts";
import { secretOf } from "../page/tab-secrets.ts";
import { openApi } from "./openapi.ts";
import { ROUTES } from "./routes.ts";
import { camelCase, documentOf } from "./schema.ts";
import words from "./words.json" with { type: "json" };

const PATTERNS = ROUTES.map((route) => {
  return { route, pattern: new RegExp(`^${route.path.replaceAll(/:(\w+)/g, "(?<$1>[^/]+)")}$`) };
});

/** Codes of refusals by status, the usual one first; other codes are 422. */
const CODES: Readonly<Record<string, readonly string[]>> = words.statuses;
const MESSAGES: Readonly<Record<string, string>> = words.refusals;

interface Refusal {
  ok: false;
  code: string;
  message: string;
  headers?: Readonly<Record<string, string>> | undefined;
}

/** `by`: a code, or a status. */
function refusal(by: string | number, more: Partial<Refusal> = {}): Refusal {
  const code = typeof by === "string" ? by : (CODES[by]?.[0] ?? "failed");
  return { ok: false, code, message: MESSAGES[code] ?? "", ...more };
}

export const answerApi: ApiEndpoint = async (asked) => {
  const { reply, logger } = asked;
  const outcome = await carryOut(asked).catch((error: unknown): Refusal => {
    if (error instanceof StorageError) return refusal("no_storage");
    if (error instanceof DeepAgentError) return refusal(error.code, { message: error.message });
    const reference = randomUUID();
    logger.error("api.failed", { reference, error });
    return refusal("failed", { message: `${MESSAGES["failed"]} ${reference}` });
  });
  if (outcome === null || reply.response.headersSent) return void reply.response.end();
  if (outcome.ok) return reply.json(outcome.answer);
  const { code, message, headers } = outcome;
  const [status = "422"] = Object.keys(CODES).filter((one) => CODES[one]?.includes(code));
  // The rest of a refused body is received and dropped, so that the answer is not lost.
  reply.request.resume();
  reply.text(Number(status), "application/json", JSON.stringify({ error: { code, message } }), headers);
};

async function carryOut(asked: ApiRequest): Promise<Refusal | { ok: true; answer: object } | null> {
  const { reply, url } = asked;
  const { method = "", headers } = reply.request;
  // Other sites cannot send the header of a tab either.
  const isForeign = (headers["sec-fetch-site"] ?? "same-origin") !== "same-origin";
  if (isForeign && secretOf(reply.request) !== undefined) return refusal("forbidden");
  const path = url.pathname.slice("/api".length).replace(/\/$/, "");
  const [, ofRun] = /^\/runs\/([^/]+)/.exec(path) ?? [];
  const run = ofRun && (decodeOnce(ofRun) ?? "");
  const found = await asked.find(run);
  if (found.proof !== undefined) reply.prove(found.proof);
  if (!found.ok) return refusal(found.status, { headers: found.headers });
  const { session } = found;
  const wait = asked.take(session);
  if (wait > 0) return refusal("too_many_requests", { headers: { "retry-after": String(wait) } });
  // Those who follow a shared link have the page alone.
  if (isShared(session)) return refusal("not_found");
  if (path === "" && method === "GET") return { ok: true, answer: openApi(ROUTES, reply.at("/api")) };
  const known = PATTERNS.flatMap(({ route, pattern }) => {
    const match = pattern.exec(path);
    return match === null ? [] : [{ route, id: decodeOnce(match.groups?.["id"] ?? "") ?? "" }];
  });
  const chosen = known.find(({ route }) => route.method === method);
  const allow = known.map(({ route }) => route.method).join(", ");
  if (chosen === undefined) return allow ? refusal(405, { headers: { allow } }) : refusal("not_found");
  const { route, id } = chosen;
  const { scopes } = route;
  if (!scopes.every((scope) => may(session, scope))) {
    asked.logger.info("auth.scope_missing", { principal: session.principal, scopes });
    const challenge = `Bearer error="insufficient_scope", scope="${scopes.join(" ")}"`;
    const message = `This needs a token or a link with the scope ${scopes.join(" and ")}.`;
    return refusal("insufficient_scope", { message, headers: { "www-authenticate": challenge } });
  }
  const body = method === "POST" ? await readJsonBody(reply.request) : undefined;
  if (body?.ok === false)
    return refusal(body.status, { message: String(memberOf(memberOf(body.answer, "error"), "message")) });
  const input = route.input.safeParse(body ? body.value : Object.fromEntries(url.searchParams));
  if (!input.success) return refusal("invalid_input", { message: problemText(input.error.issues) });
  const given = Object.fromEntries(Object.entries(input.data).map(([name, one]) => [camelCase(name), one]));
  const context = await asked.context(session);
  const call = { context, runs: context.runs, session, reply, run: run ?? "", id };
  const stream = (send: (stop: AbortSignal) => Promise<void>) => sendStream(asked, { session, run }, send);
  // The schema of the row has checked the input.
  const answer = await route.handle(given as never, { ...call, stream });
  if (answer === null) return null;
  if (answer === undefined || answer === false || memberOf(answer, "code") === "not_found")
    return refusal("not_found");
  if (isRefusal(answer)) return answer;
  return { ok: true, answer: documentOf(route.answer, answer === true ? {} : answer) as object }; // its schema is of one
}

const isRefusal = (answer: unknown): answer is Refusal => memberOf(answer, "ok") === false;

function problemText(issues: readonly { path: readonly PropertyKey[]; message: string }[]): string {
  const texts = issues.map(({ path, message }) => [...path.map(String), message].join(": "));
  return oneLine(texts.slice(0, 3).join("; "), 500);
}

/** Sends a stream for as long as the session may look at the run. */
async function sendStream(
  { reply, find, hold, signal }: ApiRequest,
  { session, run }: { session: PageSession; run: string | undefined },
  send: (stop: AbortSignal) => Promise<void>,
): Promise<Refusal | null> {
  const stop = new AbortController();
  const end = (): void => stop.abort();
  if (reply.response.destroyed || signal.aborted) end();
  reply.response.once("close", end);
  signal.addEventListener("abort", end, { once: true });
  const recheck = setInterval(() => void find(run).then(({ ok }) => ok || end(), end), HELD_MS);
  try {
    return (await hold(session, () => send(stop.signal))) ? null : refusal("too_many_streams");
  } finally {
    clearInterval(recheck);
    signal.removeEventListener("abort", end);
  }
}
