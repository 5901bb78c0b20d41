import { modelFailure } from "./failure.ts";
import { type ResolveOptions, resolveModel } from "./resolve.ts";

/**
 * Asks a model for an answer and stops it after its first words, so that it costs next to nothing. Resolves with the
 * problem as one sentence with its remedy; `undefined`: the model answered.
 */
export async function tryModel({
  signal,
  ...options
}: ResolveOptions & { signal: AbortSignal }): Promise<string | undefined> {
  try {
    const { model } = await resolveModel(options);
    for await (const _piece of await model.stream("Reply with OK.", { signal })) return undefined;
    return undefined;
  } catch (error) {
    return modelFailure(error, options.model).message;
  }
}
