import {
  isJSONRPCRequest,
  PROTOCOL_VERSION_META_KEY,
  ProtocolErrorCode,
  type JSONRPCMessage,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Era } from "./deps.ts";
import { shapeProblem } from "../core/json-shape.ts";

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

/**
 * What is wrong with a message of a connection, where the SDK would not find it: nesting that overflows its
 * checks, too many values, and a revision other than the connection's, which it looks at in the first message only.
 */
export function refusalOf(message: JSONRPCMessage, era: Era | undefined): Refusal | undefined {
  const problem = shapeProblem(message);
  if (problem !== undefined) return { code: ProtocolErrorCode.InvalidRequest, message: problem };
  if (era !== "modern" || !isJSONRPCRequest(message)) return undefined;
  const requested = Enveloped.safeParse(message).data?.params._meta[PROTOCOL_VERSION_META_KEY];
  if (requested === undefined || requested === MODERN_REVISION) return undefined;
  return {
    code: UNSUPPORTED_VERSION,
    message: `Unsupported protocol version: ${requested.slice(0, 100)}`,
    data: { supported: [MODERN_REVISION], requested },
  };
}
