/** docs/api.md, from the table of routes. */

const BEGIN =
  "<!-- Generated from the table of routes by `node scripts/generate.mjs`; do not edit below. -->";

/** The page with its routes and documents written anew; the text above them is kept. */
export function apiPage(page, { openApi }) {
  const { paths, components } = openApi("/api");
  const [introduction] = page.split(BEGIN);
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => routeText(method, path, operation)),
  );
  const { Problem: _, ...documents } = components.schemas;
  const named = Object.entries(documents)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, schema]) => `### ${name}\n\n${documentText(schema)}`);
  return `${introduction}${BEGIN}\n\n## Routes\n\n${routes.join("\n\n")}\n\n## Documents\n\n${named.join("\n\n")}\n`;
}

function routeText(method, path, { summary, parameters, requestBody, responses, ...rest }) {
  const query = parameters.filter((one) => one.in === "query");
  const body = requestBody?.content["application/json"].schema;
  const input = body
    ? fields(body)
    : query.map(({ name, required, schema }) => field(name, required, schema));
  const [answer] = Object.values(responses[200].content);
  const scopes = rest["x-scopes"].map((scope) => `\`${scope}\``).join(" and ");
  const scope = scopes === "" ? "any scope" : `the scope ${scopes}`;
  const lines = [`${summary} Needs ${scope}.`, ""];
  if (input.length > 0) lines.push(`- ${body ? "Body" : "Query"}: ${input.join(", ")}`);
  const isStream = path.endsWith("/stream");
  if (!isStream) lines.push(`- Answer: ${answerText(answer.schema)}`);
  return `### ${method.toUpperCase()} /api${path}\n\n${lines.join("\n").trimEnd()}`;
}

function answerText(schema) {
  if (schema.$ref) return `\`${type(schema)}\``;
  const own = fields(schema);
  return own.length === 0 ? "`{}`" : own.join(", ");
}

const fields = ({ properties = {}, required = [] }) =>
  Object.entries(properties).map(([name, schema]) => field(name, required.includes(name), schema));

function field(name, isRequired, schema) {
  const initial =
    schema.default === undefined || schema.default === "" ? "" : ` = ${JSON.stringify(schema.default)}`;
  return `\`${name}${isRequired ? "" : "?"}: ${type(schema)}${initial}\``;
}

/** A document with each field in a line; one of several forms has each form in a line. */
function documentText(schema) {
  const forms = schema.anyOf ?? schema.oneOf;
  if (forms) return forms.map((form) => `- ${fields(form).join(", ")}`).join("\n");
  return fields(schema)
    .map((one) => `- ${one}`)
    .join("\n");
}

/** A type in the notation of TypeScript. */
function type(schema) {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  const forms = schema.anyOf ?? schema.oneOf;
  if (forms) return forms.map(type).join(" | ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") {
    const item = type(schema.items);
    return item.includes(" | ") ? `(${item})[]` : `${item}[]`;
  }
  if (schema.type === "object" && schema.properties) {
    const { properties, required = [] } = schema;
    const inner = Object.entries(properties).map(
      ([name, one]) => `${name}${required.includes(name) ? "" : "?"}: ${type(one)}`,
    );
    return `{ ${inner.join("; ")} }`;
  }
  if (schema.type === "object")
    return schema.additionalProperties ? `{ [name]: ${type(schema.additionalProperties)} }` : "object";
  return schema.type ?? "unknown";
}
