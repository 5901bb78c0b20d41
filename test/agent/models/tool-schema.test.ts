import { DynamicStructuredTool } from "@langchain/core/tools";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { geminiSchema, sentSchema } from "../../../src/agent/models/tool-schema.ts";
import { attempts } from "../../support/effort.ts";
import { anthropicProblem } from "../../support/wire-rules-anthropic.ts";
import { googleSchemaProblem } from "../../support/wire-rules-google.ts";
import { chatProblem } from "../../support/wire-rules-openai.ts";
import type { Json } from "../../support/wire-server-protocol.ts";

const string = { type: "string" };
const rule = JSON.parse(
  '{"if":{"properties":{"mode":{"const":"small"}}},"then":{"required":["size"]}}',
) as Json;
const object = (properties: Json, more: Json = {}) => ({ type: "object", properties, ...more });
const byIdOrName = [
  { properties: { id: string }, required: ["id"] },
  { properties: { name: string }, required: ["name"] },
];

/** With the schema that is sent to Anthropic, OpenAI and services that speak like them. */
type Case = readonly [source: string, schema: unknown, sent: Json];

/** Schemas that made a provider refuse every request, by the report. */
const REPORTED: readonly Case[] = [
  [
    "makenotion/notion-mcp-server#340",
    { type: "object", anyOf: byIdOrName },
    object({ id: string, name: string }, { description: "Give one of: (id) or (name)." }),
  ],
  [
    "DeusData/codebase-memory-mcp#1524",
    object(
      { project: string, paths: string, scopes: string },
      { required: ["project"], anyOf: [{ required: ["paths"] }, { required: ["scopes"] }] },
    ),
    object(
      { project: string, paths: string, scopes: string },
      { required: ["project"], description: "Give one of: (paths) or (scopes)." },
    ),
  ],
  [
    "anthropics/claude-code#88049",
    {
      anyOf: [
        object({ kind: { const: "a" }, n: { type: "integer" } }, { required: ["kind", "n"] }),
        object({ kind: { const: "b" }, s: string }, { required: ["kind"] }),
      ],
    },
    object(
      { kind: { anyOf: [{ const: "a" }, { const: "b" }] }, n: { type: "integer" }, s: string },
      { required: ["kind"], description: "Give one of: (kind, n) or (kind)." },
    ),
  ],
  [
    "anthropics/claude-code#95504",
    object({ mode: string, size: string }, { allOf: [rule] }),
    object(
      { mode: string, size: string },
      JSON.parse(
        '{"if":{"properties":{"mode":{"const":"small"}}},"then":{"properties":{"size":{}},"required":["size"]}}',
      ) as Json,
    ),
  ],
  [
    "beautyfree/appstore-connect-mcp#2",
    object({ "filter[id]": string, filter_id_: string }, { required: ["filter[id]"] }),
    object({ filter_id__2: string, filter_id_: string }, { required: ["filter_id__2"] }),
  ],
  ["apify/tester-mcp-client#69", object({ "a.b": string }), object({ a_b: string })],
  [
    "aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws#709",
    object({ "Account Number": string, ["x".repeat(70)]: string }),
    object({ Account_Number: string, ["x".repeat(56)]: string }),
  ],
  ["ruvnet/ruflo#1294", object({ ids: { type: "array" } }), object({ ids: { type: "array", items: {} } })],
  [
    "anomalyco/opencode#20273",
    object({ values: { type: "array", items: { type: "array", items: true } } }),
    object({ values: { type: "array", items: { type: "array", items: {} } } }),
  ],
  [
    "NousResearch/hermes-agent#24208",
    object({ x: { anyOf: [object({ a: string }), { type: "array" }] } }),
    object({ x: { anyOf: [object({ a: string }), { type: "array", items: {} }] } }),
  ],
  ["NousResearch/hermes-agent#2095", { type: "object" }, object({})],
  [
    "smallmain/vscode-unify-chat-provider#162",
    object({ path: string, properties: { type: "object" }, type: "object" }),
    object({ path: string, properties: object({}) }),
  ],
  ["mastra-ai/mastra#23731", object({ coin: string, required: ["coin"] }), object({ coin: string })],
  ["MervinPraison/PraisonAI#3111", object({}, { required: null }), object({})],
  [
    "TencentCloudBase/CloudBase-AI-Toolkit#626",
    object({ a: { anyOf: [{ not: {} }, string] } }),
    object({ a: { anyOf: [string] } }),
  ],
  [
    "coddingtonbear/obsidian-local-rest-api#352",
    { $schema: "http://json-schema.org/draft-07/schema#", ...object({ a: string }) },
    object({ a: string }),
  ],
  [
    "tadata-org/fastapi_mcp#218",
    object({ a: { type: "string", nullable: true, example: "x", readOnly: true, default: null } }),
    object({ a: { type: ["string", "null"] } }),
  ],
  [
    "QwenLM/Qwen-Agent#873",
    object({ c: { $ref: "#/$defs/C", description: "d" } }, { $defs: { C: object({ id: string }) } }),
    object({ c: { ...object({ id: string }), description: "d" } }),
  ],
  [
    "langchain4j/langchain4j#5790",
    object({ a: object({ x: string }), b: { $ref: "#/properties/a/properties/x" } }),
    object({ a: object({ x: string }), b: string }),
  ],
  [
    "superdoc/docx-editor#3588",
    object({ at: { $ref: "#/$defs/Gone" }, far: { $ref: "https://example.com/x.json" } }),
    object({ at: {}, far: {} }),
  ],
  [
    "google-labs-code/stitch-sdk#367",
    object(
      { root: { $ref: "#/definitions/T" } },
      { definitions: { T: object({ kids: { type: "array", items: { $ref: "#/definitions/T" } } }) } },
    ),
    object({
      root: object({
        kids: { type: "array", items: object({ kids: { type: "array", items: {} } }) },
      }),
    }),
  ],
];

