import { tool } from "@langchain/core/tools";
import { expect, test } from "vitest";
import { z } from "zod";
import * as mini from "zod/mini";
import { z as z3 } from "zod/v3";
import { toAgentTool } from "../../../src/agent/langgraph/foreign-tool.ts";
import { argumentsCheck } from "../../../src/agent/calls/arguments.ts";
import type { ToolInput } from "../../../src/agent/contracts/middleware.ts";

const NOTE = {
  type: "object",
  required: ["to"],
  additionalProperties: false,
  properties: {
    to: { $ref: "#/$defs/person" },
    "a/b": { type: "array", items: { type: "integer", minimum: 2 } },
    how: { enum: ["mail", "post"] },
    body: {
      anyOf: [
        { type: "string" },
        { type: "object", additionalProperties: false, properties: { lines: { type: "number" } } },
      ],
    },
  },
  $defs: { person: { type: "object", required: ["name"], properties: { name: { type: "string" } } } },
} as const;

const to = { name: "Ada" };

/** A schema of a library that LangChain does not know, as the Standard Schema specification describes it. */
const standard = (validate: (value: unknown) => unknown) => ({
  "~standard": { version: 1, vendor: "test", validate },
});
const even = (value: unknown) => {
  const { n } = value as { n: number }; // what the test gives
  return n % 2 === 0
    ? { value }
    : { issues: [{ message: "must be even", path: [{ key: "n" }] }, { message: "odd" }] };
};

const withSchema = (schema: unknown): ToolInput =>
  tool(() => "done", { name: "act", description: "acts", schema: schema as z.ZodObject }); // or of any other kind

test.each<[string, unknown, unknown, string]>([
  ["zod 4", z.object({ n: z.number() }), { n: "x" }, "n: Invalid input: expected number, received string"],
  [
    "zod 4 mini",
    mini.object({ n: mini.number() }),
    { n: "x" },
    "n: Invalid input: expected number, received string",
  ],
  ["zod 3", z3.object({ n: z3.array(z3.number()) }), { n: ["x"] }, "n.0: Expected number, received string"],
  ["zod 3", z3.object({ n: z3.number() }).strict(), { n: 1, m: 2 }, "Unrecognized key(s) in object: 'm'"],
  ["Standard Schema", standard(even), { n: 1 }, "n: must be even; odd"],
  ["JSON Schema", NOTE, {}, 'Instance does not have required property "to".'],
  ["JSON Schema", NOTE, { to: {} }, 'to: Instance does not have required property "name".'],
  ["JSON Schema", NOTE, { to, cc: 1 }, "cc: not expected here"],
  [
    "JSON Schema",
    NOTE,
    { to, "a/b": [2, 1, "x"], how: "fax" },
    'a/b.1: 1 is less than 2.; a/b.2: Instance type "string" is invalid. Expected "integer".; how: Instance does not match any of ["mail","post"].',
  ],
  ["JSON Schema", NOTE, { to, body: { line: 1 } }, "body: Instance does not match any subschemas."],
  ["JSON Schema", NOTE, [], 'Instance type "array" is invalid. Expected "object".'],
])("arguments are checked by %s", (_kind, schema, args, problems) => {
  const message = `Invalid arguments for act: ${problems}`;
  expect(toAgentTool(withSchema(schema)).validate(args)).toEqual({ ok: false, message });
});

test.each<[string, unknown, Record<string, unknown>]>([
  ["zod 3", z3.object({ n: z3.number() }), { n: 1 }],
  ["Standard Schema", standard(even), { n: 2 }],
  ["JSON Schema", NOTE, { to, "a/b": [2], how: "mail", body: { lines: 1 } }],
])("arguments that fit %s go to the tool as they are", (_kind, schema, args) => {
  expect(toAgentTool(withSchema(schema)).validate(args)).toEqual({ ok: true, args });
});

test.each<[string, unknown]>([
  ["has to wait (zod 4)", z.object({ n: z.string().refine(async () => false) })],
  ["has to wait (zod 3)", z3.object({ n: z3.string().refine(async () => false) })],
  ["has to wait (Standard Schema)", standard(async () => Promise.reject(new Error("later")))],
  ["fails itself", z.object({ n: z.string().refine(() => JSON.parse("{") as boolean) })],
  ["refers to nothing", { type: "object", properties: { n: { $ref: "#/$defs/gone" } } }],
  ["cannot be compiled", { type: "object", properties: { n: { type: "string", pattern: "(" } } }],
  [
    "has two meanings",
    { properties: { n: { $id: "https://a/c", type: "number" }, m: { $id: "https://a/c", type: "string" } } },
  ],
  ["is frozen", Object.freeze({ properties: { n: { type: "number" } } })],
  ["is none", "text"],
])("a schema that %s leaves it to the tool", (_what, schema) => {
  expect(argumentsCheck(schema)({ n: "x" })).toEqual([]);
});
