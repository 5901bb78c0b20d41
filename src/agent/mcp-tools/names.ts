import { createHash } from "node:crypto";
import { headOf } from "../../core/text.ts";

/** Longest tool name that every provider takes. */
const MAX_NAME = 64;

/**
 * `server__tool`, in the alphabet of tool names. Server names have no `__` and do not end in `_`, so names
 * of two servers never meet; a tool name that had to be changed or cut is told apart by a digest.
 */
export function offeredName(server: string, tool: string): string {
  const plain = `${server}__${tool.replace(/[^A-Za-z0-9_-]/g, "_")}`;
  if (plain.length <= MAX_NAME && plain === `${server}__${tool}`) return plain;
  const digest = createHash("sha256").update(tool).digest("hex").slice(0, 8);
  return `${headOf(plain, MAX_NAME - digest.length - 1)}_${digest}`;
}
