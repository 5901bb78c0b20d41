import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { DEFAULT_MODELS } from "./models/providers.ts";
import { resolveModel } from "./models/resolve.ts";

/** A model that is resolved on its first use: construction loads no provider. */
export class LazyModel {
  readonly #given: string | BaseChatModel | undefined;
  #resolving: Promise<BaseChatModel> | undefined;
  #resolved: BaseChatModel | undefined;

  /** `given`: `provider:model` or an instance. Default: the first of `DEFAULT_MODELS`. */
  constructor(given: string | BaseChatModel | undefined) {
    this.#given = given;
    if (typeof given === "object") this.#resolved = given;
  }

  async get(): Promise<BaseChatModel> {
    if (this.#resolved) return this.#resolved;
    this.#resolving ??= resolveModel({ model: this.#spec(), env: process.env })
      .then(({ model }) => (this.#resolved = model))
      .finally(() => (this.#resolving = undefined));
    return this.#resolving;
  }

  /** Whether the model can be given media of this type; what its profile does not say is taken as yes. */
  acceptsMedia(mimeType: string): boolean {
    const profile = this.#resolved?.profile;
    if (mimeType.startsWith("image/")) return profile?.imageInputs ?? true;
    if (mimeType.startsWith("audio/")) return profile?.audioInputs ?? true;
    if (mimeType.startsWith("video/")) return profile?.videoInputs ?? true;
    return mimeType !== "application/pdf" || (profile?.pdfInputs ?? true);
  }

  #spec(): string {
    const [preferred] = DEFAULT_MODELS;
    return typeof this.#given === "string" ? this.#given : `${preferred?.provider}:${preferred?.model}`;
  }
}
