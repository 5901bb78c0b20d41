import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, type AIMessageChunkFields } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { describe, expect, test } from "vitest";
import { ToolBinder } from "../../../src/agent/models/tool-binder.ts";
import { joinStreams } from "../../../src/agent/models/joined-stream.ts";
import { isCut, LONGEST_REPLY, safeReply } from "../../../src/agent/models/reply.ts";
import { streamAnswers } from "../../../src/agent/models/resolve.ts";

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

const LS = { type: "function", function: { name: "ls", parameters: { type: "object", properties: {} } } };
const call = (index: number, args: string, begin?: { id: string; name: string }): AIMessageChunkFields => ({
  content: [{ index, type: "input_json_delta", input: args }],
  tool_call_chunks: [{ type: "tool_call_chunk", index, args, ...begin }],
});
const TOO_MANY =
  "its arguments have more than 5000 values or are nested deeper than 200 levels. Call it again with fewer; give long lists in several calls.";
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
  "arguments that are none": [call(0, "", { id: "x", name: "ls" }), call(0, "]"), usage(9)],
};

async function answer(pieces: readonly AIMessageChunkFields[], isJoined: boolean): Promise<unknown> {
  const given = new Streaming(pieces);
  const model = isJoined ? joinStreams(given) : given;
  const tokens: string[] = [];
  const reply = await model.invoke("go", {
    runId: "00000000-0000-4000-8000-000000000000",
    callbacks: [{ handleLLMNewToken: (token) => void tokens.push(token) }],
  });
  const { content, tool_calls, invalid_tool_calls, usage_metadata, response_metadata, id } = reply;
  return { content, tool_calls, invalid_tool_calls, usage_metadata, response_metadata, id, tokens };
}

