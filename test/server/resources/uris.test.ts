import * as fc from "fast-check";
import { expect, test } from "vitest";
import { decodeOnce, fileUri, runFileUri, runIdOf, runUri } from "../../../src/server/contracts/uris.ts";

const segment = fc
  .string({ minLength: 1, unit: "grapheme" })
  .filter((text) => !text.includes("/") && text !== "." && text !== "..");
const path = fc.array(segment, { minLength: 1, maxLength: 5 }).map((segments) => `/${segments.join("/")}`);

test("a path survives its URI, the parsing of the URI and one decoding", () => {
  fc.assert(
    fc.property(path, (original) => {
      const { href } = new URL(fileUri(original));
      expect(decodeOnce(href.slice("deepagent://files".length))).toBe(original);
      const inRun = new URL(runFileUri("run_1", original)).href;
      expect(decodeOnce(inRun.slice("deepagent://runs/run_1/files".length))).toBe(original);
      expect(runIdOf(inRun)).toBe("run_1");
    }),
  );
});

test("a path is decoded once only", () => {
  expect(decodeOnce("%252e%252e%252fetc")).toBe("%2e%2e%2fetc");
  expect(decodeOnce("%zz")).toBeUndefined();
});

test("a run is found in its own URIs and nowhere else", () => {
  fc.assert(fc.property(segment, (id) => runIdOf(runUri(id)) === id));
  expect(runIdOf(`${runUri("run_1")}/report`)).toBe("run_1");
  for (const uri of ["deepagent://files/runs/x", "deepagent://runs/", "other://runs/run_1", "run_1"]) {
    expect(runIdOf(uri)).toBeUndefined();
  }
});
