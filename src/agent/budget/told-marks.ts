/** Reports to the model how much of a limit is used, before it is reached. */
import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { copyMessage, textOf, withEnd } from "../messages/messages.ts";
import { type Reached, describeLimit } from "./limits.ts";

export interface Used {
  limit: Reached;
  /** From 0 to 1. */
  share: number;
}

/** Percentages of a limit that are reported to the model, with the advice at each. */
const USE_MARKS: ReadonlyArray<readonly [percent: number, advice: string]> = [
  [50, ""],
  [80, " Do what matters most first."],
  [95, " Finish now, and say what is done, what is not done, and what is not verified."],
];

/** Returns the highest mark reported in a thread; 0 if there is none. */
export const toldMark = (messages: readonly BaseMessage[]): number =>
  messages
    .filter((message) => ToolMessage.isInstance(message))
    .flatMap((message) => [...textOf(message).matchAll(/\n\n\[(\d+) % of the limit of [^\]\n]* used\./g)])
    .reduce((highest, [, percent]) => Math.max(highest, Number(percent)), 0);

/** The highest mark that is passed; 0: none. */
export const passedMark = ({ share }: Used): number =>
  USE_MARKS.findLast(([percent]) => share * 100 >= percent)?.[0] ?? 0;

/** The newest result of a tool, which the model has not seen yet, with the note; undefined after other messages. */
export function withMark(messages: readonly BaseMessage[], { limit }: Used, mark: number) {
  const newest = messages.at(-1);
  if (!ToolMessage.isInstance(newest)) return undefined;
  const advice = USE_MARKS.find(([percent]) => percent === mark)?.[1] ?? "";
  const note = `[${mark} % of ${describeLimit(limit)} is used.${advice}]`;
  return copyMessage(newest, { content: withEnd(newest.content, note) });
}
