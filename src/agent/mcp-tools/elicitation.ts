/** Questions that other MCP servers ask a person during a call. */
import type { ElicitResult, InputRequiredResult } from "@modelcontextprotocol/client";
import { cutMiddle } from "../../core/text.ts";
import { flatFields } from "../../tools/check-answer.ts";
import { MOST_QUESTIONS, TooManyQuestions } from "../../tools/question-quota.ts";
import type { AskPerson } from "../../tools/tool.ts";
import type { Answer, Question } from "../../tools/request.ts";
import { recordOf, parsedUrl } from "../../core/unknown.ts";

/** Reads a question; undefined if no form can show it, or its address is none of the web. */
export function parseElicitation(server: string, params: unknown): Question | undefined {
  const { mode, message, url, requestedSchema } = recordOf(params);
  const text =
    typeof message === "string" && message.trim() !== "" ? message : "The server asks for your input.";
  const common = { kind: "elicitation", server, message: cutMiddle(text, 4000) } as const;
  if (mode === "url" || (requestedSchema === undefined && url !== undefined)) {
    const isOfWeb = typeof url === "string" && /^https?:$/.test(parsedUrl(url)?.protocol ?? "");
    return isOfWeb ? { ...common, mode: "url", url } : undefined;
  }
  const fields = flatFields(recordOf(requestedSchema));
  return fields && { ...common, mode: "form", fields };
}

/** The answer as the server gets it. Silence is neither a yes nor a no. */
export function elicitResult(answer: Answer | undefined): ElicitResult {
  if (answer?.type === "fields") return { action: "accept", content: answer.values };
  if (answer?.type === "opened") return { action: "accept" };
  return { action: answer?.type === "decline" ? "decline" : "cancel" };
}

/** The request of a server to ask a person, before it carries out a call. */
export type InputRequired = Pick<InputRequiredResult, "inputRequests" | "requestState"> & {
  /** The call was refused until the person has opened addresses, and is then made as if it were the first. */
  isRefusal?: true;
};

/** The addresses that a person has to open before a call, if this error names them. */
export function refusedUntilOpened(error: unknown): InputRequired | undefined {
  const { code, data } = recordOf(error);
  const listed = [recordOf(data)["elicitations"] ?? []].flat();
  // Servers of 2025-11-25 answer with this code.
  if (code !== -32_042 || listed.length === 0) return undefined;
  const requests = listed.map((params, index) => [
    String(index),
    { method: "elicitation/create", params: { mode: "url", ...recordOf(params) } },
  ]);
  // Written by another server; `answerInputRequests` reads them as such.
  return {
    isRefusal: true,
    inputRequests: Object.fromEntries(requests) as InputRequired["inputRequests"] & {},
  };
}

/** The answers with which a call is made again. */
export interface Continuation {
  inputResponses: Record<string, ElicitResult>;
  requestState?: string;
}

/**
 * Asks a person all that the server asks. Requests of another kind, and those that no form can show, are cancelled.
 *
 * @throws TooManyQuestions
 */
export async function answerInputRequests(
  server: string,
  { inputRequests = {}, requestState }: InputRequired,
  ask: AskPerson | undefined,
): Promise<Continuation> {
  // Nobody answers some of them in vain.
  if (Object.keys(inputRequests).length > MOST_QUESTIONS.call) throw new TooManyQuestions("call");
  const inputResponses: Record<string, ElicitResult> = {};
  for (const [key, { method, params }] of Object.entries(inputRequests)) {
    const question = method === "elicitation/create" ? parseElicitation(server, params) : undefined;
    inputResponses[key] = elicitResult(question && ask ? await ask(question) : undefined);
  }
  return { inputResponses, ...(requestState === undefined ? {} : { requestState }) };
}
