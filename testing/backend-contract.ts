import type { Backend } from "../src/backends/backend.ts";
import { READ_SUITES } from "./read-suites.ts";
import type { Bench, Expect, Matchers, Suite } from "./suite.ts";
import { WRITE_SUITES } from "./write-suites.ts";

export type { Bench, Expect, Matchers, Suite };

/** The functions of a test runner, such as those of Vitest or Jest. */
export interface TestRunner {
  describe(name: string, define: () => void): unknown;
  it: ((name: string, run: () => Promise<void>) => unknown) & {
    skip(name: string, run: () => void): unknown;
  };
  expect: Expect;
}

export interface TestedBackend {
  backend: Backend;
  /** Stands in front of every path, such as `/mnt` for a mounted backend. Default: the root is `/`. */
  prefix?: string;
  /** Called after the case, whether it passed or not. */
  dispose?(): void | Promise<void>;
}

export interface BackendSubject {
  /** The name under which the cases are reported. */
  name: string;
  /** Makes an empty backend; called for every case. */
  make(): Promise<TestedBackend> | TestedBackend;
  /** True if changes are returned as `filesUpdate` records, as backends in a thread's state do. Default false. */
  keepsFilesInState?: boolean;
  /** Cases that do not hold for this backend, by their full names, such as `"ls: …"`, and why. */
  skip?: readonly { reason: string; cases: readonly string[] }[];
}

/** The whole contract: one suite for each method of the port, then those about several methods. */
export const BACKEND_SUITES: readonly Suite[] = [...READ_SUITES, ...WRITE_SUITES];

/**
 * Registers the tests that every backend of this package passes, for a backend of yours.
 *
 * Each case makes a backend of its own. A skip that names no case fails, so that skips cannot go stale.
 */
export function backendContract(
  runner: TestRunner,
  subject: BackendSubject,
  suites: readonly Suite[] = BACKEND_SUITES,
): void {
  const reasons = new Map(
    (subject.skip ?? []).flatMap(({ reason, cases }) => cases.map((name) => [name, reason])),
  );
  const cases = suites.flatMap((suite) =>
    Object.entries(suite.cases).map(([name, run]) => ({ name: `${suite.subject}: ${name}`, run })),
  );
  const runCase = async (run: Suite["cases"][string]): Promise<void> => {
    const made = await subject.make();
    const { backend, prefix = "" } = made;
    const { keepsFilesInState = false } = subject;
    const at = (path: string): string => (path === "/" ? prefix || "/" : prefix + path);
    const put = async (path: string, content: string | Uint8Array): Promise<void> => {
      const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
      if (backend.uploadFiles === undefined) {
        throw new Error(
          `The cases put their files with uploadFiles, which ${subject.name} lacks: add it, or test it over FileStoreBackend.`,
        );
      }
      const answers = await backend.uploadFiles([[at(path), bytes]]);
      runner.expect(answers).toMatchObject([{ path: at(path), error: null }]);
    };
    const { expect: check } = runner;
    // Jest's `expect` refuses a second argument. Vitest's has `soft`.
    const expect: Expect = (actual, hint) =>
      hint !== undefined && "soft" in check ? check(actual, hint) : check(actual);
    try {
      await run({ backend, at, put, keepsFilesInState, expect });
    } finally {
      await made.dispose?.();
    }
  };
  runner.describe(subject.name, () => {
    for (const { name, run } of cases) {
      const reason = reasons.get(name);
      if (reason === undefined) runner.it(name, () => runCase(run));
      else runner.it.skip(`${name} (${reason})`, () => {});
    }
    runner.it("skips only cases that exist", async () => {
      const known = new Set(cases.map(({ name }) => name));
      runner.expect([...reasons.keys()].filter((name) => !known.has(name))).toEqual([]);
    });
  });
}
