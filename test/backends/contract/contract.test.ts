import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Backend } from "../../../src/backends/backend.ts";
import { runContract, type Suite } from "./contract.ts";
import { SUBJECTS } from "./subjects.ts";
import { SUITES } from "./suites.ts";

/** Every method of the port; the type makes a forgotten one an error. */
const METHODS: Record<
  Exclude<keyof Backend, "capabilities" | "lifetimeOf" | "followLinks" | "roots">,
  true
> = {
  ls: true,
  read: true,
  readRaw: true,
  grep: true,
  glob: true,
  write: true,
  edit: true,
  delete: true,
  uploadFiles: true,
  downloadFiles: true,
};

describe("the contract", () => {
  it("has a suite for every method of the port", () => {
    const subjects = SUITES.map((suite) => suite.subject);
    expect(Object.keys(METHODS).filter((method) => !subjects.includes(method))).toEqual([]);
  });

  it("runs every suite there is", async () => {
    const helpers = /\.test\.ts$|subjects\.ts$|^contract\.ts$|^suites\.ts$/;
    const files = readdirSync(import.meta.dirname).filter((file) => !helpers.test(file));
    const exported: Suite[] = [];
    for (const file of files) {
      // Suite files export suites and nothing else.
      const module = (await import(join(import.meta.dirname, file))) as Record<string, Suite>;
      exported.push(...Object.values(module));
    }
    expect(exported.length).toBeGreaterThan(0);
    expect(exported.filter((suite) => !SUITES.includes(suite))).toEqual([]);
    expect(exported).toHaveLength(SUITES.length);
  });
});

for (const subject of SUBJECTS) runContract(subject, SUITES);
