/** Media types that providers accept, and the refusals of others. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { byIdentity } from "../../core/by-identity.ts";
import { defined } from "../../core/unknown.ts";
import { DeepAgentError } from "../../core/errors.ts";
import { type MediaLimits, mediaKind } from "../../core/media.ts";
import { failureFacts } from "./failure.ts";
import table from "./media-limits.json" with { type: "json" };

interface Provider extends Omit<MediaLimits, "accepts"> {
  /** Parts of LangChain's names for the kind of model, of which one is enough; the first row that fits counts. */
  named: string;
  /** The types it takes; a star stands for all of a kind. */
  types: string;
  images?: number;
  /** Side of an image in a request with more than `above` of them. */
  crowd?: { above: number; side: number };
  /** Characters of base64 of one request. */
  request?: number;
}

/** The limits of a model by its provider and its profile. Unknown ones are taken as none. */
export const mediaLimits = byIdentity((model: BaseChatModel) => {
  const providers: readonly Provider[] = table;
  // The last row is that of all others.
  const provider = providers.find(({ named }) =>
    named.split("|").some((name) => model._llmType().includes(name)),
  );
  const { types = "", crowd, images, request, ...limits } = provider ?? {};
  const taken = types.split(" ");
  const { imageInputs, audioInputs, videoInputs, pdfInputs } = model.profile;
  const takes = { image: imageInputs, audio: audioInputs, video: videoInputs, file: pdfInputs };
  const accepts = (mimeType: string): boolean =>
    taken.some((type) => type === mimeType || type === mimeType.replace(/\/.*/, "/*")) &&
    takes[mediaKind(mimeType) ?? "file"] !== false;
  const each = { ...limits, accepts };
  const crowded = crowd && { above: crowd.above, each: { ...each, side: crowd.side } };
  return { each, ...defined({ crowded, images, request }) };
});

export interface MediaRefusal {
  /** The provider's words. */
  text: string;
  /** False if the words are not about media, but the request may have been refused for them. */
  isSure: boolean;
}

/** Reads a failed call; `undefined` if media are not the cause. */
export function mediaRefusal(error: unknown): MediaRefusal | undefined {
  if (error instanceof DeepAgentError) return undefined;
  const { reason, kind, status, text } = failureFacts(error);
  if (kind === "media") return { text, isSure: true };
  const isOpen = kind === undefined && reason === "model_error" && (status === 400 || status === 422);
  return isOpen ? { text, isSure: false } : undefined;
}
