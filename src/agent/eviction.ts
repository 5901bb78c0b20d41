import { type ToolMessage } from "@langchain/core/messages";
import type { Backend, FilesUpdate } from "../backends/backend.ts";
import { sanitizeToolCallId } from "../backends/paths.ts";
import { headOf } from "../core/text.ts";
import { textOf } from "./message-text.ts";

/** Where results that are too large for the conversation are kept. */
const RESULTS_FOLDER = "/large_tool_results";
const PREVIEW_LINES = 10;
const PREVIEW_LINE_CHARS = 1000;
const CHARS_PER_TOKEN = 4;

/**
 * Moves the text of a tool message that exceeds `tokens` (about four characters each) into a file, and
 * leaves a preview and the file's path in its place. Blocks other than text stay in the message.
 *
 * @returns the change of thread files, when the file is one; `undefined` when nothing was moved.
 */
export async function evictLargeResult(
  message: ToolMessage,
  backend: Backend,
  tokens: number,
): Promise<FilesUpdate | undefined> {
  const text = textOf(message);
  if (text.length <= tokens * CHARS_PER_TOKEN) return undefined;
  const path = `${RESULTS_FOLDER}/${sanitizeToolCallId(message.tool_call_id)}`;
  const written = await backend.write(path, text, { mode: "overwrite" });
  replaceText(
    message,
    written.error === undefined
      ? preview(message.name ?? "tool", text, path)
      : `${headOf(text, tokens * CHARS_PER_TOKEN)}\n[result cut: could not be saved]`,
  );
  return written.filesUpdate ?? undefined;
}

function preview(tool: string, text: string, path: string): string {
  const lines = text.split("\n", PREVIEW_LINES).map((line) => headOf(line, PREVIEW_LINE_CHARS));
  return `The result of ${tool} is too large to show (${text.length} characters). It is saved in ${path}. It begins:

${lines.join("\n")}

Read more of it with read_file and its offset and limit, or search it with grep.`;
}

function replaceText(message: ToolMessage, text: string): void {
  if (typeof message.content === "string") {
    message.content = text;
    return;
  }
  message.content = [{ type: "text", text }, ...message.content.filter((block) => block.type !== "text")];
}
