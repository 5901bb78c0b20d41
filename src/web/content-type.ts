/** Finds the kind of a body by its content type and its first bytes. */
import { oneLine } from "../core/text.ts";

export interface Content {
  kind: "html" | "pdf" | "text" | "other";
  charset?: string;
  /** Such as `text/html`, for people. */
  name: string;
}

/** Types that are text under another name than `text/…`. */
const TEXT_TYPES =
  /^(text\/.+|application\/(.+\+)?(json|xml|yaml|toml|javascript|ecmascript|x-ndjson|x-sh|sql|graphql))$/;
/** Types that servers send for unknown files. */
const UNKNOWN_TYPES = ["", "application/octet-stream", "binary/octet-stream", "unknown/unknown"];

export function readContentType(header: string | undefined, bytes: Buffer): Content {
  const [type = "", ...parameters] = (header ?? "").split(";");
  const named = oneLine(type, 100).toLowerCase();
  const charset = parameters
    .map((parameter) => /^\s*charset\s*=\s*"?([^"\s]+)"?\s*$/i.exec(parameter)?.[1])
    .find((found) => found !== undefined);
  const found = {
    name: named === "" ? "of an unknown type" : named,
    ...(charset === undefined ? {} : { charset }),
  };
  const head = bytes.toString("latin1", 0, 4096);
  if (named === "application/pdf" || (UNKNOWN_TYPES.includes(named) && head.startsWith("%PDF-")))
    return { kind: "pdf", ...found };
  if (named === "text/html" || named === "application/xhtml+xml") return { kind: "html", ...found };
  if (!UNKNOWN_TYPES.includes(named)) return { kind: TEXT_TYPES.test(named) ? "text" : "other", ...found };
  if (/^\s*(<!--[\s\S]{0,1000}?-->\s*)?<(!doctype html|html|head|body)[\s>]/i.test(head))
    return { kind: "html", ...found };
  // oxlint-disable-next-line no-control-regex -- it matches control characters
  return { kind: /[\u0000-\u0008\u000e-\u001a]/.test(head) ? "other" : "text", ...found };
}
