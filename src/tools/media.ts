import { displayName } from "../core/text.ts";
import { Buffer } from "node:buffer";
import { binaryTooLarge } from "../backends/errors.ts";
import { baseName } from "../backends/paths.ts";
import { backendError } from "./call.ts";
import { type ContentBlock, type ToolResult, toolError } from "./tool.ts";

/** Largest binary file given to a model. */
const MAX_MEDIA_BYTES = 10 * 1024 * 1024;

/** The LangChain content block that carries media of this MIME type; `undefined`: no model takes it. */
function mediaBlockType(mimeType: string): "image" | "audio" | "video" | "file" | undefined {
  const type = /^(image|audio|video)\//.exec(mimeType)?.[1];
  if (type === "image" || type === "audio" || type === "video") return type;
  return mimeType === "application/pdf" ? "file" : undefined;
}

/** Bytes of a binary file as the model gets them: one content block, or the error that says why not. */
export function mediaResult(
  path: string,
  mimeType: string,
  bytes: Uint8Array,
  accepts: (mimeType: string) => boolean,
): ToolResult {
  const type = mediaBlockType(mimeType);
  if (type === undefined || !accepts(mimeType)) {
    return toolError(
      `File '${displayName(path)}' is binary (${mimeType}, ${bytes.length} bytes) and cannot be shown as text`,
      { code: "binary" },
    );
  }
  if (bytes.length > MAX_MEDIA_BYTES) return backendError(binaryTooLarge(bytes.length), path);
  const block: ContentBlock = {
    type,
    mimeType,
    data: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64"),
    ...(type === "file" ? { metadata: { filename: displayName(baseName(path)) } } : {}),
  };
  return { content: [block], artifact: { path, mimeType, size: bytes.length } };
}
