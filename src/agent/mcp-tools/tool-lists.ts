import type { Transport } from "@modelcontextprotocol/client";
import { headOf, shownName } from "../../core/text.ts";

/** Longest name, in characters; the specification asks for at most 128. */
const MAX_NAME = 256;
const MAX_DESCRIPTION = 4000;
/** Characters of a schema. All of it is sent with every request to the model. */
const MAX_SCHEMA = 100_000;

/** Tools that are not taken on; of many, only some are named. */
export interface RefusedTools {
  count: number;
  tools: readonly string[];
  problem: string;
}

/**
 * Bounds the lists of tools that come over a connected transport, before anything looks at them: tools with a
 * longer name or schema are left out, longer descriptions are cut, and what is not known of a tool is dropped.
 */
export function boundToolLists(transport: Transport, onRefused: (refused: RefusedTools) => void): void {
  const { onmessage } = transport;
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport is no event target
  transport.onmessage = (message, extra) => {
    const result = "result" in message ? message.result : {};
    if (Array.isArray(result["tools"])) {
      const { kept, refused } = bounded(result["tools"]);
      result["tools"] = kept;
      if (refused.length > 0) {
        onRefused({ count: refused.length, tools: refused.slice(0, 10).map(shownName), problem: PROBLEM });
      }
    }
    onmessage?.(message, extra);
  };
}

const PROBLEM = `a name of more than ${MAX_NAME} characters, or a schema of more than ${MAX_SCHEMA}`;

function bounded(tools: readonly unknown[]): { kept: unknown[]; refused: string[] } {
  const kept: unknown[] = [];
  const refused: string[] = [];
  for (const tool of tools) {
    const { name, title, description, inputSchema, outputSchema, annotations } = Object(tool) as ToolFields;
    if (typeof name !== "string") continue;
    if (name.length > MAX_NAME || isLonger(inputSchema, MAX_SCHEMA)) refused.push(name);
    else {
      kept.push({
        name,
        inputSchema,
        description: shortened(description ?? title, MAX_DESCRIPTION),
        title: shortened(title, MAX_NAME),
        outputSchema: isLonger(outputSchema, MAX_SCHEMA) ? undefined : outputSchema,
        annotations: isLonger(annotations, MAX_DESCRIPTION) ? undefined : annotations,
      });
    }
  }
  return { kept, refused };
}

/** The fields of a tool's description that are read. The server may leave each out, or put anything there. */
type ToolFields = Partial<
  Record<"name" | "title" | "description" | "inputSchema" | "outputSchema" | "annotations", unknown>
>;

const shortened = (text: unknown, limit: number): unknown =>
  typeof text === "string" ? headOf(text, limit) : undefined;

/** Whether a JSON value has more than so many characters, its own punctuation left aside. */
export function isLonger(value: unknown, limit: number): boolean {
  const waiting = [value];
  let left = limit;
  while (waiting.length > 0 && left >= 0) {
    const one = waiting.pop();
    left -= typeof one === "string" ? one.length + 1 : 1;
    if (typeof one !== "object" || one === null) continue;
    for (const [key, inside] of Object.entries(one)) {
      left -= key.length;
      waiting.push(inside);
    }
  }
  return left < 0;
}
