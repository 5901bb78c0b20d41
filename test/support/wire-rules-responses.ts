import { NO_MATCH, isToolName, openaiToolProblem } from "./wire-rules-openai.ts";
import { invalid, type Json, list, text, type WireError } from "./wire-server-protocol.ts";

/** The first rule of the Responses API that a request breaks. */
export const responsesProblem = (body: Json): WireError | undefined =>
  openaiToolProblem(body, list(body["tools"]), "") ?? inputProblem(body);

function inputProblem(body: Json): WireError | undefined {
  const items = inputItems(body);
  if (items.length === 0) return invalid("Missing required parameter: 'input'.");
  for (const [index, item] of items.entries()) {
    const problem = itemProblem(item, index, items[index + 1]);
    if (problem !== undefined) return problem;
  }
  const ids = items.flatMap(({ id }) => (id === undefined ? [] : [text(id)]));
  const twice = ids.find((id, index) => ids.indexOf(id) < index);
  if (twice !== undefined)
    return invalid(
      `Duplicate item found with id ${twice}. Remove duplicate items from your input and try again.`,
    );
  const calls = items.filter(({ type }) => type === "function_call").map((item) => text(item["call_id"]));
  const outputs = items
    .filter(({ type }) => type === "function_call_output")
    .map((item) => text(item["call_id"]));
  const at = (kind: string, id: string): number =>
    items.findIndex((item) => item["type"] === kind && item["call_id"] === id);
  const stray = outputs.find(
    (id) => !calls.includes(id) || at("function_call_output", id) < at("function_call", id),
  );
  if (stray !== undefined)
    return invalid(`No tool call found for function call output with call_id ${stray}.`);
  if (new Set(outputs).size < outputs.length)
    return invalid("Duplicate tool output found for a function call.");
  const open = calls.find((id) => !outputs.includes(id));
  if (open !== undefined) return invalid(`No tool output found for function call ${open}.`);
  const lost = items.find((item) => item["type"] === "reasoning" && item["encrypted_content"] === undefined);
  return body["store"] === false && lost !== undefined
    ? {
        status: 404,
        message: `Item with id '${text(lost["id"])}' not found. Items are not persisted when \`store\` is set to false.`,
      }
    : undefined;
}

/** What the ids of items begin with. */
const PREFIXES: Readonly<Record<string, string>> = { message: "msg", function_call: "fc", reasoning: "rs" };
const PARTS: Readonly<Record<string, readonly string[]>> = {
  user: ["input_text", "input_image", "input_file"],
  system: ["input_text"],
  developer: ["input_text"],
  assistant: ["output_text", "refusal"],
  output: ["input_text", "input_image", "input_file"],
};

function itemProblem(item: Json, index: number, next: Json | undefined): WireError | undefined {
  const { id, role, content, output } = item;
  const type = text(item["type"] ?? "message");
  const prefix = PREFIXES[type];
  if (prefix !== undefined && id !== undefined && !text(id).startsWith(`${prefix}_`))
    return invalid(
      `Invalid 'input[${index}].id': '${text(id)}'. Expected an ID that begins with '${prefix}'.`,
    );
  if (text(id).length > 64)
    return invalid(
      `Invalid 'input[${index}].id': string too long. Expected a string with maximum length 64, but got a string with length ${text(id).length} instead.`,
    );
  if (type === "reasoning" && (next === undefined || next["role"] === "user"))
    return invalid(
      `Item '${text(id)}' of type 'reasoning' was provided without its required following item.`,
    );
  if (type === "function_call" && !isToolName(item["name"]))
    return invalid(`Invalid 'input[${index}].name': ${NO_MATCH}`);
  if (type.startsWith("function_call") && text(item["call_id"]).length > 64)
    return invalid(
      `Invalid 'input[${index}].call_id': string too long. Expected a string with maximum length 64.`,
    );
  const allowed = PARTS[type === "function_call_output" ? "output" : text(role)] ?? [];
  const parts = type === "function_call_output" ? output : type === "message" ? content : undefined;
  const other = Array.isArray(parts)
    ? list(parts).find((part) => !allowed.includes(text(part["type"])))
    : undefined;
  return other === undefined
    ? undefined
    : invalid(
        `Invalid value: '${text(other["type"])}'. Supported values are: ${allowed.map((name) => `'${name}'`).join(", ")}.`,
      );
}

export function inputItems(body: Json): Json[] {
  const { input } = body;
  return typeof input === "string" ? [{ type: "message", role: "user", content: input }] : list(input);
}
