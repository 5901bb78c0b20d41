/** File name extensions by type. All other files are text unless their content is binary. */
const TYPES = new Map(
  `
  image/png png, image/jpeg jpg jpeg, image/gif gif, image/webp webp, image/bmp bmp, image/x-icon ico,
  image/tiff tif tiff, image/heic heic, image/heif heif, image/avif avif,
  audio/mpeg mp3, audio/wav wav, audio/ogg ogg oga, audio/flac flac, audio/mp4 m4a, audio/aac aac,
  audio/aiff aiff,
  video/mp4 mp4 m4v, video/quicktime mov, video/webm webm, video/x-matroska mkv, video/x-msvideo avi,
  video/mpeg mpeg mpg,
  application/pdf pdf, application/zip zip, application/gzip gz tgz, application/x-bzip2 bz2,
  application/x-xz xz, application/zstd zst, application/x-7z-compressed 7z, application/vnd.rar rar,
  application/x-tar tar, application/java-archive jar, application/wasm wasm,
  application/vnd.openxmlformats-officedocument.wordprocessingml.document docx,
  application/vnd.openxmlformats-officedocument.spreadsheetml.sheet xlsx,
  application/vnd.openxmlformats-officedocument.presentationml.presentation pptx,
  application/msword doc, application/vnd.ms-excel xls, application/vnd.ms-powerpoint ppt,
  font/woff woff, font/woff2 woff2, font/ttf ttf, font/otf otf, application/vnd.sqlite3 sqlite,
  text/markdown md markdown, text/html html htm, text/css css, text/csv csv, text/javascript js mjs,
  application/json json, application/jsonl jsonl, application/xml xml, image/svg+xml svg,
  application/yaml yaml yml, application/toml toml, application/sql sql
`
    .split(",")
    .map((row) => row.trim().split(" "))
    .flatMap(([type = "", ...extensions]) => extensions.map((extension) => [extension, type] as const)),
);

export const DEFAULT_TEXT_TYPE = "text/plain";
export const DEFAULT_BINARY_TYPE = "application/octet-stream";

const TEXT_APPLICATIONS = new Set(
  "json jsonl xml yaml toml sql javascript typescript".split(" ").map((name) => `application/${name}`),
);

/** The type of a path by its extension; `text/plain` if the extension is unknown. */
export function mimeTypeOf(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const dot = name.lastIndexOf(".");
  return TYPES.get(dot === -1 ? "" : name.slice(dot + 1).toLowerCase()) ?? DEFAULT_TEXT_TYPE;
}

export function isTextType(mimeType: string): boolean {
  const bare = (mimeType.split(";")[0] ?? "").trim().toLowerCase();
  return (
    bare.startsWith("text/") || TEXT_APPLICATIONS.has(bare) || bare.endsWith("+xml") || bare.endsWith("+json")
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
