/** Finds the kind of a body by its content type and its first bytes. */
import { oneLine } from "../core/text.ts";
import { orElse } from "../core/errors.ts";
import type { Body } from "./body.ts";

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

/** The text of a body. `named`: the charset of its content type; `isMarkup`: it may name one itself. */
export function decodeBody({ bytes, isCut }: Body, named: string | undefined, isMarkup: boolean): string {
  const head = bytes.toString("hex", 0, 3);
  const decoder =
    findDecoder(BYTE_ORDER_MARKS.find(([mark]) => head.startsWith(mark))?.[1]) ??
    findDecoder(named) ??
    (isMarkup ? findDecoder(declaredCharset(bytes)) : undefined) ??
    orElse(() => {
      new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isCut });
      return new TextDecoder("utf-8");
    }, new TextDecoder("windows-1252"));
  // Node 20 reads windows-1252 as Latin-1, without its curly quotes, unless it is a stream. A body that was cut may end
  // inside a character, which is then left out.
  const text = decoder.decode(bytes, { stream: true }) + (isCut ? "" : decoder.decode());
  return text.replaceAll("\0", "");
}

/** Encodings by the mark at the beginning in hexadecimal digits. It counts before all else. */
const BYTE_ORDER_MARKS = [
  ["efbbbf", "utf-8"],
  ["feff", "utf-16be"],
  ["fffe", "utf-16le"],
] as const;

/** Returns undefined for a name that is not an encoding. */
const findDecoder = (label: string | undefined): InstanceType<typeof TextDecoder> | undefined =>
  label === undefined ? undefined : orElse(() => new TextDecoder(label), undefined);

function declaredCharset(bytes: Buffer): string | undefined {
  const head = bytes.toString("latin1", 0, 1024);
  const [, label] =
    /<meta\s[^<>]{0,500}?charset\s*=[\s"']*([\w.:-]+)/i.exec(head) ??
    /^\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)/i.exec(head) ??
    [];
  // It could not have been read if it were true.
  return label !== undefined && /^utf-?16/i.test(label) ? "utf-8" : label;
}
