/** The signed state that a client carries from a question to its answer, and the keys that sign it. */
import { join } from "node:path";
import { type ServerContext, createRequestStateCodec } from "@modelcontextprotocol/server";
import { z } from "zod";
import { errorMessage } from "../../core/errors.ts";
import { loadKey, readKey } from "../../core/key-file.ts";
import type { ServerDeps } from "../contracts/deps.ts";

/**
 * State that a client carries from a question to its answer. It is signed but readable, so it holds only ids and
 * digests. It only selects; rows record whether it was used before and which requests still wait.
 */
export const ApprovalState = z.object({
  /** Each id is accepted once. */
  id: z.string(),
  run: z.string(),
  /** Digest of the tool and the arguments of the call that asked, with which it has to come again. */
  call: z.string(),
  /** Round of questions of this call, from 1. */
  round: z.int(),
  /** When it asked, in milliseconds. */
  at: z.number(),
  asked: z.array(
    z.object({
      key: z.string(),
      /** Id of an approval or of another question. */
      approval: z.string(),
      /** Digest of the content shown. */
      digest: z.string(),
    }),
  ),
  /** Key of the request to open the local page, in place of forms for `asked`. */
  page: z.string().optional(),
  /** Ids of requests that the person left open; they are not asked again in this call. */
  left: z.array(z.string()),
  /** Model calls that the client was asked to answer. */
  models: z.array(z.object({ key: z.string(), call: z.string() })).optional(),
});
export type ApprovalState = z.output<typeof ApprovalState>;

export type StateCodec = ReturnType<typeof createStateCodec>;

/**
 * Signs with the current key and accepts signatures of the previous one. Keys are read for every state, because any
 * process may have replaced them. Refused states are logged: clients do not send them.
 */
export function createStateCodec(
  deps: Pick<ServerDeps, "stateKey" | "previousStateKey" | "principalOf" | "logger">,
) {
  const bind = ({ mcpReq, http, sessionId = "" }: ServerContext): string =>
    [mcpReq.method, deps.principalOf(http?.authInfo), sessionId].join("\0");
  const codecOf = (key: Uint8Array) =>
    // A person may take a day to answer; the request stays open longer.
    createRequestStateCodec<ApprovalState>({ key, ttlSeconds: 24 * 60 * 60, bind });

  const verify = async (state: string, context: ServerContext): Promise<ApprovalState> => {
    try {
      return await codecOf(await deps.stateKey()).verify(state, context);
    } catch (error) {
      const previous = await deps.previousStateKey?.();
      // The message of the SDK's codec for a signature by another key.
      if (previous === undefined || errorMessage(error) !== "mac") throw error;
      return codecOf(previous).verify(state, context);
    }
  };
  return {
    mint: async (state: ApprovalState, context: ServerContext) =>
      codecOf(await deps.stateKey()).mint(state, context),
    /** Throws unless the state was made here, for this principal and method, and has not expired. */
    verify: async (state: string, context: ServerContext): Promise<ApprovalState> => {
      const facts = { principal: deps.principalOf(context.http?.authInfo), method: context.mcpReq.method };
      const verified = await verify(state, context).catch((error: unknown) => {
        deps.logger.warn("state.refused", { ...facts, reason: errorMessage(error) });
        throw error;
      });
      return ApprovalState.parse(verified);
    },
  };
}

const FILE = "state.key";

/** Loads the secret that signs `requestState`, shared by all processes with this data directory. */
export const loadStateKey = (dataDir: string): Promise<Uint8Array> => loadKey(dataDir, FILE);

/** Loads the key that was used before, where a person put it aside to have a new one made. */
export const loadPreviousStateKey = (dataDir: string): Promise<Uint8Array | undefined> =>
  readKey(join(dataDir, `${FILE}.previous`));
