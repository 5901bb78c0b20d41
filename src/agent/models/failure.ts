/**
 * Classifies a failed model call by the shape of its error, and describes it to a person. No provider's package
 * is loaded for that.
 */
import { defined } from "../../core/defined.ts";
import { ConfigurationError, RunFailure } from "../../core/errors.ts";
import { beginningOf, headOf, oneLine } from "../../core/text.ts";
import { isObject, memberOf } from "../../core/unknown.ts";
import type { ModelFailureReason } from "../contracts/state.ts";
import { saysOverflow } from "./provider-words.ts";

/**
 * The run failure for an error of a model call. `code` is a stable failure reason. The message states what happened and
 * what to do next, quotes the provider if that helps, and holds no key and no stack.
 *
 * The caller checks its own signal to find out if the run was cancelled: a provider's timeout looks like an abort by
 * its name, and is mapped to `model_unavailable` here.
 */
export function modelFailure(error: unknown, model?: string): RunFailure {
  if (error instanceof RunFailure) return error;
  if (error instanceof ConfigurationError)
    return new RunFailure("configuration", error.message, { cause: error });
  const facts = failureFacts(error);
  const subject = model === undefined ? "The model" : `The model ${model}`;
  return new RunFailure(facts.reason, TEXTS[facts.reason](subject, facts), { cause: error });
}

const TEXTS: Readonly<Record<FailureFacts["reason"], (subject: string, facts: FailureFacts) => string>> = {
  model_auth: (subject, facts) =>
    `${subject} refused the key${http(facts)}. Check the provider's API key and what it may use.${quote(facts)}`,
  model_not_found: (subject, facts) =>
    `${subject} was not found at its provider${http(facts)}. Check the name after the colon, the endpoint, and that the key may use this model.${quote(facts)}`,
  model_rate_limited: (subject, facts) =>
    facts.quota
      ? `${subject} is refused because the account's quota or credit is used up${http(facts)}. Check the account's billing, or choose another model.${quote(facts)}`
      : `${subject} is rate limited${http(facts)}. Wait${pause(facts)} and continue the run in the same thread, lower the number of parallel subagents, or choose another model.${quote(facts)}`,
  model_unavailable: (subject, facts) =>
    facts.overloaded
      ? `${subject} is overloaded${http(facts)}. Try again later, or choose another model.${quote(facts)}`
      : `${subject} could not be reached: ${unavailable(facts)}${facts.reported ? quote(facts) : ""}`,
  model_stream_broken: (subject, { silentMs }) =>
    `${subject} stopped in the middle of an answer: ${silentMs === undefined ? "the connection ended before the answer did" : `nothing came for ${Math.round(silentMs / 1000)} s`}. Continue in the same thread; nothing of the broken answer was used.`,
  context_overflow: (subject, facts) =>
    `The conversation is longer than ${subject.replace("The", "the")} can read. Start a new thread, split the task, or choose a model with a larger context.${quote(facts)}`,
  model_error: (subject, facts) =>
    `${subject} refused the request${http(facts)}.${quote(facts) || " The provider gave no reason; the log has the error."}`,
};

function unavailable(facts: FailureFacts): string {
  if (facts.foreign)
    return "the endpoint did not answer like a model. Check the configured endpoint, and whether a proxy or a sign-in page is in between.";
  if (facts.tls !== undefined)
    return `no secure connection could be made (${facts.tls}). Check that the configured endpoint begins with https only if it is one; for a certificate of your own, name its authority in NODE_EXTRA_CA_CERTS.`;
  if (facts.reported)
    return `its provider reported an internal error${http(facts)}. Try again later, or choose another model.`;
  if (facts.network === undefined && facts.timedOut)
    return "it did not answer in time. Try again later, or choose another model.";
  const code = facts.network === undefined ? "" : ` (${facts.network})`;
  return `the connection failed${code}. Check the network and the configured endpoint, then try again.`;
}

/** A failure that may pass, in a few words. */
export function describeFailure(facts: FailureFacts): string {
  const { reason, network, overloaded, timedOut, silentMs, reported } = facts;
  if (reason === "model_rate_limited") return `model rate limited${http(facts)}`;
  if (reason === "model_stream_broken")
    return silentMs === undefined ? "model's answer broke off" : "model fell silent in its answer";
  if (overloaded) return `model overloaded${http(facts)}`;
  if (reported) return `model's provider failed${http(facts)}`;
  if (timedOut) return "model did not answer in time";
  return network === undefined ? "model not reachable" : `model not reachable (${network})`;
}

