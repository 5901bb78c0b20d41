/** Asks a search service over HTTP; each failure becomes one sentence. */
import { codeOf, isAbortError } from "../../core/errors.ts";
import { oneLine } from "../../core/text.ts";
import { memberOf, parsedJson } from "../../core/unknown.ts";
import { WebProblem, secondsToWait } from "../request.ts";

export interface ServiceRequest {
  service: string;
  url: string;
  headers?: Readonly<Record<string, string>>;
  /** Sent as JSON with POST. Absent: a GET request. */
  body?: object;
  /** Remedy if the service refuses access. */
  refusal: string;
  /** Never repeated from an answer. */
  secret?: string;
  signal: AbortSignal;
}

const ANSWER_TIMEOUT_MS = 20_000;

/** The answer's JSON. @throws WebProblem */
export async function askService(question: ServiceRequest): Promise<unknown> {
  const { service, signal, url, headers, body } = question;
  const timed = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]);
  try {
    const response = await fetch(url, {
      method: body === undefined ? "GET" : "POST",
      headers: {
        accept: "application/json",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      body: body === undefined ? null : JSON.stringify(body),
      redirect: "manual", // it would take the key to another server
      signal: timed,
    });
    const text = await readAnswer(response, service);
    if (!response.ok) throw new WebProblem("search", describeStatus(response, text, question));
    const answer = parsedJson(text);
    if (answer !== undefined) return answer;
    throw new WebProblem("search", `${service} did not answer in JSON. ${ELSEWISE}`);
  } catch (error) {
    if (signal.aborted || error instanceof WebProblem) throw error;
    const why = isAbortError(error)
      ? `did not answer within ${ANSWER_TIMEOUT_MS / 1000} s`
      : `could not be reached (${codeOf(error) ?? codeOf(memberOf(error, "cause")) ?? "the network or its address is wrong"})`;
    throw new WebProblem("search", `${service} ${why}. ${ELSEWISE}`, { cause: error });
  }
}

const ELSEWISE = "Continue without the search, or try again later.";

async function readAnswer({ body }: Response, service: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > 2 * 1024 * 1024) throw new WebProblem("search", `The answer of ${service} is too large.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length).toString("utf8");
}

function describeStatus(
  { status, headers }: Response,
  text: string,
  { service, refusal, secret }: ServiceRequest,
): string {
  const seconds = secondsToWait(headers.get("retry-after"));
  if (status === 401 || status === 403) return `${service} refused access (HTTP ${status}): ${refusal}.`;
  if (status === 402 || status === 432 || status === 433)
    return `${service} does not search any more: the limit of the plan is reached (HTTP ${status}).`;
  if (status === 429) {
    const when = seconds === undefined ? "later" : `in ${seconds} s`;
    return `${service} has had too many requests (HTTP 429). Try again ${when}.`;
  }
  if (status >= 500) return `${service} has a problem of its own (HTTP ${status}). ${ELSEWISE}`;
  if (status >= 300 && status < 400)
    return `${service} redirects to another address; correct web.search.url.`;
  const answer = parsedJson(text);
  const nested = [answer, memberOf(answer, "error"), memberOf(answer, "detail")];
  const message = nested
    .flatMap((part) => [part, ...["detail", "message", "error"].map((name) => memberOf(part, name))])
    .find((one) => typeof one === "string");
  const known = secret === undefined ? message : message?.replaceAll(secret, "[key]");
  const said = oneLine(known ?? "", 200).replace(/\.$/, "");
  return `${service} refused the request (HTTP ${status})${said === "" ? "" : `: ${said}`}.`;
}
