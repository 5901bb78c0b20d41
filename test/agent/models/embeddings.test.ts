import { createServer } from "node:http";
import { describe, expect, it } from "vitest";
import { createEmbedder, embedderProblem } from "../../../src/agent/models/embeddings.ts";
import { EmbeddingFailure } from "../../../src/core/embedder.ts";
import { handSetTime } from "../../support/hand-set-time.ts";
import { meaningOf } from "../../support/wire-server-embeddings.ts";
import { wireServer, type WireReply, type WireRequest } from "../../support/wire-server.ts";
import { addressOf } from "../../support/http-address.ts";

const MODEL = "openai:text-embedding-test";
const vectors = ({ messages }: WireRequest): WireReply => ({
  vectors: messages.map((message) => meaningOf(message.text)),
});

async function service(reply: (request: WireRequest) => WireReply) {
  const server = await wireServer(reply);
  const embedder = createEmbedder({ model: MODEL, env: server.env("openai") });
  const embed = (...texts: string[]) => embedder.embed(texts, "documents", new AbortController().signal);
  return { server, embedder, embed };
}

const failure = async (embedding: Promise<unknown>): Promise<EmbeddingFailure> => {
  const thrown: unknown = await embedding.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (thrown instanceof EmbeddingFailure) return thrown;
  throw new Error(`no EmbeddingFailure: ${String(thrown)}`);
};

describe("an embedder", () => {
  it("gives a vector for each text, in order, in one request", async () => {
    const { server, embed } = await service(vectors);
    const texts = ["the harbour\nat night", "tea", "배포"];
    expect(await embed(...texts)).toEqual(texts.map(meaningOf));
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]?.body).toEqual({
      model: "text-embedding-test",
      input: texts,
      encoding_format: "float",
    });
  });

  it.each<[string, WireReply, { code: string; message: RegExp; refusesTexts?: boolean }]>([
    [
      "a rate limit",
      { status: 429, message: "slow down" },
      { code: "model_rate_limited", message: /HTTP 429/ },
    ],
    [
      "a used-up quota",
      { status: 429, message: "no credit", code: "insufficient_quota" },
      { code: "model_rate_limited", message: /billing/ },
    ],
    [
      "an error of the service",
      { status: 500, message: "oops" },
      { code: "model_unavailable", message: /HTTP 500/ },
    ],
    [
      "an unknown model",
      { status: 404, message: "no such model" },
      { code: "model_not_found", message: /HTTP 404/ },
    ],
    [
      "a text it refuses",
      { status: 400, message: "bad input" },
      { code: "model_error", message: /bad input/, refusesTexts: true },
    ],
    ["no answer", { fault: "hang" }, { code: "model_unavailable", message: /did not answer in time/ }],
    ["a broken connection", { fault: "refuse" }, { code: "model_unavailable", message: /connection failed/ }],
    ["too few vectors", { vectors: [[1, 2]] }, { code: "embedding_invalid", message: /one vector/ }],
    [
      "vectors of two lengths",
      { vectors: [[1, 2], [1]] },
      { code: "embedding_invalid", message: /one vector/ },
    ],
    ["empty vectors", { vectors: [[], []] }, { code: "embedding_invalid", message: /one vector/ }],
  ])("tells %s in one text, and asks once", async (_kind, reply, expected) => {
    const time = handSetTime();
    const { server, embed } = await service(() => {
      if ("fault" in reply && reply.fault === "hang") time.pass(20_000);
      return reply;
    });
    const found = await failure(embed("a", "b"));
    expect(found).toMatchObject({
      refusesTexts: false,
      ...expected,
      message: expect.stringMatching(expected.message),
    });
    expect(found.message).not.toContain(server.url);
    expect(server.requests).toHaveLength(1);
  });

  it("tells a key that is refused, and shows none", async () => {
    const { server } = await service(vectors);
    const env = { ...server.env("openai"), OPENAI_API_KEY: "sk-wrong-key-0123456789" };
    const embedder = createEmbedder({ model: MODEL, env });
    const found = await failure(embedder.embed(["a"], "query", new AbortController().signal));
    expect(found.code).toBe("model_auth");
    expect(found.message).toContain("refused the key (HTTP 401)");
    expect(found.message).not.toContain("sk-wrong");
  });

  it("tells a page that is no answer of a service", async () => {
    const server = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "text/html" }).end("<html>Sign in</html>");
    });
    const env = { OPENAI_BASE_URL: `${await addressOf(server)}/v1` };
    const embedder = createEmbedder({ model: MODEL, env });
    const found = await failure(embedder.embed(["a"], "query", new AbortController().signal));
    expect(found).toMatchObject({ code: "embedding_invalid", refusesTexts: false });
  });

  it("ends with its signal", async () => {
    const { embedder } = await service(() => ({ fault: "hang" }));
    const controller = new AbortController();
    const embedding = failure(
      createEmbedder({
        model: MODEL,
        env: { OPENAI_API_KEY: "k", OPENAI_BASE_URL: "http://127.0.0.1:9/v1" },
      }).embed(["a"], "documents", AbortSignal.abort()),
    );
    expect((await embedding).refusesTexts).toBe(false);
    const hanging = failure(embedder.embed(["a"], "documents", controller.signal));
    controller.abort();
    expect((await hanging).refusesTexts).toBe(false);
  });
});

it.each([
  ["openai:text-embedding-3-small", { OPENAI_API_KEY: "k" }, undefined],
  ["openai:nomic", { OPENAI_BASE_URL: "http://127.0.0.1:11434/v1" }, undefined],
  ["openai:text-embedding-3-small", {}, /needs the environment variable OPENAI_API_KEY/],
  ["text-embedding-3-small", { OPENAI_API_KEY: "k" }, /provider:model/],
  ["anthropic:claude", { ANTHROPIC_API_KEY: "k" }, /need an openai:… model/],
  ["offline", {}, /need an openai:… model/],
  ["nobody:model", {}, /unknown provider/],
  ["openai:m", { OPENAI_BASE_URL: "ftp://x" }, /not an http/],
])("a setting of embeddings: %s with %j", async (model, env, problem) => {
  const found = embedderProblem({ model, env });
  if (problem === undefined) return expect(found).toBeUndefined();
  expect(found?.message).toMatch(problem);
  const embedding = createEmbedder({ model, env }).embed(["a"], "query", new AbortController().signal);
  return expect((await failure(embedding)).message).toBe(found?.message);
});
