import fc from "fast-check";
import { expect, it } from "vitest";
import { expandServer, offeredName } from "../../../src/agent/mcp-tools/server-config.ts";

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

it("values of a server count as secrets, except plain words and paths under harmless names", () => {
  const secretsOf = (env: Record<string, string>) =>
    expandServer({ command: "x", args: ["${FROM_HERE}"], env } as never, { FROM_HERE: "s3cr3t+value" })
      .secrets;
  expect(secretsOf({})).toEqual(["s3cr3t+value"]);
  const plain = { REGION: "eu-west-1", MODE: "production", PORT: "8080", FOLDER: "/srv/data files/x" };
  expect(secretsOf(plain)).toEqual(["s3cr3t+value"]);
  const secret = {
    API_KEY: "production",
    DB_PASSWORD: "swordfish",
    AUTH_FILE: "/srv/x",
    URL: "https://u:p@h",
  };
  expect(secretsOf(secret)).toEqual(["s3cr3t+value", ...Object.values(secret)]);
});
