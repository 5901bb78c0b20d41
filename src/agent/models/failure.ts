/** Classifies a failed model call by the shape of its error, and describes it. Loads no provider's package. */
import { ConfigurationError, DeepAgentError, RunFailure, errorMessage } from "../../core/errors.ts";
import { beginningOf, headOf, oneLine } from "../../core/text.ts";
import { isObject, memberOf, recordOf, textMemberOf, defined } from "../../core/unknown.ts";
import type { ModelFailureReason } from "../contracts/state.ts";
import { answerHeaders, askedPause } from "./pauses.ts";
import texts from "./failure-texts.json" with { type: "json" };
import { CAUSES, type RefusalKind, TOLD_COUNTS, refusalKind } from "./provider-words.ts";

/**
 * The run failure for an error of a model call. Its message quotes the provider if that helps, and has no key. The code
 * `internal` stands for an error of this program or of a package. The caller checks its own signal to find out if the
 * run was cancelled: a provider's timeout looks like an abort by its name, and is `model_unavailable` here.
 */
export function modelFailure(error: unknown, model?: string): RunFailure {
  if (error instanceof RunFailure) return error;
  if (error instanceof DeepAgentError) {
    const code = error instanceof ConfigurationError ? "configuration" : "internal";
    return new RunFailure(code, error.message, { cause: error });
  }
  const facts = failureFacts(error);
  // The outermost error of a package has the most details.
  const own = facts.isInternal ? { ...facts, text: errorMessage(error) } : facts;
  const code = facts.isInternal ? "internal" : facts.reason;
  return new RunFailure(code, describeFailure(own, "long", model), { cause: error });
}

/** A failure in a sentence with its remedy, or in a few words if it may pass: by the first row of the table that fits. */
export function describeFailure(facts: FailureFacts, form: "long" | "short", model?: string): string {
  const { status, network, retryAfterMs, silentMs = 0, tls, text, reported, keyVariable: key } = facts;
  const told: Readonly<Record<string, unknown>> = { ...facts };
  const isSo = ([name, value]: [string, unknown]): boolean =>
    typeof value === "boolean" ? Boolean(told[name]) === value : told[name] === value;
  const row = texts.find(({ when }) => Object.entries(when).every(isSo));
  const subject = model === undefined ? "model" : `model ${model}`;
  const words = oneLine(withoutSecrets(text), 300);
  const gaps: Readonly<Record<string, string | undefined>> = {
    Subject: `The ${subject}`,
    subject: `the ${subject}`,
    words,
    tls,
    key,
    http: status === undefined ? "" : ` (HTTP ${status})`,
    network: network === undefined ? "" : ` (${network})`,
    pause: retryAfterMs === undefined ? "a little" : `${Math.ceil(retryAfterMs / 1000)} s`,
    silent: `${Math.round(silentMs / 1000)} s`,
    quote: reported && words !== "" ? ` The provider said: ${words}` : "",
  };
  const sentence = row?.[form] ?? "model's provider failed{http}";
  return sentence.replace(/\{(\w+)\}/g, (_gap, name: string) => gaps[name] ?? "");
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
  kind?: RefusalKind;
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
  /** A provider answered, with a refusal or a fault, before an answer of the model or inside one. */
  reported: boolean;
  /** An error of this program or of a package, and not of a provider or a connection. */
  isInternal: boolean;
  /** The answer began, and then nothing came for this long. */
  silentMs?: number;
  /** The variable that the refused key was in, by the exchange with its server. */
  keyVariable?: string;
  /** Code of the failure, when no secure connection could be made. */
  tls?: string;
  /** Something else than a model's answer came; the other end is probably no model. */
  foreign: boolean;
  /** The text of a call that the provider refused because it could not read it; may be empty. */
  refusedCall?: string;
  /** The provider's own words; may hold anything. */
  text: string;
}

