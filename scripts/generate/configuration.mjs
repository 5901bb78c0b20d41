/** docs/configuration.md and config.schema.json, from the schema of the configuration. */

const INTRODUCTION = `# Configuration

Generated from the schema by \`node scripts/generate.mjs\`; do not edit.

Settings are resolved in this order: command line, environment, the file that \`--config FILE\` or \`DEEPAGENT_CONFIG\` names, default. The file holds one JSON object with comments and trailing commas allowed; a dot in a key below means a nested object. Editors check and complete the settings if \`$schema\` names \`config.schema.json\` of the package, by a path relative to the file or as \`file:///…\`. Flags and variables that take lists: a flag is repeated or separates by commas, a variable separates by commas, folders by the system's path separator. Times are seconds unless the text says otherwise. All problems of a configuration are reported at once; \`deepagent-mcp doctor\` checks one without starting anything.

\`\`\`jsonc
{
  "$schema": "file:///path/to/deepagent-mcp/config.schema.json",
  "workspace": "/home/me/project",
  "model": "anthropic:claude-sonnet-4-5-20250929", // its key comes from the environment
  "approvals": { "write": "workspace" },
  "limits": { "tokens": 2000000 }
}
\`\`\`

Provider keys are not settings: they are read from the environment, under the providers' own names such as \`ANTHROPIC_API_KEY\`.
`;

/** The JSON schema of the file. The server fills in defaults, so no member is required. */
export function configurationSchema({ ConfigSchema, toJSONSchema }) {
  const override = ({ jsonSchema: { properties = {} } }) => {
    for (const [name, { internal }] of Object.entries(properties)) if (internal) delete properties[name];
  };
  const options = { io: "input", unrepresentable: "any", override };
  const { required: _, ...schema } = toJSONSchema(ConfigSchema, options);
  return { ...schema, title: "Configuration of deepagent-mcp" };
}

export function configurationPage(schema, sources) {
  const top = [];
  const sections = [];
  for (const [key, node] of Object.entries(schema.properties)) {
    const rows = rowsOf(key, node, sources);
    if (rows.length === 1) top.push(...rows);
    else sections.push([key, rows]);
  }
  const parts = [INTRODUCTION, "## General\n", table(top)];
  for (const [key, rows] of sections) parts.push(`## ${key}\n`, table(rows));
  return `${parts.join("\n").trimEnd()}\n`;
}

/** One row for each setting at `path` and below. */
function rowsOf(path, node, sources) {
  const below = (key, child) => rowsOf(`${path}${key}`, child, sources);
  if (node.properties) {
    const inner = Object.entries(node.properties).flatMap(([key, child]) => below(`.${key}`, child));
    return node.description ? [row(path, node, sources), ...inner] : inner;
  }
  const isList = node.type === "array";
  const inner = isList ? node.items : node.additionalProperties;
  return [row(path, node, sources), ...(inner?.properties ? below(isList ? "[]" : ".NAME", inner) : [])];
}

function row(path, node, { SETTINGS, envName, flagName }) {
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
    setting ? `\`--${flagName(setting)}\`` : "",
    setting ? `\`${envName(setting)}\`` : "",
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