describe("the pieces of an answer", () => {
  test.each(Object.entries(ANSWERS))("make the same message when joined: %s", async (_name, pieces) => {
    expect(await answer(pieces, true)).toEqual(await answer(pieces, false));
  });

  test("reach who reads the stream", async () => {
    const model = joinStreams(new Streaming([{ content: "a" }, { content: "b" }]));
    const seen: unknown[] = [];
    for await (const { content } of await model.stream("go")) seen.push(content);
    expect(seen).toEqual(["a", "b"]);
  });

  // Reading the arguments anew at every piece would take a quarter of an hour.
  test.each([
    ["by the model", (model: Streaming) => joinStreams(model)],
    [
      "by the model that binding tools makes",
      (model: Streaming) => new ToolBinder().bind({ model, tools: [LS] }),
    ],
  ])("are joined in linear time %s", async (_name, bound) => {
    const content = "0123456789abcdef".repeat(20_000);
    const args = JSON.stringify({ content });
    const model = new Streaming([
      call(0, "", { id: "x", name: "write_file" }),
      ...(args.match(/.{1,24}/g) ?? []).map((piece) => call(0, piece)),
    ]);
    const { tool_calls: calls } = await bound(model).invoke("go");
    expect(calls).toMatchObject([{ id: "x", name: "write_file", args: { content } }]);
  });

  const arrived = async (pieces: readonly AIMessageChunkFields[]) => {
    const model = joinStreams(new Streaming(pieces));
    return safeReply(await model.invoke("go"), []);
  };

  test.each([
    ["a string", (content: string): AIMessageChunkFields => ({ content })],
    ["blocks", text],
  ])("are taken up to the longest reply: text as %s", async (_name, piece) => {
    const half = "x".repeat(LONGEST_REPLY / 2);
    const whole = await arrived([piece(half), piece(half), usage(3)]);
    expect(whole.reply.text).toBe(half + half);
    expect(isCut(whole.reply)).toBe(false);
    const cut = await arrived([piece(half), piece(`${half}y`), piece("z"), usage(4)]);
    expect(cut.reply.text).toBe(half + half);
    expect(isCut(cut.reply)).toBe(true);
    expect(cut.reply.usage_metadata?.output_tokens).toBe(4);
  });

  test("are joined where a class has its own invoke, as OpenAI's do", async () => {
    class OwnInvoke extends Streaming {
      override async invoke(...call: Parameters<BaseChatModel["invoke"]>): Promise<AIMessageChunk> {
        return super.invoke(...call);
      }
    }
    const half = "x".repeat(LONGEST_REPLY / 2);
    const pieces = [text(half), text(`${half}y`)];
    expect((await joinStreams(new OwnInvoke(pieces)).invoke("go")).text).toBe(half + half);
  });

  test("are taken up to the longest reply: a call whose arguments are longer is answered", async () => {
    const args = JSON.stringify({ content: "x".repeat(LONGEST_REPLY) });
    const first = call(0, "", { id: "x", name: "write_file" });
    const pieces = args.match(/.{1,100000}/g)?.map((piece) => call(0, piece)) ?? [];
    const { reply, refused } = await arrived([first, ...pieces, usage(1)]);
    expect(reply.tool_calls).toMatchObject([{ id: "x", name: "write_file", args: {} }]);
    expect(JSON.stringify(reply).length).toBeLessThan(1000);
    expect(refused.map((message) => message.text)).toEqual([
      expect.stringMatching(
        /^Error: write_file was not run: the reply was cut .* give long content in several calls\.$/,
      ),
    ]);
  });

  test.each([
    [
      "cut off",
      '{"path":"/lon',
      "its arguments are not a complete JSON object. Call it again with all of them.",
    ],
    ["too many", JSON.stringify({ path: Array(5001).fill(0) }), TOO_MANY],
    ["too deep", `${"[".repeat(5000)}${"]".repeat(5000)}`, TOO_MANY],
  ])("make no call of arguments that are %s", async (_name, args, why) => {
    const { reply, refused } = await arrived([call(0, args, { id: "x", name: "ls" }), call(0, ""), usage(9)]);
    expect(reply.tool_calls).toMatchObject([{ id: "x", name: "ls", args: {} }]);
    expect(refused.map((message) => message.text)).toEqual([`Error: ls was not run: ${why}`]);
  });

  test("make names and ids of bounded length, and text that can be sent", async () => {
    const long = "x".repeat(100_000);
    const { reply } = await arrived([text("half \ud83d"), call(1, "{}", { id: long, name: long }), usage(1)]);
    expect(reply.text).toBe("half \ufffd");
    expect(reply.tool_calls).toMatchObject([{ name: "x".repeat(64) }]);
  });

  test("are left alone in a model that does not stream", () => {
    class Plain extends Streaming {
      override _streamResponseChunks = BaseChatModel.prototype._streamResponseChunks;
    }
    const model = new Plain([]);
    expect(joinStreams(model)).toBe(model);
  });

  describe("of a program's own model", () => {
    /** It keeps its tools in a private field; a copy of it has them. */
    class Own extends Streaming {
      #tools = 0;

      override bindTools(tools: unknown[] = []): Own {
        const copy = new Own(this.pieces);
        copy.#tools = tools.length;
        return copy;
      }

      override async *_streamResponseChunks(
        ...call: Parameters<BaseChatModel["_streamResponseChunks"]>
      ): AsyncGenerator<ChatGenerationChunk> {
        const { pieces } = new Streaming([...this.pieces, { content: ` ${this.#tools}` }]);
        yield* new Streaming(pieces)._streamResponseChunks(...call);
      }
    }

    test.each([
      ["that binds a copy", new Own([{ content: "tools:" }])],
      [
        "that binds an object made of itself",
        new (class extends Streaming {
          tools = 0;
          override bindTools(tools: unknown[] = []): Streaming {
            return Object.assign(Object.create(this) as this, { tools: tools.length });
          }
          override async *_streamResponseChunks(): AsyncGenerator<ChatGenerationChunk> {
            const message = new AIMessageChunk({ content: `tools: ${this.tools}` });
            yield new ChatGenerationChunk({ message, text: message.text });
          }
        })([]),
      ],
    ])("come from the model with its tools, and change nothing of it: %s", async (_name, model) => {
      const before = Object.getOwnPropertyNames(model);
      for (let turn = 0; turn < 2; turn += 1) {
        expect((await new ToolBinder().bind({ model, tools: [LS] }).invoke("go")).text).toBe("tools: 1");
      }
      await new ToolBinder().bind({ model, tools: [] }).invoke("go");
      expect(Object.getOwnPropertyNames(model)).toEqual(before);
    });

    test("are told to tracers under the model's name", async () => {
      const told = async (ask: Pick<BaseChatModel, "invoke">) => {
        const seen: unknown[] = [];
        await ask.invoke("go", {
          callbacks: [
            {
              handleChatModelStart: (serialized, _messages, _run, _parent, extra, tags, metadata, name) =>
                void seen.push(serialized, extra, tags, metadata, name),
            },
          ],
        });
        return seen;
      };
      const own = new Own([{ content: "a" }]);
      expect(await told(joinStreams(own))).toEqual(await told(own));
      const bound = own.withConfig({ tags: ["b"], stop: ["c"] });
      expect(await told(joinStreams(bound))).toEqual(await told(bound));
    });
  });
});
