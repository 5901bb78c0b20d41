import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, type AIMessageChunkFields } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { describe, expect, test } from "vitest";
import { ToolBinder } from "../../../src/agent/bind-tools.ts";
import { joinStream } from "../../../src/agent/models/joined-stream.ts";
import { streamAnswers } from "../../../src/agent/models/stream-answers.ts";

/** A model that streams these pieces, as the providers' packages do. */
class Streaming extends BaseChatModel {
  readonly pieces: readonly AIMessageChunkFields[];

  constructor(pieces: readonly AIMessageChunkFields[]) {
    super({ callbacks: [streamAnswers] });
    this.pieces = pieces;
  }

  _llmType(): string {
    return "streaming";
  }

  _generate(): Promise<never> {
    return Promise.reject(new Error("it only streams"));
  }

  /** As OpenAI's package does. */
  override bindTools(): Streaming {
    return new Streaming(this.pieces);
  }

  override async *_streamResponseChunks(
    ...[, , run]: Parameters<BaseChatModel["_streamResponseChunks"]>
  ): AsyncGenerator<ChatGenerationChunk> {
    for (const fields of this.pieces) {
      const message = new AIMessageChunk({ ...fields });
      const chunk = new ChatGenerationChunk({ message, text: message.text });
      yield chunk;
      await run?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}

const LS = { type: "function", function: { name: "ls", parameters: { type: "object" } } };
const call = (index: number, args: string, begin?: { id: string; name: string }): AIMessageChunkFields => ({
  content: [{ index, type: "input_json_delta", input: args }],
  tool_call_chunks: [{ type: "tool_call_chunk", index, args, ...begin }],
});
const text = (content: string): AIMessageChunkFields => ({
  content: [{ index: 0, type: "text", text: content }],
});
const usage = (output: number): AIMessageChunkFields => ({
  content: "",
  usage_metadata: { input_tokens: 0, output_tokens: output, total_tokens: output },
  response_metadata: { stop_reason: "tool_use" },
});

const ANSWERS: Readonly<Record<string, AIMessageChunkFields[]>> = {
  "one piece": [{ content: "hello" }],
  "plain text": [{ content: "" }, { content: "hel", id: "a" }, { content: "lo" }, usage(3)],
  "text and two calls": [
    text("I "),
    text("look."),
    call(1, "", { id: "x", name: "ls" }),
    call(1, '{"path":'),
    call(1, '"/"}'),
    call(2, '{"pa', { id: "y", name: "read_file" }),
    call(2, 'th":"/a"}'),
    usage(5),
  ],
  "arguments that are cut off": [call(0, "", { id: "x", name: "ls" }), call(0, '{"path":"/lon'), usage(9)],
  "arguments that are none": [call(0, "", { id: "x", name: "ls" }), call(0, "]"), usage(9)],
};

async function answer(pieces: readonly AIMessageChunkFields[], isJoined: boolean): Promise<unknown> {
  const model = new Streaming(pieces);
  if (isJoined) joinStream(model);
  const tokens: string[] = [];
  const reply = await model.invoke("go", {
    runId: "00000000-0000-4000-8000-000000000000",
    callbacks: [{ handleLLMNewToken: (token) => void tokens.push(token) }],
  });
  const { content, tool_calls, invalid_tool_calls, usage_metadata, response_metadata, id } = reply;
  return { content, tool_calls, invalid_tool_calls, usage_metadata, response_metadata, id, tokens };
}

describe("the pieces of an answer", () => {
  test.each(Object.entries(ANSWERS))(
    "make the same message when they are joined: %s",
    async (_name, pieces) => {
      expect(await answer(pieces, true)).toEqual(await answer(pieces, false));
    },
  );

  test("reach who reads the stream", async () => {
    const model = new Streaming([{ content: "a" }, { content: "b" }]);
    joinStream(model);
    joinStream(model);
    const seen: unknown[] = [];
    for await (const { content } of await model.stream("go")) seen.push(content);
    expect(seen).toEqual(["a", "b"]);
  });

  // Reading the arguments anew at every piece would take most of an hour.
  test.each([
    ["by the model", (model: Streaming) => model],
    [
      "by the model that binding tools makes",
      (model: Streaming) => new ToolBinder().bind({ model, tools: [LS] }),
    ],
  ])("are joined in linear time %s", async (_name, bound) => {
    const content = "0123456789abcdef".repeat(2_000_000 / 16);
    const args = JSON.stringify({ content });
    const model = new Streaming([
      call(0, "", { id: "x", name: "write_file" }),
      ...(args.match(/.{1,24}/g) ?? []).map((piece) => call(0, piece)),
    ]);
    joinStream(model);
    const { tool_calls: calls } = await bound(model).invoke("go");
    expect(calls).toMatchObject([{ id: "x", name: "write_file", args: { content } }]);
  });

  test("are left alone in a model that does not stream", () => {
    class Plain extends Streaming {
      override _streamResponseChunks = BaseChatModel.prototype._streamResponseChunks;
    }
    const model = new Plain([]);
    joinStream(model);
    expect(model._streamResponseChunks).toBe(BaseChatModel.prototype._streamResponseChunks);
  });
});
