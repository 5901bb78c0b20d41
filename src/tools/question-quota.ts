/** Bounds the questions of other MCP servers: a form has room for several answers, and people have other work. */
import { DeepAgentError } from "../core/errors.ts";
import type { Question } from "./request.ts";
import texts from "./texts.json" with { type: "json" };
import { fill } from "../core/text.ts";

/** Most questions in one call, and in one run with its subagents. docs/questions.md has these numbers. */
export const MOST_QUESTIONS = { call: 5, run: 20 } as const;

/** Another MCP server asks people more than they can be expected to answer. The message follows its name. */
export class TooManyQuestions extends DeepAgentError {
  constructor(place: keyof typeof MOST_QUESTIONS) {
    super("too_many_questions", fill(texts.tooManyQuestions, MOST_QUESTIONS[place], place));
  }
}

/** Counts the questions of one call. @throws TooManyQuestions */
export function questionCounter(): (question: Pick<Question, "kind">) => void {
  let count = 0;
  return ({ kind }) => {
    if (kind !== "elicitation") return;
    count += 1;
    if (count > MOST_QUESTIONS.call) throw new TooManyQuestions("call");
  };
}