export function failureFacts(error: unknown): FailureFacts {
  const chain = errorCauses(error);
  // The name, the class and the message of an error. The SDKs' errors are all named `Error`.
  const outlines = chain.map(
    (link) =>
      `${textMemberOf(link, "name") ?? ""} ${className(link)}: ${textMemberOf(link, "message") ?? ""}`,
  );
  const says = (words: RegExp): boolean => outlines.some((outline) => words.test(outline));
  const text = providerText(error, chain);
  const layers = chain.flatMap(errorLayers);
  const codes = errorCodes(layers);
  // An error object inside the stream of an answer that began with HTTP 200.
  const apiErrors = chain.filter((link) => className(link) === "APIError").map(recordOf);
  const inStream = apiErrors.some(({ status, error }) => status === undefined && isObject(error));
  const status = errorStatus(chain, inStream);
  const origin = chain.at(-1);
  const own = [DeepAgentError, TypeError, RangeError, ReferenceError];
  const isOwn = own.some((made) => origin instanceof made) && status === undefined && !inStream;
  const kind = isOwn ? undefined : refusalKind(codes, text, status);
  const evidence = {
    ...defined({
      status,
      kind,
      silentMs: chain.map((link) => memberOf(link, "silentMs")).find(isNumber),
      keyVariable: chain.map((link) => textMemberOf(link, "keyVariable")).find(Boolean),
      network: findErrorCode(chain, NETWORK_CODE),
      tls: findErrorCode(chain, TLS_CODE),
    }),
    // Groq
    ...(codes.includes("tool_use_failed") && {
      refusedCall: layers.map((layer) => textMemberOf(layer, "failed_generation")).find(Boolean) ?? "",
    }),
    quota: kind === "quota",
    timedOut: says(/^[^:]*timeout|timed out/i),
    overloaded: status === 529 || kind === "busy",
    reported: status !== undefined || inStream || kind !== undefined,
    foreign: says(/^NoModelAnswerError /),
    text,
  };
  const namesRequest = codes.some((code) => /invalid_request|content_policy|moderation/i.test(code));
  const reason = classifyFailure({ ...evidence, inStream, namesRequest, isBroken: says(BROKEN) });
  const headers = answerHeaders(chain, layers);
  const retryAfterMs = askedPause(text, headers, layers, reason === "model_rate_limited");
  const transient =
    (reason === "model_rate_limited" && kind !== "quota") ||
    // An unimplemented feature does not appear by waiting.
    (reason === "model_unavailable" && status !== 501 && evidence.tls === undefined && !evidence.foreign) ||
    reason === "model_stream_broken" ||
    status === 409;
  const isRefused = says(ABORTED) || headers.get("x-should-retry") === "false";
  return {
    ...evidence,
    ...defined({ retryAfterMs }),
    reason,
    isInternal: isOwn && reason === "model_error",
    retryable: transient && !isRefused,
  };
}

/** The HTTP status of a failure. Gateways put it into an error object, as a number or as text. */
function errorStatus(chain: readonly object[], inStream: boolean): number | undefined {
  const names = ["status", "statusCode", "status_code"];
  const named = names.flatMap((name) => chain.map((link) => memberOf(link, name)));
  const aws = chain.map((link) => memberOf(memberOf(link, "$metadata"), "httpStatusCode"));
  const codes = chain.flatMap((link) => [memberOf(memberOf(link, "error"), "code"), memberOf(link, "code")]);
  return (
    [...named, ...aws].find(isNumber) ?? (inStream ? codes.map(Number).find(isRefusalStatus) : undefined)
  );
}

/**
 * The reason, by the first of these that is known: no answer of a model at all; a cause that the provider names exactly;
 * the status; a cause that it names in passing; how the connection ended. `inStream`: the provider had accepted the
 * request, and reported a failure in its answer.
 */
function classifyFailure(
  evidence: Omit<FailureFacts, "reason" | "retryable" | "isInternal"> &
    Record<"isBroken" | "inStream" | "namesRequest", boolean>,
): ModelFailureReason {
  const { status, kind, network, timedOut, tls, foreign, namesRequest, text, isBroken, inStream } = evidence;
  if (tls !== undefined || foreign) return "model_unavailable";
  // These are also named in passing, so that some statuses take precedence.
  const inPassing = kind === "rate" || kind === "busy" || kind === "fault";
  if (kind !== undefined && !inPassing) return CAUSES[kind].reason;
  if ((status === 401 || status === 403) && kind !== "rate") return "model_auth";
  if (status === 404 && kind !== "rate" && kind !== "busy") return "model_not_found";
  if (status === 429 || kind === "rate") return "model_rate_limited";
  if (isBroken) return "model_stream_broken";
  if (kind !== undefined) return CAUSES[kind].reason;
  if (status === 408 || (status ?? 0) >= 500) return "model_unavailable";
  if (status !== undefined || namesRequest) return "model_error";
  const isUnreached = network !== undefined || timedOut || CONNECTION_TEXT.test(text);
  return inStream || isUnreached ? "model_unavailable" : "model_error";
}

