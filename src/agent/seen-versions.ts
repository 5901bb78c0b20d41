import { type BaseMessage, ToolMessage } from "@langchain/core/messages";

/** Tools whose answer names a file and the version of it that the model then knows. */
const SHOWING = new Set<unknown>(["read_file", "write_file", "edit_file"]);

/** Version of the file at `path` that a conversation read, wrote or edited last; `undefined`: it never did. */
export function versionSeen(messages: readonly BaseMessage[], path: string): string | undefined {
  for (let i = messages.length - 1; i >= 0; i -= 1) {
    const message = messages[i];
    if (!ToolMessage.isInstance(message) || !SHOWING.has(message.name)) continue;
    const facts = message.artifact as { path?: unknown; version?: unknown } | undefined; // ours, or anything
    if (facts?.path === path && typeof facts.version === "string") return facts.version;
  }
  return undefined;
}