/** Others of the same kinds. */
const OWN: readonly Case[] = [
  ["null", null, object({})],
  ["true", true, object({})],
  [
    "a reference at the root",
    { $ref: "#/$defs/X", $defs: { X: object({ a: string }) } },
    object({ a: string }),
  ],
  ["a root that refers to itself", { $ref: "#" }, object({})],
  [
    "draft-04: a tuple, exclusive limits, an id",
    object({
      a: { id: "x", type: "array", items: [string, { type: "integer" }] },
      n: { type: "number", minimum: 0, exclusiveMinimum: true },
    }),
    object({
      a: {
        type: "array",
        prefixItems: [string, { type: "integer" }],
        items: { anyOf: [string, { type: "integer" }] },
      },
      n: { type: "number", minimum: 0 },
    }),
  ],
  [
    "required: twice, not a name, not described",
    object({ a: string }, { required: ["a", "a", 5, "ghost"] }),
    object({ ghost: {}, a: string }, { required: ["a", "ghost"] }),
  ],
  [
    "patterns that cannot be read, or not by Python",
    object({
      a: { type: "string", pattern: "(" },
      b: { type: "string", pattern: "^(?<y>a)$" },
      c: { type: "string", pattern: "^a$" },
    }),
    object({ a: string, b: string, c: { type: "string", pattern: "^a$" } }),
  ],
  [
    "wrong values",
    object({
      a: { type: "any", title: 5, description: null, enum: [], minLength: -1, format: 3 },
      b: null,
    }),
    object({ a: {} }),
  ],
  [
    "an enum without end",
    object({ a: { enum: Array.from({ length: 600 }, (_, index) => index) } }),
    object({
      a: {
        description: `One of 600 values, such as ${Array.from({ length: 20 }, (_, index) => index).join(", ")}.`,
      },
    }),
  ],
];

const problems = (schema: Json): unknown[] => {
  const messages = [{ role: "user", content: "x" }];
  const tool = { name: "t", input_schema: schema };
  const parameters = { name: "t", parameters: schema };
  return [
    anthropicProblem({ model: "m", max_tokens: 5, messages, tools: [tool] })?.message,
    chatProblem({ model: "m", messages, tools: [{ type: "function", function: parameters }] })?.message,
  ].filter((problem) => problem !== undefined);
};

describe("a tool's schema", () => {
  it.each([...REPORTED, ...OWN])("%s: is sent as providers take it", (_source, schema, sent) => {
    const made = sentSchema(schema).schema as Json;
    expect(made).toEqual(sent);
    expect(problems(made)).toEqual([]);
    expect(googleSchemaProblem(sentSchema(schema, geminiSchema).schema as Json)).toBeUndefined();
  });

  it("is refused as it came, in the cases that were reported", () => {
    const refused = REPORTED.filter(([, schema]) => problems(schema as Json).length > 0);
    // Python finds more patterns, and services find more keywords, than these rules know.
    expect(refused.length).toBeGreaterThan(10);
  });

  it.each<[string, Json, Json]>([
    ["makenotion/notion-mcp-server#42", { enum: ["a"] }, { type: "string", enum: ["a"] }],
    ["router-for-me/CLIProxyAPI#1076", { enum: [0, 1] }, { type: "string", description: "One of 0, 1." }],
    [
      "reposkein/reposkein#14",
      { anyOf: [{ const: 1 }, { const: 2 }] },
      { type: "string", description: "One of 1, 2." },
    ],
    ["n8n-io/n8n#15553", { type: ["string", "null"] }, { type: "string", nullable: true }],
    ["anomalyco/opencode#11889", { type: "string", properties: { a: string }, required: ["a"] }, string],
    ["nanbingxyz/5ire#42", object({ a: string }, { additionalProperties: false }), object({ a: string })],
    [
      "MarkusPfundstein/mcp-obsidian#21",
      { type: "object" },
      { type: "string", description: "A JSON object, as text." },
    ],
    ["google-gemini/gemini-cli#4400", {}, string],
    [
      "a union with null",
      { anyOf: [{ type: "integer" }, { type: "null" }] },
      { type: "integer", nullable: true },
    ],
    [
      "a union of types",
      { anyOf: [string, { type: "number" }] },
      { type: "string", description: "Or of type number." },
    ],
  ])("%s: is what Gemini reads", (_source, part, sent) => {
    const made = sentSchema(object({ x: part }), geminiSchema).schema as Json;
    expect(made["properties"]).toEqual({ x: sent });
    expect(googleSchemaProblem(made)).toBeUndefined();
  });
});