/** Outlines of errors. Those of streams are named in `stream-guard.ts`; clients read no other JSON than events unseen. */
const BROKEN =
  /^(?:ModelStreamBrokenError|SyntaxError) |: terminated$|premature close|unexpected end of (?:json|stream)/i;
const ABORTED = /^(?:Model)?AbortError | APIUserAbortError:|: (?:Request was aborted\.|AbortError)$/;
const CONNECTION_TEXT =
  /^connection error|fetch failed|bad port|unknown scheme|socket hang up|getaddrinfo|network error/i;
const NETWORK_CODE =
  /^(?:ECONN(?:REFUSED|RESET|ABORTED)|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EPIPE|ETIMEDOUT|UND_ERR_)/;
/** The other end spoke no TLS, or its certificate is not trusted. */
const TLS_CODE = /^(?:CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_|ERR_SSL_|EPROTO)/;

/** The error and its causes, outermost first. */
export function errorCauses(error: unknown): object[] {
  const chain: object[] = [];
  let link = error;
  while (isObject(link) && !chain.includes(link) && chain.length < 8) {
    chain.push(link);
    link = memberOf(link, "cause");
  }
  return chain;
}

const isNumber = (value: unknown): value is number => typeof value === "number";

export const isRefusalStatus = (status: number): boolean => status >= 400 && status < 600;

const className = (link: object): string => String(Reflect.get(Object(link.constructor), "name") ?? "");

/** An error, the provider's answer in it, and the error in that. */
const errorLayers = (link: object): unknown[] => {
  const answer = memberOf(link, "error");
  return [link, answer, memberOf(answer, "error")];
};

/** Every code and type that an error carries: providers spread them over several fields, Google over its details. */
function errorCodes(layers: readonly unknown[]): string[] {
  const members = ["code", "type", "lc_error_code", "name", "status", "reason", "quotaId"];
  const details = layers
    .flatMap((layer) => [memberOf(layer, "details"), memberOf(layer, "errorDetails")])
    .flat();
  const parts = [...layers, ...details].flatMap((part) => [part, ...[memberOf(part, "violations")].flat()]);
  const codes = parts.flatMap((part) => members.map((name) => memberOf(part, name)));
  // Longer words are not codes.
  return codes
    .filter((code) => typeof code === "string" || isNumber(code))
    .map((code) => headOf(String(code), 200));
}

/** The message of the provider's answer when there is one, else of the innermost error that has any. */
function providerText(error: unknown, chain: readonly object[]): string {
  const answers = chain.map((link) => {
    const [, answer, inner] = errorLayers(link);
    const words = textMemberOf(inner, "message") || textMemberOf(answer, "message");
    // OpenRouter adds the provider's own words.
    const raw = textMemberOf(memberOf(inner ?? answer, "metadata"), "raw");
    return words && raw ? `${words}: ${raw}` : words;
  });
  const said = answers.find(Boolean);
  if (said !== undefined) return beginningOf(said);
  const innermost = chain.map((link) => textMemberOf(link, "message")).findLast(Boolean);
  // LangChain adds an address.
  const [own = ""] = beginningOf(innermost ?? (typeof error === "string" ? error : "")).split(
    "Troubleshooting URL: ",
    1,
  );
  return own.trimEnd();
}

const findErrorCode = (chain: readonly object[], pattern: RegExp): string | undefined =>
  chain.map((link) => textMemberOf(link, "code") ?? "").find((code) => pattern.test(code));

/** The token counts in a provider's words, by the forms of such texts. */
function toldCounts(error: unknown) {
  const { text } = failureFacts(error);
  const tokens = (digits = ""): number => Number(digits.replaceAll(",", ""));
  return TOLD_COUNTS.flatMap((patterns) => {
    let rest = text;
    const named: Record<string, string> = {};
    // Each is looked for behind the one before.
    for (const pattern of patterns) {
      const found = pattern.exec(rest);
      if (found === null) return [];
      Object.assign(named, found.groups);
      rest = rest.slice(found.index + found[0].length);
    }
    const { request, window, answer = "0" } = named;
    return { request: tokens(request), window: tokens(window), answer: tokens(answer) };
  });
}

/** Part of a refused request that would have fitted, if the provider's words reveal it; else undefined. */
export const fittingPart = (error: unknown): number | undefined =>
  toldCounts(error)
    .map(({ request, window, answer }) => (window - answer) / request)
    .find((part) => part > 0 && part < 1);

/** The window that the provider's words reveal, in tokens. */
export const toldWindow = (error: unknown): number | undefined =>
  toldCounts(error).find(({ window }) => window >= 1024)?.window;
