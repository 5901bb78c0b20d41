import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { z } from "zod";
import descriptions from "../../src/config/descriptions.json" with { type: "json" };
import { ConfigSchema } from "../../src/config/schema.ts";

it("has a JSON schema that is shipped, and asks for no setting", () => {
  const text = readFileSync("config.schema.json", "utf8");
  const schema = z.fromJSONSchema(JSON.parse(text));
  expect(schema.safeParse({ $schema: "x", model: "offline", limits: { parallelTools: 3 } }).success).toBe(
    true,
  );
  for (const wrong of [{ modle: "offline" }, { limits: { parallelTools: 0 } }, { subagents: [{}] }])
    expect(schema.safeParse(wrong).success).toBe(false);
  const packed = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
    encoding: "utf8",
  });
  expect(packed).toContain('"config.schema.json"');
});

it("describes every setting, in lists and records too", () => {
  const bare: string[] = [];
  const visit = (path: string, node: z.core.JSONSchema.BaseSchema): void => {
    const inner = [node.items, node.additionalProperties].find((value) => typeof value === "object");
    for (const [key, child] of Object.entries(node.properties ?? {})) {
      if (typeof child === "object") visit(`${path}.${key}`, child);
    }
    if (inner && !Array.isArray(inner)) visit(`${path}[]`, inner);
    else if (!node.properties && !path.endsWith("[]") && node.description === undefined) bare.push(path);
  };
  visit("", z.toJSONSchema(ConfigSchema, { io: "input" }));
  expect(bare).toEqual([]);
});

it("has no description of a setting that does not exist", () => {
  const schema = JSON.stringify(z.toJSONSchema(ConfigSchema, { io: "input" }));
  const texts = Object.values(descriptions).flatMap((section): string[] => Object.values(section));
  expect(texts.filter((text) => !schema.includes(JSON.stringify(text)))).toEqual([]);
});
