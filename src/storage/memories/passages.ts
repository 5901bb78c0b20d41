/** Search by meaning: passages of the items' texts, and vectors of those passages. */
import { headOf } from "../../core/text.ts";
import { snippet } from "./text-query.ts";

/** The most characters of a passage; services read that much of one text in any script. */
const PASSAGE_LENGTH = 1500;
/** The most passages of one item; text beyond them is found by its words only. */
const MAX_PASSAGES = 40;
/** The most characters that the passages of one item have together. */
export const PASSAGES_LENGTH: number = PASSAGE_LENGTH * MAX_PASSAGES;

/**
 * The parts of an item that get a vector each, cut between paragraphs, lines or words where that is possible.
 * Each begins with the key, which most often names the item's subject.
 */
export function cutPassages(key: string, text: string): string[] {
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

/** The passage of an item that is most similar to a query. */
export interface NearPassage {
  id: number;
  /** Its index in `cutPassages`. */
  number: number;
  /** Cosine, from -1 to 1. */
  likeness: number;
}

/** One state of an item with the vectors of its passages. */
export interface EmbeddedItem {
  item: UnembeddedItem;
  vectors: readonly (readonly number[])[];
}

export interface UnembeddedItem {
  id: number;
  version: number;
  key: string;
  text: string;
}

/** Time during which no other process takes an item that one has taken, in ms. */
export const CLAIM_MS = 120_000;

/** A vector of length 1: the product of two is their cosine, from -1 to 1. */
export function unitVector(numbers: readonly number[]): Float32Array {
  let squares = 0;
  for (const number of numbers) squares += number * number;
  const length = Math.sqrt(squares) || 1;
  return Float32Array.from(numbers, (number) => number / length);
}

export const vectorBytes = ({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** Returns the dot product of two vectors; undefined if their lengths differ, as those of two models do. */
export function product(wanted: Float32Array, stored: Uint8Array): number | undefined {
  if (stored.byteLength !== wanted.byteLength) return undefined;
  // SQLite's bytes may begin anywhere; floats begin at multiples of their size.
  const aligned = stored.byteOffset % 4 === 0 ? stored : stored.slice();
  const other = new Float32Array(aligned.buffer, aligned.byteOffset, wanted.length);
  let sum = 0;
  for (let index = 0; index < wanted.length; index += 1) sum += (wanted[index] ?? 0) * (other[index] ?? 0);
  return sum;
}

/** Merges several rankings into one: an item that precedes others in more of them comes first. */
export function fuse(lists: readonly (readonly { id: number }[])[]): { id: number; score: number }[] {
  const scores = new Map<number, number>();
  for (const list of lists) {
    for (const [place, { id }] of list.entries())
      scores.set(id, (scores.get(id) ?? 0) + 1 / (60 + place + 1));
  }
  return [...scores].map(([id, score]) => ({ id, score })).sort((a, b) => b.score - a.score);
}

/** Returns the beginning of an item's passage, on one line. */
export const passageStart = (key: string, body: string, number: number): string =>
  snippet((cutPassages(key, body)[number] ?? key).slice(key.length));
