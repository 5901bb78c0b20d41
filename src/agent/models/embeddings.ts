import { ConfigurationError } from "../../core/errors.ts";
import { type Embedder, EmbeddingFailure } from "../../core/embedder.ts";
import { fill } from "../../core/text.ts";
import { type Environment, resolveConnection, modelChoice } from "./choose.ts";
import { failureFacts, modelFailure } from "./failure.ts";
import texts from "./texts.json" with { type: "json" };

/** Longest time for a request, in milliseconds. A search waits for the vector of its query. */
const TIMEOUT_MS = { documents: 60_000, query: 8_000 };

interface EmbedderOptions {
  /** `openai:model`; the endpoint may be any that speaks OpenAI's protocol. */
  model: string;
  env: Environment;
}

/** Why vectors cannot be made with this setting; looks at names and variables only. */
export function embedderProblem({ model, env }: EmbedderOptions) {
  const choice = modelChoice({ model, env });
  if (!choice.ok) return { code: choice.code, message: choice.message };
  if (choice.provider === "openai") return undefined;
  return { code: "model_unknown", message: fill(texts.embeddingsNeedOpenAi, choice.spec) };
}

/** Vectors by a service that speaks OpenAI's protocol. Loads its package with the first texts. */
export function createEmbedder({ model, env }: EmbedderOptions): Embedder {
  return {
    name: model,
    async embed(texts, purpose, signal) {
      const problem = embedderProblem({ model, env });
      if (problem !== undefined) throw new EmbeddingFailure(problem.code, problem.message);
      try {
        const service = await openService({ model, env }, TIMEOUT_MS[purpose], signal);
        const vectors: readonly unknown[] = await service.embedDocuments([...texts]);
        const length = Array.isArray(vectors[0]) ? vectors[0].length : 0;
        const checked = vectors.filter(
          (vector): vector is number[] =>
            Array.isArray(vector) && vector.length === length && vector.every(Number.isFinite),
        );
        if (length > 0 && checked.length === texts.length) return checked;
        throw noVectors(model);
      } catch (thrown) {
        throw embeddingFailure(thrown, model);
      }
    },
  };
}

async function openService({ model, env }: EmbedderOptions, timeout: number, signal: AbortSignal) {
  const { OpenAIEmbeddings } = await import("@langchain/openai").catch((error: unknown) => {
    throw new ConfigurationError("model_package_missing", texts.embeddingsPackage, { cause: error });
  });
  const { url, apiKey } = resolveConnection("openai", env);
  return new OpenAIEmbeddings({
    model: model.slice(model.indexOf(":") + 1).trim(),
    apiKey,
    timeout,
    // The caller decides whether and when to try again.
    maxRetries: 0,
    stripNewLines: false,
    // Not every server knows the shorter form.
    encodingFormat: "float",
    configuration: {
      baseURL: url,
      fetch: (input, init) =>
        fetch(input, { ...init, signal: AbortSignal.any(init?.signal ? [init.signal, signal] : [signal]) }),
    },
  });
}

const noVectors = (model: string, cause?: unknown): EmbeddingFailure =>
  new EmbeddingFailure("embedding_invalid", fill(texts.noVectors, model), { cause });

function embeddingFailure(thrown: unknown, model: string): EmbeddingFailure {
  if (thrown instanceof EmbeddingFailure) return thrown;
  if (thrown instanceof ConfigurationError)
    return new EmbeddingFailure(thrown.code, thrown.message, { cause: thrown });
  const { status, reason } = failureFacts(thrown);
  // The answer has no field of an embedding.
  if (status === undefined && reason === "model_error") return noVectors(model, thrown);
  const refusesTexts = reason === "context_overflow" || status === 400 || status === 422;
  const { code, message } = modelFailure(thrown, model);
  return new EmbeddingFailure(code, message, { refusesTexts, cause: thrown });
}
