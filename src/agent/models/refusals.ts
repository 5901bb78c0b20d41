/** Puts the words of a provider that refuses a request where clients look for them: they read `error.message` only. */
import { isRecord, parsedJson, recordOf } from "../../core/unknown.ts";

/** A refusal, as clients read it. */
export interface Refusal {
  /** The status that its body names. */
  status: number | undefined;
  body: string;
}

/** Reads the body of an answer; `undefined`: it is not JSON, or does not say why a request was refused. */
export function refusalIn(text: string): Refusal | undefined {
  const value = parsedJson(text);
  // Gemini puts its refusal into a list.
  const given = recordOf([value].flat()[0]);
  const error = recordOf(given["error"]);
  const message = wordsIn(given);
  if (message === undefined) return undefined;
  const codes = [error["code"], given["code"], given["status"]].map(Number);
  const status = codes.find((code) => Number.isInteger(code) && code >= 400 && code < 600);
  const isUsual = value === given && error["message"] === message;
  return { status, body: isUsual ? text : JSON.stringify({ error: { ...given, ...error, message } }) };
}

/** Members in which gateways and model servers say why, the plainest first. */
const REASONS = ["message", "detail", "msg", "error"];

function wordsIn(value: unknown): string | undefined {
  if (typeof value === "string") return value.trim() === "" ? undefined : value;
  if (Array.isArray(value)) return value.map(wordsIn).find((words) => words !== undefined);
  if (!isRecord(value)) return undefined;
  const reasons = isRecord(value["error"]) ? REASONS.toReversed() : REASONS;
  return reasons.map((name) => wordsIn(value[name])).find((words) => words !== undefined);
}
