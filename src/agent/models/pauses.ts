/** Reads how long a provider asks to wait before the next request: in headers, in members of its answer, or in words. */
import { memberOf, recordOf } from "../../core/unknown.ts";

/**
 * The pause that a refusal with these words asks for, in ms. `layers`: objects of the answer. `isLimited`: a limit
 * caused the refusal; the reset times of limits are ignored otherwise.
 */
export function askedPause(
  text: string,
  headers: ReadonlyMap<string, string>,
  layers: readonly unknown[],
  isLimited: boolean,
): number | undefined {
  const clock = Date.parse(headers.get("date") ?? "");
  const now = Number.isFinite(clock) ? clock : Date.now();
  const milliseconds = (value: unknown) =>
    typeof value === "number" || typeof value === "string" ? `${value}ms` : undefined;
  const members = layers.flatMap((layer) => [layer, memberOf(layer, "metadata")]);
  const details = layers.flatMap((layer) => [memberOf(layer, "details"), memberOf(layer, "errorDetails")]);
  const limits = [...headers].filter(
    ([name]) => isLimited && name.includes("ratelimit") && name.includes("reset"),
  );
  const isUsedUp = ([name]: readonly [string, string]): boolean =>
    headers.get(name.replace("reset", "remaining"))?.trim() === "0";
  const until = ([, value]: readonly [string, string]) => waitingMs(value, now) ?? [];
  const usedUp = limits.filter(isUsedUp).flatMap(until);
  const named = (name: string): unknown[] => members.map((member) => memberOf(member, name));
  /** The ways to ask for a pause, the plainest first. The first usable value counts. */
  const ways: readonly unknown[] = [
    milliseconds(headers.get("retry-after-ms")), // OpenAI, Azure
    headers.get("retry-after"), // RFC 9110
    ...named("retry_after_ms").map(milliseconds),
    ...named("retry_after"),
    ...named("retry_after_seconds"), // OpenRouter
    ...named("resets_in_seconds"), // ChatGPT
    ...details.flat().map((detail) => memberOf(detail, "retryDelay")), // Google's RetryInfo
    ASKED.exec(text)?.groups?.["pause"], // OpenAI, Groq, Azure, Gemini
    // The longest of the limits that are used up; the shortest of all if none is known to be.
    milliseconds(usedUp.toSorted((a, b) => b - a)[0]),
    milliseconds(limits.flatMap(until).toSorted((a, b) => a - b)[0]),
  ];
  return ways.map((value) => waitingMs(value, now)).find((pause) => pause !== undefined);
}

const ASKED =
  /\b(?:again|retry(?:ing)?|wait|available|resets?)\b(?: (?:again|in|after|for|about|at least|approximately|your request)){0,4}:? (?<pause>(?:\d{1,9}(?:\.\d{1,12})? ?(?:milliseconds?|ms|sec(?:ond)?s?|min(?:ute)?s?|h(?:ou)?rs?|days?|[smhd])(?![a-z]),?(?: and)? ?){1,4})/i;

/**
 * Milliseconds until a time or for a duration: `1m2.5s`, seconds, seconds or milliseconds since 1970, or a date. Returns
 * undefined if it is not in the future, or longer than a day.
 */
function waitingMs(value: unknown, now: number): number | undefined {
  const text = typeof value === "number" ? String(value) : value;
  if (typeof text !== "string") return undefined;
  const parts = /^\d+(?:\.\d+)? ?[a-z]/i.test(text.trim())
    ? text.matchAll(/(\d{1,9}(?:\.\d{1,12})?) ?(ms|mil|[smhd])/gi)
    : [];
  const units = new Map(Object.entries({ ms: 1, mil: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }));
  const durations = [...parts].map(
    ([, count, unit = ""]) => Number(count) * (units.get(unit.toLowerCase()) ?? 0),
  );
  const number = Number(text);
  const seconds = number > 1e9 ? number * 1000 - now : number * 1000;
  const time = Number.isNaN(number) ? Date.parse(text) - now : number > 1e11 ? number - now : seconds;
  const pause = durations.length > 0 ? durations.reduce((sum, part) => sum + part) : time;
  return pause > 0 && pause <= 86_400_000 ? Math.ceil(pause) : undefined;
}

/** The headers of errors and of answers within them, by their names in lower case; the outermost count. */
export function answerHeaders(chain: readonly object[], layers: readonly unknown[]) {
  const carriers = [...chain, ...layers.map((layer) => memberOf(layer, "metadata"))].toReversed();
  const entries = carriers.flatMap((carrier) => {
    const headers = memberOf(carrier, "headers");
    return headers instanceof Headers ? [...headers] : Object.entries(recordOf(headers));
  });
  return new Map(entries.map(([name, value]) => [name.toLowerCase(), String(value)] as const));
}
