import types from "./mime-types.json" with { type: "json" };

/** File name extensions by type. All other files are text unless their content is binary. */
const TYPES = new Map(
  Object.entries(types).flatMap(([type, names]) => names.split(" ").map((name) => [name, type] as const)),
);

export const DEFAULT_TEXT_TYPE = "text/plain";

/** The type of a path by its extension; `text/plain` if the extension is unknown. */
export function mimeTypeOf(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const dot = name.lastIndexOf(".");
  return TYPES.get(dot === -1 ? "" : name.slice(dot + 1).toLowerCase()) ?? DEFAULT_TEXT_TYPE;
}

export function isTextType(mimeType: string): boolean {
  const bare = (mimeType.split(";")[0] ?? "").trim().toLowerCase();
  return (
    /^application\/(?:jsonl?|xml|yaml|toml|sql|javascript|typescript)$/.test(bare) ||
    bare.startsWith("text/") ||
    bare.endsWith("+xml") ||
    bare.endsWith("+json")
  );
}

/** True if bytes contain a NUL, which makes them binary. */
export const hasNul = (bytes: Uint8Array): boolean => bytes.includes(0);

/** Decodes standard base64, also with line breaks; undefined for anything else. */
export function decodeBase64(text: string): Uint8Array | undefined {
  const compact = text.replace(/[\r\n]/g, "");
  const isBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(compact);
  return compact.length % 4 === 0 && isBase64 ? plainBytes(Buffer.from(compact, "base64")) : undefined;
}

/** A plain view of bytes. Backends never return a `Buffer`, whose `slice` and comparisons differ. */
export const plainBytes = (bytes: Uint8Array): Uint8Array =>
  new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
