import { expect, it } from "vitest";
import type { Backend } from "../../../src/backends/backend.ts";
import { BACKEND_SUITES } from "../../../testing/backend-contract.ts";
import { runContract } from "./contract.ts";
import { SUBJECTS } from "./subjects.ts";

/** Every method of the port; the type makes a forgotten one an error. */
const METHODS: Record<
  Exclude<keyof Backend, "capabilities" | "lifetimeOf" | "followLinks" | "refusal" | "roots">,
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

it("the contract has a suite for every method of the port", () => {
  const subjects = BACKEND_SUITES.map((suite) => suite.subject);
  expect(Object.keys(METHODS).filter((method) => !subjects.includes(method))).toEqual([]);
});

for (const subject of SUBJECTS) runContract(subject);