const http = ({ status }: FailureFacts): string => (status === undefined ? "" : ` (HTTP ${status})`);

const pause = ({ retryAfterMs }: FailureFacts): string =>
  retryAfterMs === undefined ? " a little" : ` ${Math.ceil(retryAfterMs / 1000)} s`;

function quote({ text }: FailureFacts): string {
  const shown = oneLine(withoutSecrets(text), 300);
  return shown === "" ? "" : ` The provider said: ${shown}`;
}

/** The beginning of `text` with everything that looks like a key, a token or credentials in an address replaced. */
export const withoutSecrets = (text: string): string =>
  beginningOf(text)
    .replace(/\b(?:(?:sk|pk|rk|gsk|xai|key|tok|pplx|csk|fw|hf)[-_]|AIza|AKIA|ASIA)[\w*.-]{8,}/g, "[key]")
    .replace(/\S+/g, (word) => (word.includes("***") ? "[key]" : word))
    .replace(/\b(Bearer|Basic)\s+[\w+/=.-]{8,}/gi, "$1 [key]")
    .replace(
      /\b(api[-_ ]?key(?: provided)?|authorization|token)(["']?\s*[:=]\s*["']?)[^\s"']{8,}/gi,
      "$1$2[key]",
    )
    .replace(/(https?:\/\/)[^\s/@]+@/gi, "$1");

export interface FailureFacts {
  reason: ModelFailureReason;
  status?: number;
  /** True if the same request may succeed a little later. */
  retryable: boolean;
  retryAfterMs?: number;
  /** The account's quota or credit is used up: waiting does not help. */
  quota: boolean;
  /** System error such as `ECONNREFUSED`, when the connection failed. */
  network?: string;
  timedOut: boolean;
  overloaded: boolean;
  /** The provider reported a fault of its own, before an answer or inside one. */
  reported: boolean;
  /** The answer began, and then nothing came for this long. */
  silentMs?: number;
  /** Code of the failure, when no secure connection could be made. */
  tls?: string;
  /** Something else than a model's answer came; the other end is probably no model. */
  foreign: boolean;
  /** The provider's own words; may hold anything. */
  text: string;
}

export function failureFacts(error: unknown): FailureFacts {
  const chain = errorCauses(error);
  // The name, the class and the message of an error. The SDKs' errors are all named `Error`.
  const outlines = chain.map(
    (link) => `${textField(link, "name") ?? ""} ${className(link)}: ${textField(link, "message") ?? ""}`,
  );
  const says = (words: RegExp): boolean => outlines.some((outline) => words.test(outline));
  const text = providerText(error, chain);
  const kind = errorKind(chain);
  // An error object inside the stream of an answer that began with HTTP 200.
  const inStream = chain.some(
    (link) =>
      className(link) === "APIError" &&
      memberOf(link, "status") === undefined &&
      isObject(memberOf(link, "error")),
  );
  // Gateways put the HTTP status into an error object, as a number or as text.
  const codes = chain
    .flatMap((link) => [memberOf(memberOf(link, "error"), "code"), memberOf(link, "code")])
    .map(Number);
  const status =
    firstFound(chain, (link) => numberField(link, "status")) ??
    firstFound(chain, (link) => numberField(link, "statusCode")) ??
    codes.find((code) => inStream && Number.isInteger(code) && code >= 400 && code < 600);
  const silentMs = firstFound(chain, (link) => numberField(link, "silentMs"));
  const facts = {
    ...defined({
      status,
      silentMs,
      network: findErrorCode(chain, NETWORK_CODE),
      tls: findErrorCode(chain, TLS_CODE),
    }),
    ...defined({ retryAfterMs: retryAfter(chain) }),
    quota: status === 402 || /insufficient_quota|billing/i.test(kind) || QUOTA_TEXT.test(text),
    timedOut: says(/^[^:]*timeout|timed out/i),
    overloaded: status === 529 || /overloaded/i.test(kind),
    reported: status !== undefined || inStream || UNAVAILABLE_KIND.test(kind),
    foreign: says(/^NoModelAnswerError /),
    text,
  };
  const reason = classifyFailure({ ...facts, kind, inStream, isBroken: says(BROKEN) });
  const transient =
    (reason === "model_rate_limited" && !facts.quota) ||
    (reason === "model_unavailable" && facts.tls === undefined && !facts.foreign) ||
    reason === "model_stream_broken" ||
    status === 409;
  const isRefused = says(ABORTED) || findHeader(chain, "x-should-retry") === "false";
  return { ...facts, reason, retryable: transient && !isRefused };
}

/** `inStream`: the provider had accepted the request, and reported a failure in its answer. */
function classifyFailure(
  evidence: Omit<FailureFacts, "reason" | "retryable"> &
    Record<"isBroken" | "inStream", boolean> & {
      kind: string;
    },
): ModelFailureReason {
  const { status, network, timedOut, tls, foreign, quota, kind, text, isBroken, inStream } = evidence;
  if (tls !== undefined || foreign) return "model_unavailable";
  if (status === 413 || OVERFLOW_KIND.test(kind) || saysOverflow(text)) return "context_overflow";
  if (status === 401 || status === 403 || AUTH_KIND.test(kind)) return "model_auth";
  if (status === 404 || /not_found_error|model_not_found|^not_found$/i.test(kind)) return "model_not_found";
  if (status === 429 || quota || /rate_limit/i.test(kind)) return "model_rate_limited";
  if (isBroken) return "model_stream_broken";
  if (status === 408 || (status ?? 0) >= 500 || UNAVAILABLE_KIND.test(kind)) return "model_unavailable";
  if (status !== undefined || /invalid_request|content_policy|moderation/i.test(kind)) return "model_error";
  const isUnreached = network !== undefined || timedOut || CONNECTION_TEXT.test(text);
  return inStream || isUnreached ? "model_unavailable" : "model_error";
}

const OVERFLOW_KIND =
  /context_length_exceeded|exceed_context_size|context_overflow|ContextOverflowError|request_too_large|max_prompt_tokens_exceeded/i;
const AUTH_KIND = /authentication_error|permission_error|invalid_api_key|model_authentication/i;
const QUOTA_TEXT = /credit balance|insufficient[_ ]quota|exceeded your current quota|out of credits/i;
const UNAVAILABLE_KIND = /overloaded|api_error|server_error|timeout_error|service_unavailable/i;
/** Outlines of errors. Those of streams are named in `stream-guard.ts`; clients read no other JSON than events unseen. */
const BROKEN =
  /^(?:ModelStreamBrokenError|SyntaxError) |: terminated$|premature close|unexpected end of (?:json|stream)/i;
const ABORTED = /^(?:Model)?AbortError | APIUserAbortError:|: (?:Request was aborted\.|AbortError)$/;
const CONNECTION_TEXT = /^connection error|fetch failed|socket hang up|getaddrinfo|network error/i;
const NETWORK_CODE =
  /^(?:ECONN(?:REFUSED|RESET|ABORTED)|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EPIPE|ETIMEDOUT|UND_ERR_)/;
/** The other end spoke no TLS, or its certificate is not trusted. */
const TLS_CODE = /^(?:CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_|ERR_SSL_|EPROTO)/;

/** The error and its causes, outermost first. */
export function errorCauses(error: unknown): object[] {
  const chain: object[] = [];
  let current = error;
  while (typeof current === "object" && current !== null && !chain.includes(current) && chain.length < 8) {
    chain.push(current);
    current = "cause" in current ? current.cause : undefined;
  }
  return chain;
}

/** The first value that `read` finds in the links of a chain. */
export function firstFound<Link, Value>(
  chain: readonly Link[],
  read: (link: Link) => Value | undefined,
): Value | undefined {
  for (const link of chain) {
    const value = read(link);
    if (value !== undefined) return value;
  }
  return undefined;
}

const textField = (value: unknown, field: string): string | undefined => {
  const text = memberOf(value, field);
  return typeof text === "string" && text !== "" ? text : undefined;
};

const numberField = (value: unknown, field: string): number | undefined => {
  const number = memberOf(value, field);
  return typeof number === "number" ? number : undefined;
};

function className(link: object): string {
  const made = memberOf(link, "constructor");
  return typeof made === "function" ? made.name : "";
}

/** An error, the provider's answer in it, and the error in that. */
const errorLayers = (link: object): unknown[] => {
  const answer = memberOf(link, "error");
  return [link, answer, memberOf(answer, "error")];
};

/** Every code and type the error carries, joined: providers spread them over several fields. */
const errorKind = (chain: readonly object[]): string =>
  chain
    .flatMap(errorLayers)
    .flatMap((layer) =>
      ["code", "type", "lc_error_code", "name"].flatMap((field) => textField(layer, field) ?? []),
    )
    // Longer words are not codes.
    .map((word) => headOf(word, 200))
    .join(" ");

/** The message of the provider's answer when there is one, else of the innermost error that has any. */
function providerText(error: unknown, chain: readonly object[]): string {
  const said = firstFound(chain, (link) => {
    const [, answer, inner] = errorLayers(link);
    return textField(inner, "message") ?? textField(answer, "message");
  });
  if (said !== undefined) return beginningOf(said);
  const innermost = firstFound(chain.toReversed(), (link) => textField(link, "message"));
  // LangChain's own addition, at the end.
  return beginningOf(innermost ?? (typeof error === "string" ? error : ""))
    .split("Troubleshooting URL: ", 1)
    .join()
    .trimEnd();
}

const findErrorCode = (chain: readonly object[], pattern: RegExp): string | undefined =>
  chain.map((link) => textField(link, "code") ?? "").find((code) => pattern.test(code));

const findHeader = (chain: readonly object[], name: string): string | undefined =>
  firstFound(chain, (link) => {
    const headers = memberOf(link, "headers");
    return headers instanceof Headers ? (headers.get(name) ?? undefined) : textField(headers, name);
  });

/** The pause that the answer asks for, in ms: milliseconds, seconds, or a date by the provider's clock. */
function retryAfter(chain: readonly object[]): number | undefined {
  const value = findHeader(chain, "retry-after") ?? "";
  const now = Date.parse(findHeader(chain, "date") ?? "");
  const pauses = [
    Number(findHeader(chain, "retry-after-ms") ?? NaN),
    value === "" ? NaN : Number(value) * 1000,
    Date.parse(value) - (Number.isFinite(now) ? now : Date.now()),
  ];
  const pause = pauses.find(Number.isFinite);
  return pause === undefined ? undefined : Math.max(pause, 0);
}

/**
 * Patterns for the token counts in providers' messages: of the request, of the window, and of the answer if it counts
 * too. Patterns of one list follow each other in the text.
 */
const TOLD: readonly (readonly RegExp[])[] = [
  [/(?<![\d,])(?<request>[\d,]+) \+ (?<answer>[\d,]+) > (?<window>[\d,]+)/],
  [/(?<![\d,])(?<request>[\d,]+) tokens? > (?<window>[\d,]+)/i],
  [
    /maximum (?:context|prompt) length is (?<window>[\d,]+)/i,
    /(?:resulted in|requested|contains) (?<request>[\d,]+)/i,
  ],
  [/token count(?: of)? \(?(?<request>[\d,]+)\)? exceeds /i, /(?<window>[\d,]+)/],
];

/** Part of a refused request that would have fitted, if the provider's words reveal it; else undefined. */
export function fittingPart(error: unknown): number | undefined {
  const { text } = failureFacts(error);
  const parts = TOLD.map((patterns) => {
    const { request = "", window = "", answer = "0" } = inTurn(patterns, text);
    return (tokens(window) - tokens(answer)) / tokens(request);
  });
  return parts.find((part) => part > 0 && part < 1);
}

/** The window that the provider's words reveal, in tokens. */
export function toldWindow(error: unknown): number | undefined {
  const { text } = failureFacts(error);
  const windows = TOLD.map((patterns) => tokens(inTurn(patterns, text)["window"] ?? ""));
  return windows.find((window) => window >= 1024);
}

/** The named parts of patterns that follow each other, each looked for behind the one before. */
function inTurn(patterns: readonly RegExp[], text: string): Record<string, string | undefined> {
  let rest = text;
  let named: Record<string, string | undefined> = {};
  for (const pattern of patterns) {
    const found = pattern.exec(rest);
    if (found === null) return {};
    named = { ...named, ...found.groups };
    rest = rest.slice(found.index + found[0].length);
  }
  return named;
}

const tokens = (digits: string): number => Number(digits.replaceAll(",", ""));
