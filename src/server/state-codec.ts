import {
  createRequestStateCodec,
  type RequestStateCodec,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { errorMessage } from "../core/errors.ts";
import type { ServerDeps } from "./deps.ts";

/** How long a person may take; an approval itself never expires. */
const TTL_SECONDS = 24 * 60 * 60;

/**
 * What a client carries from a question to its answer: signed, readable, so ids and digests and nothing else.
 * It only selects: whether it was used before, and whether an approval can still be decided, is up to rows.
 */
export const ApprovalState = z.object({
  /** Good once. */
  id: z.string(),
  run: z.string(),
  /** Digest of the tool and the arguments of the call that asked, with which it has to come again. */
  call: z.string(),
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
  /** Key of the request to open the local page, in place of forms for `asked`. */
  page: z.string().optional(),
  /** Approvals left open by the person; not asked again in this call. */
  left: z.array(z.string()),
  /** Model calls that the client was asked to answer. */
  models: z.array(z.object({ key: z.string(), call: z.string() })).optional(),
});
export type ApprovalState = z.output<typeof ApprovalState>;

export interface StateCodec {
  mint: (state: ApprovalState, context: ServerContext) => Promise<string>;
  /** Throws unless the state was made here, for this principal and method, and has not expired. */
  verify: (state: string, context: ServerContext) => Promise<ApprovalState>;
}

type CodecDeps = Pick<ServerDeps, "stateKey" | "previousStateKey" | "principalOf" | "logger">;

/**
 * Signs with the current key and accepts what the previous one signed. Keys are read for every state, because
 * any process may have replaced them. Refused states are logged: clients do not send them.
 */
export function createStateCodec(deps: CodecDeps): StateCodec {
  const bind = bindingOf(deps);
  const codecOf = (key: Uint8Array): RequestStateCodec<ApprovalState> =>
    createRequestStateCodec<ApprovalState>({ key, ttlSeconds: TTL_SECONDS, bind });

  const verify = async (state: string, context: ServerContext): Promise<ApprovalState> => {
    try {
      return await codecOf(await deps.stateKey()).verify(state, context);
    } catch (error) {
      const previous = await deps.previousStateKey?.();
      if (previous === undefined || errorMessage(error) !== WRONG_SIGNATURE) throw error;
      return codecOf(previous).verify(state, context);
    }
  };
  return {
    mint: async (state, context) => codecOf(await deps.stateKey()).mint(state, context),
    verify: async (state, context) => {
      const facts = { principal: deps.principalOf(context.http?.authInfo), method: context.mcpReq.method };
      const verified = await verify(state, context).catch((error: unknown) => {
        deps.logger.warn("state.refused", { ...facts, reason: errorMessage(error) });
        throw error;
      });
      return ApprovalState.parse(verified);
    },
  };
}

/** What the codec of the SDK says when the signature is not of its key. */
const WRONG_SIGNATURE = "mac";
function bindingOf({ principalOf }: Pick<ServerDeps, "principalOf">) {
  return (context: ServerContext): string =>
    [context.mcpReq.method, principalOf(context.http?.authInfo), context.sessionId ?? ""].join("\0");
}
