import type { Backend } from "../src/backends/backend.ts";

/** The checks that the suites use of a runner's `expect`. */
export interface Matchers {
  toBe(expected: unknown): void;
  toEqual(expected: unknown): void;
  toMatchObject(expected: object): void;
  toMatch(expected: RegExp | string): void;
  toContain(expected: unknown): void;
  toHaveLength(length: number): void;
  toBeLessThan(limit: number): void;
  toBeNull(): void;
  toBeUndefined(): void;
  toBeTruthy(): void;
}

/** `expect` of Vitest or Jest; the hint names the value in a failure, where the runner takes one. */
export type Expect = (actual: unknown, hint?: string) => Matchers;

/** Resources of one case. */
export interface Bench {
  backend: Backend;
  expect: Expect;
  /** Turns a path from the root of the tested backend into the path that its methods take. */
  at: (path: string) => string;
  /** Uploads a file, text as UTF-8. */
  put: (path: string, content: string | Uint8Array) => Promise<void>;
  keepsFilesInState: boolean;
}

export interface Suite {
  /** The method of the port, or the property when it concerns several methods. */
  subject: string;
  cases: Readonly<Record<string, (bench: Bench) => Promise<void>>>;
}

/** Lines in UTF-8 and in Latin-1. */
export const MIXED_BYTES = Uint8Array.from(Buffer.from("636166c3a90ae90a", "hex"));

/** A program in CP949. */
export const KOREAN = "// 사용자 목록을 불러온다\nint load() { return 0; }\n";
export const KOREAN_BYTES = Uint8Array.from(
  Buffer.from(
    "2f2f20bbe7bfebc0da20b8f1b7cfc0bb20bad2b7afbfc2b4d90a696e74206c6f61642829207b2072657475726e20303b207d0a",
    "hex",
  ),
);

/** The text as files in both orders of bytes, with the mark. */
export function inUtf16(text: string): [name: string, bytes: Uint8Array][] {
  const bytes = Buffer.from(`\ufeff${text}`, "utf16le");
  return [
    ["/little.log", Uint8Array.from(bytes)],
    ["/big.log", Uint8Array.from(bytes.swap16())],
  ];
}

/** The text of a page; throws when the result is a failure or bytes. */
export function pageText(result: { content?: string | Uint8Array; error?: string }): string {
  if (typeof result.content === "string") return result.content;
  throw new Error(`There is no text: ${result.error ?? "the content is bytes"}`);
}

export const listedPaths = (result: { files?: { path: string }[] }): string[] | undefined =>
  result.files?.map((file) => file.path);
