import { createHash } from "node:crypto";
import { canonicalJson } from "../core/canonical-json.ts";

/** Stands for a call in signed texts, which clients can read. */
export const callDigest = (tool: string, args: unknown): string =>
  createHash("sha256")
    .update(canonicalJson([tool, args]))
    .digest("base64url")
    .slice(0, 22);
