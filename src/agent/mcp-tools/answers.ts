/** Reads the answers of other MCP servers about tools, resources and prompts, and makes sloppy ones strict. */
import type { JSONRPCRequest, RequestId, Result, Tool, Transport } from "@modelcontextprotocol/client";
import { fileBytes, mediaFacts, mediaKind } from "../../core/media.ts";
import { headOf, shownName } from "../../core/text.ts";
import type { ContentBlock } from "../../tools/tool.ts";
import { isRecord, recordOf, defined } from "../../core/unknown.ts";
import { decodeUtf8 } from "../../core/utf8.ts";
import type { Redactor } from "./redactor.ts";

export interface LeftOutTool {
  tool: string;
  reason: string;
}

/** A field of `_meta`, which the package passes on as it is. */
const RAW = "deepagent-mcp/answer";
/**
 * Lets answers through to `rawAnswer`, whatever they hold: the package refuses a whole list for one null.
 * Every message of the server passes through here first, and `redactor` blacks out the secrets in it.
 */
export function acceptAnyAnswer(transport: Transport, redactor: Redactor): void {
  const asked = new Map<RequestId, JSONRPCRequest>();
  const send: Transport["send"] = transport.send.bind(transport);
  transport.send = (message, options) => {
    // The answers to these methods are read here.
    const isRead =
      "method" in message && /^(?:initialize$|(?:tools|resources|prompts|tasks)\/)/.test(message.method);
    if (isRead && "id" in message) asked.set(message.id, message);
    return send(message, options);
  };
  // The fields that the package wants in an answer to one of these.
  const lists = "tools content resources resourceTemplates contents prompts messages".split(" ");
  const strict = {
    ...Object.fromEntries(lists.map((name) => [name, []])),
    resultType: "complete",
    ttlMs: 0,
    cacheScope: "private",
  };
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the client calls it before its own
  transport.onmessage = (message) => {
    for (const part of ["params", "result", "error"]) {
      if (!(part in message)) continue;
      const given: unknown = Reflect.get(message, part);
      // The server wants its own state and cursors back unchanged. No one else sees the state.
      const { requestState, tools, nextCursor } = recordOf(given);
      const kept = { requestState, ...(tools === undefined ? {} : { nextCursor }) };
      const redacted = redactor.value(given);
      Reflect.set(message, part, isRecord(redacted) ? { ...redacted, ...defined(kept) } : redacted);
    }
    // The package would drop `examples`, and refuse a form for one odd field.
    if ("method" in message && message.method === "elicitation/create")
      message.params = {
        message: "",
        requestedSchema: { type: "object", properties: {} },
        _meta: { ...message.params?._meta, [RAW]: message.params },
      };
    const request = "id" in message && message.id !== undefined ? asked.get(message.id) : undefined;
    if (request === undefined) return;
    asked.delete(request.id);
    // Questions to the person are the client's to refuse.
    if (!("result" in message) || message.result["resultType"] === "input_required") return;
    message.result =
      request.method === "initialize"
        ? readInitializeResult(message.result, request.params?.["protocolVersion"])
        : { ...strict, _meta: { [RAW]: message.result } };
  };
}

/** The answer to `initialize`, as far as it is used. A server that names no revision speaks the one it was asked for. */
function readInitializeResult(answer: Readonly<Record<string, unknown>>, asked: unknown) {
  const { protocolVersion, capabilities, serverInfo, instructions } = answer;
  const { name, version } = recordOf(serverInfo);
  const had = Object.entries(recordOf(capabilities)).filter(([, given]) => Boolean(given));
  const { call } = recordOf(recordOf(recordOf(recordOf(capabilities)["tasks"])["requests"])["tools"]);
  const tasks = call === undefined ? {} : { tasks: { requests: { tools: { call: {} } } } };
  return {
    protocolVersion: nonBlank(protocolVersion) ?? asked,
    capabilities: { ...Object.fromEntries(had.map(([capability]) => [capability, {}])), ...tasks },
    serverInfo: { name: nonBlank(name) ?? "", version: nonBlank(version) ?? "" },
    ...defined({ instructions: nonBlank(instructions) }),
  };
}

/** The answer or question as the server sent it, but for secrets. */
export const rawAnswer = ({ _meta }: Pick<Result, "_meta">): Record<string, unknown> =>
  recordOf(_meta?.[RAW]);

const nonBlank = (value: unknown): string | undefined =>
  typeof value === "string" && value.trim() !== "" ? value : undefined;

/** Longest name, in characters; the specification asks for at most 128. */
const MAX_TOOL_NAME = 256;
/** Characters of a schema. All of it is sent with every request to the model. */
const MAX_SCHEMA = 100_000;

