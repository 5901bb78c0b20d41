/** Describes the routes as OpenAPI 3.1. */
import { z } from "zod";
import { ROUTES } from "./routes.ts";
import words from "./words.json" with { type: "json" };

const json = (schema: object) => ({ "application/json": { schema } });
const PROBLEM = { description: words.problem, content: json({ $ref: "#/components/schemas/Problem" }) };

/** `schemas`: gets the documents that have names. */
function operation({ method, path, does, scopes, input, answer }: Route, schemas: Record<string, unknown>) {
  // As schemas of inputs, because later versions may add fields to answers.
  const [given, told] = [input, answer].map((one) => {
    const { $schema: _dialect, $defs, ...schema } = z.toJSONSchema(one, { io: "input" });
    Object.assign(schemas, $defs);
    return schema;
  });
  const isBody = method === "POST";
  const { properties = {}, required = [] } = isBody ? {} : (given ?? {});
  const parameters = [
    ...[...path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: "path", required: true, schema: TEXT })),
    ...Object.entries(properties).map(([name, schema]) => {
      return { name, in: "query", required: required.includes(name), schema };
    }),
  ];
  const body = isBody && { requestBody: { required: true, content: json(given ?? {}) } };
  const isStream = path.endsWith("/stream");
  const content = isStream ? { "text/event-stream": { schema: told } } : json(told ?? {});
  const responses = { 200: { description: isStream ? words.stream : "Done", content }, default: PROBLEM };
  return { summary: does, "x-scopes": scopes, parameters, ...body, responses };
}
const TEXT = { type: "string" };

/** `base`: the address of the API. */
export function openApi(routes: readonly Route[], base: string): object {
  const schemas: Record<string, unknown> = { ...words.openapi.components.schemas };
  const paths: Record<string, Record<string, object>> = {};
  for (const one of routes) {
    const address = one.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[address] = { ...paths[address], [one.method.toLowerCase()]: operation(one, schemas) };
  }
  const components = { ...words.openapi.components, schemas };
  const text = JSON.stringify({ ...words.openapi, servers: [{ url: base }], paths, components });
  return JSON.parse(text.replaceAll('"#/$defs/', '"#/components/schemas/')) as object;
}
