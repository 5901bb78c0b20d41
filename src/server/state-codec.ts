import {
  createRequestStateCodec,
  type RequestStateCodec,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import type { ServerDeps } from "./deps.ts";

/** How long a person may take; an approval itself never expires. */
const TTL_SECONDS = 24 * 60 * 60;

/**
 * What a client carries from a question to its answer: signed, readable, so ids and nothing else. It only
 * selects; whether an approval can still be decided is up to its row.
 */
export const ApprovalState = z.object({
  run: z.string(),
  /** How often this call has asked, from 1. */
  round: z.int(),
  /** When it asked, in milliseconds. */
  at: z.number(),
  asked: z.array(
    z.object({
      key: z.string(),
      approval: z.string(),
      /** Of tool and arguments as they were shown. */
      digest: z.string(),
    }),
  ),
  /** Approvals left open by the person; not asked again in this call. */
  left: z.array(z.string()),
});
export type ApprovalState = z.output<typeof ApprovalState>;

export interface StateCodec {
  mint: (state: ApprovalState, context: ServerContext) => Promise<string>;
  /** Throws unless the state was made here, for this principal and method, and has not expired. */
  verify: (state: string, context: ServerContext) => Promise<ApprovalState>;
}

/** The key is read when the first state is made or checked. */
export function createStateCodec(deps: Pick<ServerDeps, "stateKey" | "principalOf">): StateCodec {
  let codec: Promise<RequestStateCodec<ApprovalState>> | undefined;
  const loaded = (): Promise<RequestStateCodec<ApprovalState>> => {
    codec ??= deps.stateKey().then(
      (key) =>
        createRequestStateCodec<ApprovalState>({ key, ttlSeconds: TTL_SECONDS, bind: bindingOf(deps) }),
      (error: unknown) => {
        codec = undefined;
        throw error;
      },
    );
    return codec;
  };
  return {
    mint: async (state, context) => (await loaded()).mint(state, context),
    verify: async (state, context) => ApprovalState.parse(await (await loaded()).verify(state, context)),
  };
}

function bindingOf({ principalOf }: Pick<ServerDeps, "principalOf">) {
  return (context: ServerContext): string =>
    [context.mcpReq.method, principalOf(context.http?.authInfo), context.sessionId ?? ""].join("\0");
}
