import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BackendSubject, BACKEND_SUITES, backendContract } from "../../../testing/backend-contract.ts";
import type { Suite } from "../../../testing/suite.ts";

/** A backend to test, and what its tests need of this machine. */
export interface Subject extends BackendSubject {
  /** The program of the machine that it needs; see test/support/programs.ts. */
  tag?: string;
  /** Starts what all its backends share, before the first case, and gives what ends it after the last one. */
  start?(): Promise<() => Promise<void>>;
}

export function runContract(subject: Subject, suites: readonly Suite[] = BACKEND_SUITES): void {
  const { name, tag, start } = subject;
  describe(name, tag === undefined ? {} : { tags: tag }, () => {
    let end: (() => Promise<void>) | undefined;
    beforeAll(async () => {
      end = await start?.();
    });
    afterAll(() => end?.());
    backendContract({ describe: (_name, define) => define(), it, expect }, subject, suites);
  });
}
