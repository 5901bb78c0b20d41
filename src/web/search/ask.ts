/** Asks a search service over HTTP; each failure becomes one sentence. */
import { codeOf, isAbortError } from "../../core/errors.ts";
import { oneLine, headOf } from "../../core/text.ts";
import { memberOf, parsedJson, isRecord, parsedUrl } from "../../core/unknown.ts";
import { WebProblem, secondsToWait } from "../request.ts";
import { MAX_URL } from "../url.ts";

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

export interface FoundPage {
  title: string;
  url: string;
  snippet: string;
  /** A day as `2026-01-31`, if the provider knows it. */
  date?: string;
}

type RawPage = Readonly<Record<string, unknown>>;

/** The names of a provider's fields that differ from ours, or how to make ours. */
export type FieldNames = Readonly<Partial<Record<keyof FoundPage, string | ((page: RawPage) => unknown)>>>;

/** Searches the web. Expected failures are thrown as `WebProblem`, whose message is for the model. */
export type SearchPages = (
  query: string,
  options: { count: number; signal: AbortSignal },
) => Promise<readonly FoundPage[]>;

/** The list of results in an answer; none for an answer of another form. */
export function resultList(answer: unknown, ...path: readonly string[]): RawPage[] {
  const list = path.reduce<unknown>((value, name) => memberOf(value, name), answer);
  return Array.isArray(list) ? list.filter(isRecord) : [];
}

/** Up to `count` results, each page once, without those that name no page. */
export function tidyPages(raw: readonly RawPage[], count: number, names: FieldNames = {}): FoundPage[] {
  const found = new Map<string, FoundPage>();
  for (const page of raw) {
    const made = tidyPage(page, names);
    if (made && !found.has(made.url)) found.set(made.url, made);
    if (found.size === count) break;
  }
  return [...found.values()];
}

function tidyPage(page: RawPage, names: FieldNames): FoundPage | undefined {
  const field = (name: keyof FoundPage): unknown => {
    const theirs = names[name] ?? name;
    return typeof theirs === "string" ? page[theirs] : theirs(page);
  };
  const url = field("url");
  const address = typeof url === "string" ? parsedUrl(url) : undefined;
  if (!address || !/^https?:$/.test(address.protocol) || address.href.length > MAX_URL) return undefined;
  const date = field("date");
  const time = typeof date === "string" ? Date.parse(headOf(date, 40)) : Number.NaN;
  return {
    title: plainLine(field("title"), 200) || address.host,
    url: address.href,
    snippet: plainLine(field("snippet"), 600),
    ...(Number.isNaN(time) ? {} : { date: new Date(time).toISOString().slice(0, 10) }),
  };
}

/** A text on one line, without the marks that providers put around the words that were found. */
const plainLine = (text: unknown, limit: number): string =>
  typeof text === "string"
    ? oneLine(
        headOf(text, 4 * limit)
          .replace(/<\/?(?:strong|em|b|mark)>/gi, "")
          .replace(/&(amp|lt|gt|quot|#0?39|#x27);/g, (_, name: string) => ENTITIES[name] ?? "'"),
        limit,
      )
    : "";

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"' };