/** Reads one entry of a tool list. Fields of another form count as absent. */
export function readTool(entry: unknown): Tool | LeftOutTool {
  const { name, title, description, inputSchema, outputSchema, annotations, execution } = recordOf(entry);
  if (typeof name !== "string" || name === "") return { tool: "(no name)", reason: "it has no name" };
  const leftOut = (reason: string): LeftOutTool => ({ tool: shownName(name), reason });
  if (name.length > MAX_TOOL_NAME) return leftOut(`its name has more than ${MAX_TOOL_NAME} characters`);
  if (isLonger(inputSchema, MAX_SCHEMA)) return leftOut(`its schema has more than ${MAX_SCHEMA} characters`);
  const isSchema = isRecord(inputSchema) || (inputSchema ?? true) === true;
  if (!isSchema) return leftOut("its inputSchema is not a JSON Schema");
  const { type = "object", ...schema } = recordOf(inputSchema);
  if (!/\bobject\b/i.test(JSON.stringify(type))) return leftOut("its arguments are not an object");
  const [shownTitle, text] = [nonBlank(title), nonBlank(description) ?? nonBlank(title)];
  const hints = Object.entries(recordOf(annotations)).filter(([, hint]) => typeof hint === "boolean");
  return {
    name,
    inputSchema: { ...schema, type: "object" },
    ...(text === undefined ? {} : { description: headOf(text, 4000) }),
    ...(shownTitle === undefined ? {} : { title: headOf(shownTitle, MAX_TOOL_NAME) }),
    ...(isRecord(outputSchema) && !isLonger(outputSchema, MAX_SCHEMA) ? { outputSchema } : {}),
    annotations: Object.fromEntries(hints),
    ...(recordOf(execution)["taskSupport"] === "required" ? { execution: { taskSupport: "required" } } : {}),
  };
}

/** True if a value has more than so many characters as JSON. */
export const isLonger = (value: unknown, limit: number): boolean =>
  (JSON.stringify(value)?.length ?? 0) > limit;

/** A task as its server names it: kept with the call, so that another process continues to wait. */
export interface TheirTask {
  taskId: string;
  /** Its server is of revision 2025-11-25, and is asked for the result by itself. */
  isOlder?: true;
}

/** The task in the answer to a call; undefined if it is a result. `isOlder`: the call asked for a task of 2025-11-25. */
export function readTask(
  { resultType, taskId, task }: Readonly<Record<string, unknown>>,
  isOlder: boolean,
): TheirTask | undefined {
  const id = isOlder ? recordOf(task)["taskId"] : resultType === "task" ? taskId : undefined;
  return typeof id === "string" && id !== "" ? { taskId: id, ...(isOlder ? { isOlder } : {}) } : undefined;
}

/** A result of a call in strict form. */
export interface ReadResult {
  /** Texts and media, in their order. */
  blocks: ContentBlock[];
  structuredContent: unknown;
  isError: boolean;
  /** True if a part of the result was not in MCP's form, and is passed on unchanged. */
  isOdd: boolean;
}

/** Reads the result of a call. Keeps everything that it holds: the call was carried out. */
export function readResult(answer: Readonly<Record<string, unknown>>): ReadResult {
  const { content, structuredContent, isError, nextCursor: _, resultType: _type, _meta, ...others } = answer;
  const given = [content ?? []].flat().filter((part) => part !== null);
  const isBare = given.length === 0 && (structuredContent ?? undefined) === undefined;
  // Servers of the first revision answered with `toolResult`, and some answer with the bare result of a function.
  const parts = isBare && Object.keys(others).length > 0 ? [others] : given;
  let isOdd = !Array.isArray(content ?? []);
  const blocks = parts.flatMap((part) => {
    const fields = recordOf(part);
    const block = readBlock(fields);
    isOdd ||= block === undefined;
    return block ?? textBlock(nonBlank(part) ?? nonBlank(fields["text"]) ?? JSON.stringify(fields));
  });
  const isFailure = isError === true || isError === "true";
  return { blocks, structuredContent: structuredContent ?? undefined, isError: isFailure, isOdd };
}

const textBlock = (text: string): ContentBlock => ({ type: "text", text });

/** A block as the model reads it; undefined for a part that is not a block of MCP. */
function readBlock(part: Record<string, unknown>): ContentBlock[] | undefined {
  const { type, text, data, mimeType, uri } = part;
  if (type === "text" && typeof text === "string") return [textBlock(text)];
  if ((type === "image" || type === "audio") && typeof data === "string")
    return [{ type, mimeType: nonBlank(mimeType) ?? "of unknown type", data }];
  if (type === "resource_link" && typeof uri === "string") {
    const { name, title, description } = part;
    const words = [nonBlank(title) ?? nonBlank(name), nonBlank(description)];
    const said = words.filter((word) => word !== undefined && word !== uri).join(". ");
    const kind = nonBlank(mimeType);
    return [textBlock(`[Resource ${uri}${said && `: ${said}`}${kind ? ` (${kind})` : ""}]`)];
  }
  return type === "resource" && isRecord(part["resource"]) ? readResource(part["resource"]) : undefined;
}

/** The text of a resource, or its bytes as the text or the media that they are. */
function readResource({ uri = "", text, blob, mimeType }: Record<string, unknown>): ContentBlock[] {
  const [place, claimed] = [String(uri), nonBlank(mimeType)];
  const bytes = typeof blob === "string" ? fileBytes(blob) : undefined;
  const { mimeType: found = "" } = bytes ? mediaFacts(bytes, claimed) : {};
  const kind = mediaKind(found);
  if (kind !== undefined) {
    const file = kind === "file" ? { metadata: { filename: place.replace(/^.*\//s, "") } } : {};
    return [textBlock(`[Resource ${place}]`), { type: kind, mimeType: found, data: blob, ...file }];
  }
  const words = typeof text === "string" ? text : bytes?.includes(0) ? undefined : bytes && decodeUtf8(bytes);
  if (words === undefined) return [textBlock(`[Resource ${place}: ${claimed ?? "binary"}, not shown]`)];
  return [textBlock(`[Resource ${place}]\n${words}`)];
}