describe("arguments", () => {
  const schema = object({
    $filter: string,
    _filter: string,
    "a<b": {
      anyOf: [object({ "x y": { type: "array", items: object({ "1st": { type: "integer" } }) } }), string],
    },
    map: { type: "object", additionalProperties: object({ $id: string }) },
    free: { type: "object", additionalProperties: true },
  });

  it.each([undefined, geminiSchema])("get the names of the tool again, at any depth", (narrow) => {
    const { schema: sent, restore } = sentSchema(schema, narrow);
    const [filter = "", , ab = ""] = Object.keys(sent["properties"] as Json);
    expect([filter, ab]).toEqual(["_filter_2", "a_b"]);
    const args = {
      [filter]: "a",
      _filter: "b",
      [ab]: { x_y: [{ _1st: 1 }] },
      free: { [filter]: 2, [ab]: 3 },
    };
    const own = {
      $filter: "a",
      _filter: "b",
      "a<b": { "x y": [{ "1st": 1 }] },
      free: { _filter_2: 2, a_b: 3 },
    };
    expect(restore(args)).toEqual(own);
    expect(restore(own)).toEqual(own);
    const maps = sentSchema(schema).restore({ map: { k: { _id: "c" } } });
    expect(maps).toEqual({ map: { k: { $id: "c" } } });
  });

  it("are objects again where a provider could only be asked for text", () => {
    const { restore } = sentSchema(object({ body: { type: "object" } }), geminiSchema);
    expect(restore({ body: '{"a":1}' })).toEqual({ body: { a: 1 } });
    expect(restore({ body: "not JSON" })).toEqual({ body: "not JSON" });
  });
});

/** JSON that is nearly a schema. */
const nearlySchema = fc.letrec((tie) => {
  const name = fc.constantFrom("a", "b", "$x", "x y", "a.b", "", "é", "y".repeat(70), "constructor");
  const odd = fc.constantFrom<unknown>(null, true, false, 5, "x", [], {});
  const some = (value: fc.Arbitrary<unknown>) => fc.oneof({ weight: 5, arbitrary: value }, odd);
  const schemas = fc.array(tie("schema"), { maxLength: 3 });
  return {
    schema: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      odd,
      fc.record(
        {
          type: some(
            fc.constantFrom<unknown>(
              "object",
              "array",
              "string",
              "null",
              ["string", "null"],
              "int",
              "OBJECT",
            ),
          ),
          description: some(fc.string()),
          properties: some(fc.dictionary(name, tie("schema"), { maxKeys: 3 })),
          required: some(fc.array(name, { maxLength: 3 })),
          items: some(fc.oneof(tie("schema"), schemas)),
          prefixItems: some(schemas),
          additionalProperties: some(tie("schema")),
          anyOf: some(schemas),
          oneOf: some(schemas),
          allOf: some(schemas),
          not: some(tie("schema")),
          enum: some(fc.array(fc.jsonValue({ maxDepth: 1 }), { maxLength: 3 })),
          const: some(fc.string()),
          pattern: some(fc.constantFrom("(", "^a", "\\p{L}")),
          minLength: some(fc.integer()),
          exclusiveMinimum: odd,
          nullable: odd,
          $ref: some(fc.constantFrom("#", "#/properties/a", "#/$defs/D", "x.json", "#/$defs")),
          $defs: some(fc.record({ D: tie("schema") })),
          $schema: some(fc.constantFrom("http://json-schema.org/draft-04/schema#")),
        },
        { requiredKeys: [] },
      ),
    ),
  };
}).schema;

it("is accepted by every provider, whatever a server sends", { tags: "long", timeout: 600_000 }, () => {
  fc.assert(
    fc.property(nearlySchema, (schema) => {
      expect(problems(sentSchema(schema).schema as Json)).toEqual([]);
      expect(googleSchemaProblem(sentSchema(schema, geminiSchema).schema as Json)).toBeUndefined();
    }),
    attempts(200),
  );
});

it("stays small, however often references name each other", () => {
  const level = (to: string) => object({ a: { $ref: to }, b: { $ref: to }, c: { $ref: to } });
  const $defs = Object.fromEntries(
    Array.from({ length: 30 }, (_, n) => [`L${n}`, level(`#/$defs/L${n + 1}`)]),
  );
  const { schema } = sentSchema({ ...level("#/$defs/L0"), $defs });
  expect(JSON.stringify(schema).length).toBeLessThan(200_000);
});

it("is made once, and a sound one is not touched", () => {
  const schema = object(
    { a: string, list: { type: "array", items: string } },
    { required: ["a"], additionalProperties: false },
  );
  const tool = new DynamicStructuredTool({ name: "t", description: "d", schema, func: async () => "" });
  expect(sentSchema(tool.schema).schema).toEqual(schema);
});
