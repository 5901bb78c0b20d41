import fc from "fast-check";
import { expect, it } from "vitest";
import { offeredName } from "../../../src/agent/mcp-tools/server-config.ts";

const server = fc
  .stringMatching(/^[A-Za-z0-9](?:(?:_?[A-Za-z0-9-]){0,12})$/)
  .filter((name) => !name.endsWith("_"));
const tool = fc.oneof(fc.string({ minLength: 1, maxLength: 90 }), fc.stringMatching(/^[a-z_.]{1,6}$/));

it("makes names that every provider takes and that never meet", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.tuple(server, tool), { selector: String }), (pairs) => {
      const keys = new Set(pairs.map((pair) => JSON.stringify(pair)));
      const names = pairs.map(([from, name]) => offeredName(from, name));
      for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      expect(new Set(names).size).toBe(keys.size);
    }),
  );
});

it("keeps plain names as they are", () => {
  expect(offeredName("git_hub", "create_issue")).toBe("git_hub__create_issue");
  expect(offeredName("files", "fs.read")).toMatch(/^files__fs_read_[0-9a-f]{8}$/);
});
