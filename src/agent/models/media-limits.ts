/** Media types that providers accept, and the refusals of others. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { byIdentity } from "../../core/by-identity.ts";
import { defined } from "../../core/unknown.ts";
import { DeepAgentError } from "../../core/errors.ts";
import { type MediaLimits, mediaKind } from "../../core/media.ts";
import { modelClass } from "../messages/mend.ts";
import { failureFacts } from "./failure.ts";

/**
 * The limits of a model by its profile and its class. `request`: characters of base64; `crowded`: in a request with more
 * than `above` images.
 */
export const mediaLimits = byIdentity((model: BaseChatModel) => {
  const { types, crowd, images, request, ...limits } = modelClass(model);
  const taken = types?.split(" ") ?? [];
  const { imageInputs, audioInputs, videoInputs, pdfInputs } = model.profile;
  const takes = { image: imageInputs, audio: audioInputs, video: videoInputs, file: pdfInputs };
  const accepts = (mimeType: string): boolean =>
    taken.some((type) => type === mimeType || type === mimeType.replace(/\/.*/, "/*")) &&
    takes[mediaKind(mimeType) ?? "file"] !== false;
  const each: MediaLimits = { ...limits, accepts };
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
