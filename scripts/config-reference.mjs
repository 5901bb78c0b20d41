/**
 * Writes docs/configuration.md and config.schema.json from the schema of the configuration. With --check it
 * writes nothing and fails when a file is not what it would write.
 */
import { writeGenerated } from "./generated.mjs";
import { loadSources } from "./sources.mjs";

const INTRODUCTION = `# Configuration

Generated from the schema by \`node scripts/config-reference.mjs\`; do not edit.

A setting comes from the command line, else from the environment, else from the file that \`--config FILE\` or \`DEEPAGENT_CONFIG\` names, else it has its default. The file holds one JSON object, in which comments and trailing commas are allowed; a dot in a key below means an object inside. \`config.schema.json\` of the package is its JSON schema: named under \`$schema\`, by an address relative to the file or as \`file:///…\`, it lets editors check and complete the settings. Flags and variables that take lists: a flag is repeated or separates by commas, a variable separates by commas, folders by the system's path separator. Times are seconds unless the text says otherwise. All problems of a configuration are reported at once; \`deepagent-mcp doctor\` checks one without starting anything.

\`\`\`jsonc
{
  "$schema": "file:///path/to/deepagent-mcp/config.schema.json",
  "workspace": "/home/me/project",
  "model": "anthropic:claude-sonnet-4-5-20250929", // its key comes from the environment
  "approvals": { "write": "workspace" },
  "limits": { "tokens": 2000000 }
}
\`\`\`

Keys of model providers are no settings: they are read from the environment, under the providers' own names such as \`ANTHROPIC_API_KEY\`.
`;

const { ConfigSchema, SETTINGS, envNameOf, flagNameOf, toJSONSchema } = await loadSources(`
  export * from "./src/config/schema.ts";
  export * from "./src/config/settings.ts";
  export { toJSONSchema } from "zod";
`);
// The server fills in what has a default: the file has to hold nothing.
const { required: _, ...schema } = toJSONSchema(ConfigSchema, { io: "input", unrepresentable: "any" });
const files = {
  "docs/configuration.md": render(schema),
  "config.schema.json": `${JSON.stringify({ ...schema, title: "Configuration of deepagent-mcp" }, null, 2)}\n`,
};
for (const [name, text] of Object.entries(files)) await writeGenerated(name, text);

function render(schema) {
  const top = [];
  const sections = [];
  for (const [key, node] of Object.entries(schema.properties)) {
    const rows = rowsOf(key, node);
    if (rows.length === 1) top.push(...rows);
    else sections.push([key, rows]);
  }
  const parts = [INTRODUCTION, "## General\n", table(top)];
  for (const [key, rows] of sections) parts.push(`## ${key}\n`, table(rows));
  return `${parts.join("\n").trimEnd()}\n`;
}

/** One row for each setting at `path` and below. */
function rowsOf(path, node) {
  if (node.properties) {
    const inner = Object.entries(node.properties).flatMap(([key, child]) => rowsOf(`${path}.${key}`, child));
    return node.description ? [row(path, node), ...inner] : inner;
  }
  const inner = node.type === "array" ? node.items : node.additionalProperties;
  const below = inner?.properties ? rowsOf(node.type === "array" ? `${path}[]` : `${path}.NAME`, inner) : [];
  return [row(path, node), ...below];
}

function row(path, node) {
  const setting = SETTINGS.find((candidate) => candidate.path === path);
  const initial = node.default;
  const isPlain = initial !== undefined && typeof initial !== "object";
  return [
    `\`${path}\``,
    typeOf(node),
    isPlain
      ? `\`${initial}\``
      : Array.isArray(initial) && initial.length > 0
        ? `\`${initial.join(", ")}\``
        : "",
    setting ? `\`--${flagNameOf(setting)}\`` : "",
    setting ? `\`${envNameOf(setting)}\`` : "",
    node.description ?? "",
  ];
}

function typeOf(node) {
  if (node.enum) return node.enum.map((value) => `\`${value}\``).join(", ");
  if (node.type === "array") return `list of ${typeOf(node.items ?? {})}`;
  if (node.type === "object") return "object";
  if (node.type !== "integer" && node.type !== "number") return node.type ?? "any";
  const low = node.exclusiveMinimum ?? node.minimum;
  const high = node.maximum;
  const bounded = (bound) => typeof bound === "number" && Math.abs(bound) < Number.MAX_SAFE_INTEGER;
  const from = !bounded(low) ? "" : node.exclusiveMinimum === undefined ? ` from ${low}` : ` above ${low}`;
  return `${node.type}${from}${bounded(high) ? ` to ${high}` : ""}`;
}

function table(rows) {
  const cells = (row) => `| ${row.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  const head = ["Key", "Type", "Default", "Flag", "Variable", "Meaning"];
  return `${[cells(head), cells(head.map(() => "---")), ...rows.map(cells)].join("\n")}\n`;
}
