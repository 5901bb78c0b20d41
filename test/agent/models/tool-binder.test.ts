import { DynamicStructuredTool } from "@langchain/core/tools";
import { afterEach, expect, it } from "vitest";
import { z } from "zod";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { ToolBinder } from "../../../src/agent/models/tool-binder.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { type WireServer, startWireServer } from "../../support/wire-server.ts";
import type { Json } from "../../support/wire-server-protocol.ts";

let server: WireServer | undefined;
afterEach(() => server?.close());

const toolWith = (schema: Json | z.ZodType) =>
  new DynamicStructuredTool({
    name: "query",
    description: "d",
    schema: schema as Json,
    func: async () => "",
  });

const odd = {
  properties: { $filter: { type: "string" }, where: { type: "array", items: { properties: { "a.b": {} } } } },
  anyOf: [{ required: ["$filter"] }, { required: ["where"] }],
};

it.each(["anthropic:claude-sonnet-4-5", "openai:gpt-4o"] as const)(
  "a tool with an odd schema is used with %s under its own names",
  async (spec) => {
    server = await startWireServer(() => ({
      toolCalls: [{ name: "query", args: { _filter: "x", where: [{ a_b: 1 }], other: { _filter: 2 } } }],
    }));
    const provider = spec.startsWith("openai") ? "openai" : "anthropic";
    const { model } = await resolveModel({ model: spec, env: server.env(provider) });
    const reply = await new ToolBinder().bind({ model, tools: [toolWith(odd)] }).invoke("go");
    expect(server.refusals).toEqual([]);
    expect(reply.tool_calls?.[0]?.args).toEqual({
      $filter: "x",
      where: [{ "a.b": 1 }],
      other: { _filter: 2 },
    });
  },
);

it("a tool of a library's user gains by it too, and a sound one stays the same object", () => {
  const bound: unknown[][] = [];
  const model = scriptedModel(() => ({ text: "end" }));
  model.bindTools = (tools) => {
    bound.push(tools);
    return model;
  };
  const union = z.union([z.object({ id: z.string() }), z.object({ name: z.string() })]);
  const [sound, odder] = [
    toolWith(z.object({ a: z.string(), b: z.record(z.string(), z.number()) })),
    toolWith(union),
  ];
  new ToolBinder().bind({ model, tools: [sound, odder] });
  expect(bound[0]?.[0]).toBe(sound);
  expect(bound[0]?.[1]).toMatchObject({ name: "query", schema: { type: "object" } });
  expect(JSON.stringify(Reflect.get(Object(bound[0]?.[1]), "schema"))).not.toContain("anyOf");
});
