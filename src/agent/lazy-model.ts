import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { DEFAULT_MODELS } from "./models/providers.ts";
import { resolveModel } from "./models/resolve.ts";

/** `provider:model`, an instance, or how to get one. */
export type ModelSource = string | BaseChatModel | (() => Promise<BaseChatModel>);

/** A model that is resolved on its first use: construction loads no provider. */
export class LazyModel {
  readonly #given: ModelSource | undefined;
  #resolving: Promise<BaseChatModel> | undefined;
  #resolved: BaseChatModel | undefined;

  /** Default: the first of `DEFAULT_MODELS`. */
  constructor(given: ModelSource | undefined) {
    this.#given = given;
    if (typeof given === "object") this.#resolved = given;
  }

  async get(): Promise<BaseChatModel> {
    if (this.#resolved) return this.#resolved;
    this.#resolving ??= this.#resolve()
      .then((model) => (this.#resolved = model))
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

  async #resolve(): Promise<BaseChatModel> {
    if (typeof this.#given === "function") return this.#given();
    const [preferred] = DEFAULT_MODELS;
    const spec = typeof this.#given === "string" ? this.#given : `${preferred?.provider}:${preferred?.model}`;
    return (await resolveModel({ model: spec, env: process.env })).model;
  }
}
