/** Reads JSON as models write it. */
import { parsedJson } from "./unknown.ts";

/**
 * The value of a JSON text, also with raw control characters and unknown escapes in its strings, and with line breaks
 * written out or commas at the ends of lists outside of them, or inside a code fence. `undefined`: it is not complete.
 */
export function looseJson(text: string): unknown {
  const body = text.trim().replace(/^```(?:json)?[ \t]*\n([^]*)\n[ \t]*```$/, "$1");
  return parsedJson(text) ?? parsedJson(body.replaceAll(TOKEN, soundToken));
}

/** A string, a comma at the end of a list or object, or a line break as an escape outside of strings. */
const TOKEN = /"[^"\\]*(?:\\[^][^"\\]*)*"?|,(?=(?:\s|\\[nrt]){0,100}[}\]])|\\[nrt]/g;

function soundToken(token: string): string {
  if (!token.startsWith('"')) return token === "," ? "" : " ";
  return token
    .replaceAll(/\\(u[\da-f]{4}|["\\/bfnrt])|\\/gi, (escape, known?: string) =>
      known === undefined ? `\\${escape}` : escape,
    )
    .replaceAll(
      // oxlint-disable-next-line no-control-regex -- it matches control characters
      /[\u0000-\u001f]/g,
      (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
}
