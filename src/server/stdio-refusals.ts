import {
  isJSONRPCRequest,
  PROTOCOL_VERSION_META_KEY,
  type JSONRPCMessage,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Era } from "./deps.ts";

const UNSUPPORTED_VERSION = -32_022;
const MODERN_REVISION = "2026-07-28";
const Enveloped = z.looseObject({
  params: z.looseObject({ _meta: z.looseObject({ [PROTOCOL_VERSION_META_KEY]: z.string() }) }),
});

export interface Refusal {
  code: number;
  message: string;
  data?: unknown;
}

/** Refuses a revision other than the connection's, for which the SDK looks at the first message only. */
export function refusalOf(message: JSONRPCMessage, era: Era | undefined): Refusal | undefined {
  if (era !== "modern" || !isJSONRPCRequest(message)) return undefined;
  const requested = Enveloped.safeParse(message).data?.params._meta[PROTOCOL_VERSION_META_KEY];
  if (requested === undefined || requested === MODERN_REVISION) return undefined;
  return {
    code: UNSUPPORTED_VERSION,
    message: `Unsupported protocol version: ${requested.slice(0, 100)}`,
    data: { supported: [MODERN_REVISION], requested },
  };
}
