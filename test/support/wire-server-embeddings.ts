import { openaiErrorBody, openaiKeyProblem } from "./wire-server-openai.ts";
import { invalid, text, type Json, type WireError, type WireProtocol } from "./wire-server-protocol.ts";

/** Inputs of one request, and characters of one of them: a token has at least one, in most scripts more. */
const MAX_INPUTS = 2048;
const MAX_LENGTH = 8191 * 4;

/** The OpenAI Embeddings API, as far as texts and floats go. */
export const openaiEmbeddings: WireProtocol = {
  keyProblem: openaiKeyProblem,
  problem,
  read: (body, number) => ({
    protocol: "openai-embeddings",
    model: text(body["model"]),
    stream: false,
    messages: inputsOf(body).map((input) => ({ role: "user", text: input, toolCalls: [], toolResults: [] })),
    tools: [],
    number,
    body,
  }),
  body: ({ model }, { vectors = [] }) => ({
    object: "list",
    data: vectors.map((embedding, index) => ({ object: "embedding", index, embedding })),
    model,
    usage: { prompt_tokens: 8, total_tokens: 8 },
  }),
  events: () => [],
  errorBody: openaiErrorBody,
  errorEvent: (error) => JSON.stringify(openaiErrorBody(error)),
};

function problem(body: Json): WireError | undefined {
  const inputs = inputsOf(body);
  if (text(body["model"]) === "") return invalid("you must provide a model parameter");
  if (body["encoding_format"] !== "float") return invalid("this server gives floats only");
  if (inputs.length === 0 || inputs.length > MAX_INPUTS) return invalid("'$.input' is invalid.");
  if (inputs.some((input) => typeof input !== "string" || input === ""))
    return invalid("'$.input' is invalid.");
  if (inputs.some((input) => input.length > MAX_LENGTH)) {
    return invalid("This model's maximum context length is 8192 tokens. Please reduce your prompt.");
  }
  return undefined;
}

// What is no text is refused by `problem`.
const inputsOf = ({ input }: Json): string[] =>
  (Array.isArray(input) ? input : input === undefined ? [] : [input]) as string[];

/** A model for tests: how often a text has words of the same meaning. One dimension a meaning. */
export function meaningOf(passage: string): number[] {
  const words = passage.toLowerCase().match(/\p{L}+/gu) ?? [];
  const count = (meaning: readonly string[]) => words.filter((word) => meaning.includes(word)).length;
  return [...MEANINGS.map(count), 0.01];
}

const MEANINGS = [
  ["harbour", "port", "dock", "ships", "항구"],
  ["tea", "drink", "beverage", "coffee"],
  ["deploy", "release", "rollout", "배포"],
];
