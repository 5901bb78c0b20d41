/** Describes the routes as OpenAPI 3.1. */
import { z } from "zod";
import { ROUTES } from "./routes.ts";
import words from "./words.json" with { type: "json" };

const json = (schema: object) => ({ "application/json": { schema } });

/** `base`: the address of the API. */
export function openApi(base: string): object {
  const { schemas: known, ...components } = words.openapi.components;
  const schemas: Record<string, unknown> = { ...known };
  const schemaFor = (schema: z.ZodType) => {
    const { $schema: _dialect, $defs, ...own } = z.toJSONSchema(schema, { io: "input" });
    Object.assign(schemas, $defs);
    return own;
  };
  const paths: Record<string, Record<string, object>> = {};
  for (const { method, path, does, scopes, input, answer } of ROUTES) {
    const [given, told] = [schemaFor(input), schemaFor(answer)];
    const { properties = {}, required = [] } = method === "POST" ? {} : given;
    const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => {
      return { name, in: "path", required: true, schema: { type: "string" } };
    });
    const inQuery = Object.entries(properties).map(([name, schema]) => {
      return { name, in: "query", required: required.includes(name), schema };
    });
    const body = method === "POST" && { requestBody: { required: true, content: json(given) } };
    const content = path.endsWith("/stream") ? { "text/event-stream": { schema: told } } : json(told);
    const responses = { 200: { description: "Done", content }, default: words.problem };
    const operation = {
      summary: does,
      "x-scopes": scopes,
      parameters: [...inPath, ...inQuery],
      ...body,
      responses,
    };
    const address = path.replaceAll(/:(\w+)/g, "{$1}");
    paths[address] = { ...paths[address], [method.toLowerCase()]: operation };
  }
  const document = {
    ...words.openapi,
    servers: [{ url: base }],
    paths,
    components: { ...components, schemas },
  };
  return JSON.parse(JSON.stringify(document).replaceAll("#/$defs/", "#/components/schemas/")) as object;
}
