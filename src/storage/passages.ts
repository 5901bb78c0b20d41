import { headOf } from "../core/text.ts";

/** Characters of a passage, at most: what services read of one text, in any script. */
const PASSAGE_LENGTH = 1500;
/** Passages of one item. What is beyond them is found by its words only. */
const MAX_PASSAGES = 40;
/** Characters of an item that its passages can hold. */
export const PASSAGES_LENGTH: number = PASSAGE_LENGTH * MAX_PASSAGES;

/**
 * The parts of an item that get a vector each, cut between paragraphs, lines or words where that is possible.
 * Each begins with the key, which most often says what the item is about.
 */
export function passagesOf(key: string, text: string): string[] {
  const passages: string[] = [];
  let rest = text.trim();
  while (rest !== "" && passages.length < MAX_PASSAGES) {
    const passage = firstPassage(rest);
    passages.push(`${key}\n${passage.trim()}`);
    rest = rest.slice(passage.length).trimStart();
  }
  return passages.length === 0 ? [key] : passages;
}

function firstPassage(text: string): string {
  const head = headOf(text, PASSAGE_LENGTH);
  if (head.length === text.length) return head;
  for (const border of ["\n\n", "\n", " "]) {
    const at = head.lastIndexOf(border);
    if (at > PASSAGE_LENGTH / 2) return head.slice(0, at);
  }
  return head;
}
