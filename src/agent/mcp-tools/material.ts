/** Resources and prompts of another MCP server as tools: one that lists and reads, and one that lists and gets. */
import type { Tool } from "@modelcontextprotocol/client";
import { cutMiddle, firstSentence, oneLine } from "../../core/text.ts";
import { recordOf, defined, textMemberOf } from "../../core/unknown.ts";
import { type ToolResult, toolError } from "../../tools/tool.ts";
import type { AgentTool } from "../contracts/middleware.ts";
import { readResult } from "./answers.ts";
import type { McpConnection } from "./connection.ts";
import { modelResult, serverTool } from "./tool.ts";
import texts from "./texts.json" with { type: "json" };

/** Resources, or prompts: their tool, and the requests behind it. */
interface MaterialKind {
  /** Name of the tool, without the server's. */
  tool: string;
  capability: "resources" | "prompts";
  description: string;
  properties: NonNullable<Tool["inputSchema"]["properties"]>;
  /** The lists that show what there is. */
  lists: ReadonlyArray<{ method: string; field: string; line: (entry: Record<string, unknown>) => string }>;
  /** The request for one, and the arguments that it takes. Without the first of them, the lists are asked for. */
  method: string;
  takes: readonly [key: string, ...others: string[]];
  /** An answer as content of a tool's result. */
  content(answer: Record<string, unknown>): unknown[];
}

const shortText = (value: unknown): string => (typeof value === "string" ? oneLine(value, 300) : "");

const described = (name: string, { title, description }: Record<string, unknown>): string => {
  const given = [shortText(title), firstSentence(shortText(description), 160)];
  const words = given.filter((word) => word !== "" && word !== name);
  return words.length === 0 ? `- ${name}` : `- ${name}: ${words.join(". ")}`;
};

const RESOURCES: MaterialKind = {
  tool: "read_resource",
  capability: "resources",
  ...texts.resources,
  lists: [
    {
      method: "resources/list",
      field: "resources",
      line: ({ uri, ...entry }) => described(shortText(uri), { title: entry["name"], ...entry }),
    },
    {
      method: "resources/templates/list",
      field: "resourceTemplates",
      line: ({ uriTemplate, ...entry }) =>
        described(shortText(uriTemplate), { title: entry["name"], ...entry }),
    },
  ],
  method: "resources/read",
  takes: ["uri"],
  content: ({ contents }) => [contents ?? []].flat().map((resource) => ({ type: "resource", resource })),
};

const PROMPTS: MaterialKind = {
  tool: "get_prompt",
  capability: "prompts",
  ...texts.prompts,
  lists: [
    {
      method: "prompts/list",
      field: "prompts",
      line: ({ name, arguments: args, ...entry }) => {
        const names = [args ?? []].flat().map((one) => shortText(recordOf(one)["name"]));
        return `${described(shortText(name), entry)}${names.length === 0 ? "" : ` (${names.join(", ")})`}`;
      },
    },
  ],
  method: "prompts/get",
  takes: ["name", "arguments"],
  content: ({ messages }) =>
    [messages ?? []].flat().flatMap((message) => {
      const { role, content } = recordOf(message);
      return [{ type: "text", text: `[${shortText(role) || "user"}]` }, ...[content ?? []].flat()];
    }),
};

/** The tools for a server's resources and prompts, by their own names. `taken`: names of the server's tools. */
export async function materialTools(
  connection: McpConnection,
  taken: ReadonlySet<string>,
  nameOf: (own: string) => string,
): Promise<Array<{ own: string; tool: AgentTool }>> {
  const server = oneLine(connection.name, 80);
  const kinds = [RESOURCES, PROMPTS].filter(({ tool }) => !taken.has(tool));
  const found = await Promise.all(
    kinds.map(async (kind) => {
      // Many servers declare such a capability and do not have it. A failure here does not cost their tools.
      const hasAny = await connection.has(kind.capability).catch(() => false);
      const page = hasAny ? await listPage(kind, connection, {}).catch(() => undefined) : undefined;
      // Answers of tools link to resources that no list names.
      if (kind === RESOURCES ? !hasAny : page === undefined || page.lines.length === 0) return [];
      const tool = serverTool({
        name: nameOf(kind.tool),
        kind: "read",
        description: `${kind.description} (MCP server ${server})`,
        schema: { type: "object", properties: kind.properties },
        summary: `MCP server ${server}: ${kind.tool}`,
        run: (args, { context }) => readMaterial(kind, connection, args, context.signal),
      });
      return [{ own: kind.tool, tool }];
    }),
  );
  return found.flat();
}

async function readMaterial(
  kind: MaterialKind,
  connection: McpConnection,
  args: Record<string, unknown>,
  signal: AbortSignal,
): Promise<ToolResult> {
  const { method, takes } = kind;
  try {
    if (typeof args[takes[0]] === "string" && args[takes[0]] !== "") {
      const params = defined(Object.fromEntries(takes.map((name) => [name, args[name]])));
      const answer = await connection.ask(method, params, { signal });
      return modelResult(readResult({ content: kind.content(answer) }));
    }
    const page = typeof args["cursor"] === "string" ? { cursor: args["cursor"] } : {};
    const { lines, next } = await listPage(kind, connection, page, signal);
    if (lines.length === 0) return { content: `The server has no ${kind.capability}.` };
    if (next !== undefined) lines.push(`There are more: continue with the cursor ${JSON.stringify(next)}.`);
    return { content: cutMiddle(lines.join("\n"), 40_000) };
  } catch (error) {
    signal.throwIfAborted();
    return toolError(`The MCP server ${connection.name} did not answer: ${connection.reason(error)}.`);
  }
}

/** One page of each list. A list that the server does not know is empty. */
async function listPage(
  { lists }: MaterialKind,
  connection: McpConnection,
  page: { cursor?: string },
  signal = AbortSignal.timeout(10_000),
): Promise<{ lines: string[]; next: string | undefined }> {
  // A cursor belongs to the first list.
  const asked = page.cursor === undefined ? lists : lists.slice(0, 1);
  const pages = await Promise.all(
    asked.map(async ({ method, field, line }) => {
      const answer = await connection.ask(method, { ...page }, { signal }).catch((error: unknown) => {
        if (method === lists[0]?.method) throw error;
        return recordOf(undefined);
      });
      const entries = [answer[field] ?? []].flat().map((entry) => line(recordOf(entry)));
      // An entry without an address or a name cannot be asked for.
      return { lines: entries.filter((entry) => !/^- (?::|$)/.test(entry)), next: answer["nextCursor"] };
    }),
  );
  const next = textMemberOf(pages[0], "next") || undefined;
  return { lines: pages.flatMap(({ lines }) => lines), next };
}
