/** Types by file name extension; everything else is text until its content says otherwise. */
const TYPES: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  bmp: "image/bmp",
  ico: "image/x-icon",
  tif: "image/tiff",
  tiff: "image/tiff",
  heic: "image/heic",
  heif: "image/heif",
  avif: "image/avif",
  mp3: "audio/mpeg",
  wav: "audio/wav",
  ogg: "audio/ogg",
  oga: "audio/ogg",
  flac: "audio/flac",
  m4a: "audio/mp4",
  aac: "audio/aac",
  aiff: "audio/aiff",
  mp4: "video/mp4",
  m4v: "video/mp4",
  mov: "video/quicktime",
  webm: "video/webm",
  mkv: "video/x-matroska",
  avi: "video/x-msvideo",
  mpeg: "video/mpeg",
  mpg: "video/mpeg",
  pdf: "application/pdf",
  zip: "application/zip",
  gz: "application/gzip",
  tgz: "application/gzip",
  bz2: "application/x-bzip2",
  xz: "application/x-xz",
  zst: "application/zstd",
  "7z": "application/x-7z-compressed",
  rar: "application/vnd.rar",
  tar: "application/x-tar",
  jar: "application/java-archive",
  wasm: "application/wasm",
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  pptx: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
  doc: "application/msword",
  xls: "application/vnd.ms-excel",
  ppt: "application/vnd.ms-powerpoint",
  woff: "font/woff",
  woff2: "font/woff2",
  ttf: "font/ttf",
  otf: "font/otf",
  sqlite: "application/vnd.sqlite3",
  md: "text/markdown",
  markdown: "text/markdown",
  html: "text/html",
  htm: "text/html",
  css: "text/css",
  csv: "text/csv",
  js: "text/javascript",
  mjs: "text/javascript",
  json: "application/json",
  jsonl: "application/jsonl",
  xml: "application/xml",
  svg: "image/svg+xml",
  yaml: "application/yaml",
  yml: "application/yaml",
  toml: "application/toml",
  sql: "application/sql",
};

export const DEFAULT_TEXT_TYPE = "text/plain";
export const DEFAULT_BINARY_TYPE = "application/octet-stream";

const TEXT_APPLICATIONS = new Set([
  "application/json",
  "application/jsonl",
  "application/xml",
  "application/yaml",
  "application/toml",
  "application/sql",
  "application/javascript",
  "application/typescript",
]);

/** The type a path's extension stands for; `text/plain` when it stands for none. */
export function mimeTypeOf(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const dot = name.lastIndexOf(".");
  const extension = dot === -1 ? "" : name.slice(dot + 1).toLowerCase();
  return (Object.hasOwn(TYPES, extension) ? TYPES[extension] : undefined) ?? DEFAULT_TEXT_TYPE;
}

/** Whether content of this type is text. */
export function isTextType(mimeType: string): boolean {
  const bare = (mimeType.split(";")[0] ?? "").trim().toLowerCase();
  return (
    bare.startsWith("text/") || TEXT_APPLICATIONS.has(bare) || bare.endsWith("+xml") || bare.endsWith("+json")
  );
}

/** Whether bytes are binary: text has no NUL. */
export const hasNul = (bytes: Uint8Array): boolean => bytes.includes(0);

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** The bytes of standard base64 (line breaks allowed); undefined when it is not. */
export function decodeBase64(text: string): Uint8Array | undefined {
  const compact = text.replace(/[\r\n]/g, "");
  if (compact.length % 4 !== 0 || !BASE64.test(compact)) return undefined;
  return plainBytes(Buffer.from(compact, "base64"));
}

/** A plain view: what leaves a backend is no `Buffer`, whose `slice` and comparisons differ. */
export const plainBytes = (bytes: Uint8Array): Uint8Array =>
  new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
