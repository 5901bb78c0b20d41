import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Backend } from "../../../src/backends/backend.ts";

/** A backend to test, made anew for every case. */
export interface Subject {
  name: string;
  make(): Promise<Made> | Made;
  /** Whether changes are returned as `filesUpdate` records. */
  keepsFilesInState: boolean;
  /** Cases that do not hold for this backend, and why. */
  /** The program of the machine that it needs; see test/support/programs.ts. */
  tag?: string;
  /** Starts what all its backends share, before the first case, and gives what ends it after the last one. */
  start?(): Promise<() => Promise<void>>;
  skip?: readonly { reason: string; cases: readonly string[] }[];
}

export interface Made {
  backend: Backend;
  /** What stands before every path; empty when the backend's root is `/`. */
  prefix?: string;
  dispose?(): void | Promise<void>;
}

/** What a case works with. */
export interface Bench {
  backend: Backend;
  /** The path of this subject for a path from its root. */
  at: (path: string) => string;
  /** Puts a file there, whatever its name; text as UTF-8. */
  put: (path: string, content: string | Uint8Array) => Promise<void>;
  keepsFilesInState: boolean;
}

export interface Suite {
  /** The port method, or what the suite is about when it concerns several. */
  subject: string;
  cases: Readonly<Record<string, (bench: Bench) => Promise<void>>>;
}

export const caseName = (suite: Suite, name: string): string => `${suite.subject}: ${name}`;

/** Registers every case of every suite for a subject; a skip that names no case fails. */
export function runContract(subject: Subject, suites: readonly Suite[]): void {
  const skips = new Map(
    (subject.skip ?? []).flatMap(({ reason, cases }) => cases.map((name) => [name, reason])),
  );
  describe(subject.name, subject.tag === undefined ? {} : { tags: subject.tag }, () => {
    let made: Made;
    let bench: Bench;
    let end: (() => Promise<void>) | undefined;
    beforeAll(async () => {
      end = await subject.start?.();
    });
    afterAll(() => end?.());
    beforeEach(async () => {
      made = await subject.make();
      bench = benchFor(made, subject);
    });
    afterEach(async () => {
      await made.dispose?.();
    });
    for (const suite of suites) {
      for (const [name, run] of Object.entries(suite.cases)) {
        const full = caseName(suite, name);
        const reason = skips.get(full);
        if (reason === undefined) it(full, () => run(bench));
        else it.skip(`${full} (${reason})`, () => {});
      }
    }
    it("skips only cases that exist", () => {
      const known = suites.flatMap((suite) => Object.keys(suite.cases).map((name) => caseName(suite, name)));
      expect([...skips.keys()].filter((name) => !known.includes(name))).toEqual([]);
    });
  });
}

function benchFor({ backend, prefix = "" }: Made, { keepsFilesInState }: Subject): Bench {
  const at = (path: string): string => (path === "/" ? prefix || "/" : prefix + path);
  return {
    backend,
    at,
    keepsFilesInState,
    put: async (path, content) => {
      const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
      const answers = await backend.uploadFiles?.([[at(path), bytes]]);
      expect(answers).toMatchObject([{ path: at(path), error: null }]);
    },
  };
}

/** The text of a page; fails the case when it is none. */
export function textOf(result: { content?: string | Uint8Array; error?: string }): string {
  expect(result.error).toBeUndefined();
  expect(typeof result.content).toBe("string");
  return result.content as string;
}

export const pathsOf = (result: { files?: { path: string }[] }): string[] | undefined =>
  result.files?.map((file) => file.path);
