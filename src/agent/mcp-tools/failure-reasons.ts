/** Reasons why another MCP server cannot be used, one text each, without secrets, host paths and stacks. */
import type { Clock } from "../../core/clock.ts";
import { codeOf, errorMessage } from "../../core/errors.ts";
import type { Environment } from "../models/choose.ts";
import { errorCauses } from "../models/failure.ts";
import type { Redactor } from "./redactor.ts";
import texts from "./texts.json" with { type: "json" };

/** A server cannot be used now; the message is for logs, people and models. */
export class McpUnavailableError extends Error {
  override readonly name: string = "McpUnavailableError";
}

/** Texts for errors before a request was sent, then of processes, connections and the protocol, and for statuses. */
const UNREACHABLE: Readonly<Record<string, string>> = texts.unreachable;
const FAILURE_TEXTS: Readonly<Record<string, string>> = { ...UNREACHABLE, ...texts.failures };
const STATUSES: Readonly<Record<string, string>> = texts.statuses;

/** Codes of OpenSSL and Node for a certificate that is not accepted. */
const CERTIFICATE = /^(?:CERT_|ERR_TLS_CERT|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;

/** Describes for people and models why a server could not be used. */
export function describeServerFailure(error: unknown, redactor: Redactor, env: Environment = {}): string {
  for (const link of errorChain(error)) {
    if (link instanceof McpUnavailableError) return link.message;
    const status = transportStatus(link);
    if (status !== undefined && status < 400)
      return "it redirects to another address; configure that address";
    if (status !== undefined) {
      const body: unknown = Reflect.get(Object(Reflect.get(link, "data")), "text");
      const said = typeof body === "string" && !/<\w/.test(body) ? redactor.reason(body) : "";
      return STATUSES[status] ?? `it answered with HTTP ${status}${said && `: ${said}`}`;
    }
    const code = knownCode(link);
    if (code in UNREACHABLE) {
      // Node uses a proxy only if it is configured to.
      const proxy = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"].find((name) => env[name]);
      const isUnused = proxy !== undefined && env["NODE_USE_ENV_PROXY"] !== "1";
      const hint = `. ${proxy} is set; Node uses it with NODE_USE_ENV_PROXY=1, from 22.21 on`;
      return `${FAILURE_TEXTS[code]}${isUnused ? hint : ""}`;
    }
    if (code in FAILURE_TEXTS) return String(FAILURE_TEXTS[code]);
    if (code !== "")
      return `its certificate is not trusted (${code}); correct it, or set NODE_EXTRA_CA_CERTS`;
  }
  return redactor.reason(errorMessage(error));
}

const errorChain = (error: unknown): Error[] => errorCauses(error).filter((link) => link instanceof Error);

/** The status in an error of a transport; the older one has it in its code or in its text. */
function transportStatus(error: Error): number | undefined {
  const code: unknown = error.message.startsWith("SSE error") ? Reflect.get(error, "code") : undefined;
  const text = /^Error POSTing to endpoint \(HTTP (\d{3})\)/.exec(error.message)?.[1];
  const status = Number(Reflect.get(error, "status") ?? code ?? text);
  return status >= 300 && status < 600 ? status : undefined;
}

/** The HTTP status that an error, or one of its causes, is about. */
export const findHttpStatus = (error: unknown): number | undefined =>
  errorChain(error)
    .map(transportStatus)
    .find((status) => status !== undefined);

/** A code that has a text, or "". Event sources keep only the text of an error, which names its code. */
function knownCode(error: Error): string {
  const code = codeOf(error) ?? "";
  if (code in FAILURE_TEXTS || CERTIFICATE.test(code)) return code;
  return Object.keys(UNREACHABLE).find((known) => error.message.includes(known)) ?? "";
}

/** True if no other way of asking the server can help: it cannot be reached, or refuses this client. */
export function isFinal(error: unknown): boolean {
  const status = findHttpStatus(error);
  if (status !== undefined) return REFUSALS.has(status);
  return errorChain(error)
    .map(knownCode)
    .some((code) => code in UNREACHABLE || CERTIFICATE.test(code));
}

/** Statuses that refuse the client, whatever it asked. */
export const REFUSALS: ReadonlySet<number> = new Set([401, 403, 407, 429]);

/** Picks out of the last words of a process the lines about errors, else its last lines. */
export function lastWords(stderr: string): string {
  const stack = /^\s+at |^Node\.js v\d|^node:internal|^\s*throw |^\s*File "|^Traceback /;
  const error = /error|exception|fatal|cannot|failed|missing|required|not found|denied|no such/i;
  const folders = /(?:file:\/\/|\b[A-Za-z]:(?=[\\/]))?(?<![\w.:/])[\\/](?:[^\s\\/'":,;()]+[\\/])+/g;
  const lines = stderr.split(/[\r\n]+/).filter((line) => /\w/.test(line) && !stack.test(line));
  const errors = lines.filter((line) => error.test(line));
  const chosen = (errors.length > 0 ? errors : lines).slice(-2).map((line) => line.trim());
  return chosen.join(" ").replace(folders, "…/");
}

/**
 * The pause between attempts to connect to a server that failed, so that it is not asked by each use of its tools.
 * `clock`: for durations.
 */
export function retryPause(clock: Clock) {
  let last: { failures: number; until: number; reason: unknown } | undefined;
  return {
    /** Begins or lengthens the pause. A server that wants a log-in gets none: the log-in may come from any process. */
    failed(reason: unknown): void {
      const failures = (last?.failures ?? 0) + 1;
      const until = clock() + Math.min(1000 * 2 ** (failures - 1), 60_000);
      last = findHttpStatus(reason) === 401 ? undefined : { failures, until, reason };
    },
    end: (): void => void (last = undefined),
    /** The last failure; `undefined` if an attempt may be made now. */
    problem(reasonOf: (error: unknown) => string): McpUnavailableError | undefined {
      const { until = 0, reason: cause } = last ?? {};
      return until <= clock() ? undefined : new McpUnavailableError(reasonOf(cause), { cause });
    },
  };
}
