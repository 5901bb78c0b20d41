import type { CallToolResult } from "@modelcontextprotocol/client";
import { cutMiddle } from "../../core/text.ts";
import { type ContentBlock, type ToolResult, toolError } from "../../tools/tool.ts";

type McpBlock = CallToolResult["content"][number];

/** Text beyond this is cut; what is larger than the conversation can take goes into a file before. */
const MAX_TEXT = 1_000_000;
/** Base64 characters of media beyond which a block is only described. */
const MAX_MEDIA = 7_000_000;

/** A server's answer as the model reads it. Media the model does not take is described. */
export function resultOf(answer: CallToolResult, accepts: (mimeType: string) => boolean): ToolResult {
  const blocks = answer.content.map((block) => blockOf(block, accepts));
  const texts = blocks.flatMap((block) => (block.type === "text" ? [String(block["text"])] : []));
  const text = cutMiddle(texts.join("\n\n") || structuredText(answer, blocks), MAX_TEXT);
  if (answer.isError === true) return toolError(text || "the tool failed and gave no reason");
  const media = blocks.filter(({ type }) => type !== "text");
  if (media.length === 0) return { content: text || "The tool answered with nothing." };
  return { content: [...(text === "" ? [] : [{ type: "text", text }]), ...media] };
}

function structuredText({ structuredContent }: CallToolResult, blocks: readonly ContentBlock[]): string {
  return structuredContent === undefined || blocks.length > 0 ? "" : JSON.stringify(structuredContent);
}

function blockOf(block: McpBlock, accepts: (mimeType: string) => boolean): ContentBlock {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text };
    case "image":
    case "audio":
      return mediaBlock(block, accepts);
    case "resource_link":
      return text(`[Resource ${block.uri}${block.title ? `: ${block.title}` : ""}]`);
    case "resource": {
      const { resource } = block;
      if ("text" in resource) return text(`[Resource ${resource.uri}]\n${resource.text}`);
      return text(`[Resource ${resource.uri}: ${resource.mimeType ?? "binary"}, not shown]`);
    }
    default:
      return text("[Content of an unknown kind, not shown]");
  }
}

function mediaBlock(
  { type, mimeType, data }: Extract<McpBlock, { type: "image" | "audio" }>,
  accepts: (mimeType: string) => boolean,
): ContentBlock {
  if (data.length > MAX_MEDIA || !accepts(mimeType)) {
    return text(`[${type} ${mimeType}, about ${Math.ceil((data.length * 3) / 4096)} kB, not shown]`);
  }
  return { type, mimeType, data };
}

const text = (words: string): ContentBlock => ({ type: "text", text: words });
