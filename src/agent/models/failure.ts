import { ConfigurationError, RunFailure } from "../../core/errors.ts";
import { beginningOf, oneLine } from "../../core/text.ts";
import { type FailureFacts, failureFacts } from "./failure-facts.ts";

/** Longest part of a provider's own words in a message. */
const QUOTE_LIMIT = 300;

/**
 * The run failure for what a model call threw. `code` is a stable failure reason; the message says what
 * happened and what to do next, quotes the provider where that helps, and holds no key and no stack.
 *
 * Whether the run was cancelled is for the caller to ask its signal: a provider's timeout looks like an
 * abort by its name, and is mapped to `model_unavailable` here.
 */
export function modelFailure(error: unknown, model?: string): RunFailure {
  if (error instanceof RunFailure) return error;
  if (error instanceof ConfigurationError) {
    return new RunFailure("configuration", error.message, { cause: error });
  }
  const facts = failureFacts(error);
  const subject = model === undefined ? "The model" : `The model ${model}`;
  return new RunFailure(facts.reason, TEXTS[facts.reason](subject, facts), { cause: error });
}

const TEXTS: Readonly<Record<FailureFacts["reason"], (subject: string, facts: FailureFacts) => string>> = {
  model_auth: (subject, facts) =>
    `${subject} refused the key${http(facts)}. Check the provider's API key in the server's environment and what it may use.${quote(facts)}`,
  model_not_found: (subject, facts) =>
    `${subject} was not found at its provider${http(facts)}. Check the name after the colon, the endpoint, and that the key may use this model.${quote(facts)}`,
  model_rate_limited: (subject, facts) =>
    facts.quota
      ? `${subject} is refused because the account's quota or credit is used up${http(facts)}. Check the account's billing, or choose another model.${quote(facts)}`
      : `${subject} is rate limited${http(facts)}. Wait${pause(facts)} and continue the run in the same thread, lower the number of parallel subagents, or choose another model.${quote(facts)}`,
  model_unavailable: (subject, facts) =>
    facts.overloaded
      ? `${subject} is overloaded${http(facts)}. Try again later, or choose another model.${quote(facts)}`
      : `${subject} could not be reached: ${unavailable(facts)}${quote(facts)}`,
  model_stream_broken: (subject, facts) =>
    `${subject} stopped in the middle of an answer: ${broken(facts)}. Continue in the same thread; nothing of the broken answer was used.`,
  context_overflow: (subject, facts) =>
    `The conversation is longer than ${lowerFirst(subject)} can read. Start a new thread, split the task, or choose a model with a larger context.${quote(facts)}`,
  model_error: (subject, facts) =>
    `${subject} refused the request${http(facts)}.${quote(facts) || " The provider gave no reason; the server's log has the error."}`,
};

function unavailable(facts: FailureFacts): string {
  if (facts.foreign) {
    return "what answered is no model. Check the configured endpoint, and whether a proxy or a sign-in page is in between.";
  }
  if (facts.tls !== undefined) {
    return `no secure connection could be made (${facts.tls}). Check that the configured endpoint begins with https only if it is one; for a certificate of your own, name its authority in NODE_EXTRA_CA_CERTS.`;
  }
  if (facts.reported) {
    return `its provider answered with an error of its own${http(facts)}. Try again later, or choose another model.`;
  }
  if (facts.network !== undefined) {
    return `the connection failed (${facts.network}). Check the network and the configured endpoint, then try again.`;
  }
  if (facts.timedOut) {
    return "it did not answer in time. Try again later, or choose another model.";
  }
  return "the connection failed. Check the network and the configured endpoint, then try again.";
}

function broken({ silentMs }: FailureFacts): string {
  return silentMs === undefined
    ? "the connection ended before the answer did"
    : `nothing came for ${Math.round(silentMs / 1000)} s`;
}

/** A failure that may pass, in a few words. */
export function problemOf(facts: FailureFacts): string {
  const { reason, network, overloaded, timedOut, silentMs, reported } = facts;
  if (reason === "model_rate_limited") return `model rate limited${http(facts)}`;
  if (reason === "model_stream_broken") {
    return silentMs === undefined ? "model's answer broke off" : "model fell silent in its answer";
  }
  if (overloaded) return `model overloaded${http(facts)}`;
  if (reported) return `model's provider failed${http(facts)}`;
  if (timedOut) return "model did not answer in time";
  return network === undefined ? "model not reachable" : `model not reachable (${network})`;
}

function http({ status }: FailureFacts): string {
  return status === undefined ? "" : ` (HTTP ${status})`;
}

function pause({ retryAfterMs }: FailureFacts): string {
  return retryAfterMs === undefined ? " a little" : ` ${Math.ceil(retryAfterMs / 1000)} s`;
}

function quote({ text }: FailureFacts): string {
  const shown = oneLine(withoutSecrets(text), QUOTE_LIMIT);
  return shown === "" ? "" : ` The provider said: ${shown}`;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/** The beginning of `text` with everything that looks like a key, a token or credentials in an address replaced. */
export function withoutSecrets(text: string): string {
  return beginningOf(text)
    .replace(/\b(?:(?:sk|pk|rk|gsk|xai|key|tok|pplx|csk|fw|hf)[-_]|AIza|AKIA|ASIA)[\w*.-]{8,}/g, "[key]")
    .replace(/\S+/g, (word) => (word.includes("***") ? "[key]" : word))
    .replace(/\b(Bearer|Basic)\s+[\w+/=.-]{8,}/gi, "$1 [key]")
    .replace(
      /\b(api[-_ ]?key(?: provided)?|authorization|token)(["']?\s*[:=]\s*["']?)[^\s"']{8,}/gi,
      "$1$2[key]",
    )
    .replace(/(https?:\/\/)[^\s/@]+@/gi, "$1");
}
