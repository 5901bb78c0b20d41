/** Reads values of earlier versions, which stored large parts of them in pieces, by the hash of each. */
import { mapAtMost } from "../../core/concurrency.ts";
import { bytesRecord } from "./bytes-record.ts";

/** Strings in their JSON with this prefix refer to pieces. */
export const PIECES = "deepagent-blobs:";
const REFERENCE = /^deepagent-blobs:(text|bytes|list|record):([\w-]{43}(?:\.[\w-]{43})*)$/;

/** Parses serialised JSON and puts all pieces in their places. */
export function joined(json: string, piece: (name: string) => string): unknown {
  return JSON.parse(json, (_key, value: unknown) => {
    const [, kind, names] = (typeof value === "string" && REFERENCE.exec(value)) || [];
    if (kind === undefined || names === undefined) return value;
    const pieces = names.split(".").map(piece);
    if (kind === "bytes" || kind === "text") {
      const text = pieces.map((one): unknown => JSON.parse(one)).join("");
      return kind === "text" ? text : bytesRecord(text);
    }
    const entries = pieces.flatMap((one) => joined(one, piece));
    return kind === "list" ? entries : Object.fromEntries(entries as [string, unknown][]); // as they were stored
  });
}

/** The same with asynchronous `fetch`, which is called for `atOnce` pieces at a time. */
export async function joinedFromAfar(
  json: string,
  fetch: (name: string) => Promise<string>,
  atOnce: number,
): Promise<unknown> {
  const fetched = new Map<string, string>();
  for (;;) {
    const missing = new Set<string>();
    const value = joined(json, (name) => fetched.get(name) ?? (missing.add(name), "[]"));
    if (missing.size === 0) return value;
    await mapAtMost(atOnce, [...missing], async (name) => fetched.set(name, await fetch(name)));
  }
}
