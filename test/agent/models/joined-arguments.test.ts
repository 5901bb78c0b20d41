import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ToolBinder } from "../../../src/agent/models/tool-binder.ts";
import { JoinedArguments } from "../../../src/agent/models/stream-guard.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { startWireServer } from "../../support/wire-server.ts";
import { PROVIDERS } from "../../support/wire-thread.ts";

const event = (data: object, end: string, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}${end}`}data: ${JSON.stringify(data)}${end}${end}`;

/** A piece of the arguments of a call, as each protocol sends it. */
const PIECES: Readonly<Record<string, (call: number, piece: string, number: number) => object>> = {
  anthropic: (index, partial_json) => ({
    type: "content_block_delta",
    index,
    delta: { type: "input_json_delta", partial_json },
  }),
  "openai-chat": (index, piece, number) => ({
    id: "x",
    choices: [{ index: 0, delta: { tool_calls: [{ index, function: { arguments: piece } }] } }],
    obfuscation: "x".repeat(number % 7),
  }),
  "openai-responses": (output_index, delta, sequence_number) => ({
    type: "response.function_call_arguments.delta",
    sequence_number,
    output_index,
    delta,
  }),
};

/** Events that look like pieces of arguments and are none, or bring more. */
const OTHERS: readonly object[] = [
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: '"input_json_delta"' } },
  { type: "content_block_stop", index: 0 },
  {
    choices: [
      { index: 0, delta: { content: "x", tool_calls: [{ index: 0, function: { arguments: "x" } }] } },
    ],
  },
  {
    choices: [
      { index: 0, delta: { tool_calls: [{ index: 1, id: "y", function: { name: "ls", arguments: "" } }] } },
    ],
  },
  {
    choices: [
      {
        index: 0,
        delta: { tool_calls: [{ index: 0, function: { arguments: "x" } }] },
        finish_reason: "tool_calls",
      },
    ],
  },
  { type: "response.function_call_arguments.done", output_index: 0, arguments: "{}" },
];

/** The stream cut into parts at these places. */
function joined(stream: string, cuts: readonly number[] = []): string[] {
  const places = [
    0,
    ...cuts.map((cut) => cut % (stream.length + 1)).toSorted((a, b) => a - b),
    stream.length,
  ];
  const events = new JoinedArguments();
  const read = places.slice(1).flatMap((place, index) => events.read(stream.slice(places[index], place)));
  return [...read, ...events.finish()];
}

describe.each(Object.entries(PIECES))("pieces of arguments in events of %s", (_protocol, eventOf) => {
  const item = fc.oneof(
    fc.record({ call: fc.nat(1), piece: fc.string({ unit: "binary" }) }),
    fc.record({ other: fc.nat(OTHERS.length - 1) }),
  );

  test("are joined in their order, wherever the stream is cut, and nothing else changes", () => {
    fc.assert(
      fc.property(
        fc.array(item, { maxLength: 30 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        fc.constantFrom("\n", "\r\n", "\r"),
        (items, cuts, end) => {
          const expected: string[] = [];
          let run: { call: number; whole: string } | undefined;
          const events = items.map((one, number) => {
            if ("other" in one) {
              run = undefined;
              expected.push(`other ${one.other}`);
              return event(OTHERS[one.other] ?? {}, end);
            }
            if (run?.call === one.call) expected.pop();
            run = { call: one.call, whole: (run?.call === one.call ? run.whole : "") + one.piece };
            expected.push(`call ${one.call} ${run.whole}`);
            return event(eventOf(one.call, one.piece, number), end, "delta");
          });
          const seen = joined(events.join(""), cuts).filter((raw) => raw !== "");
          const others = new Map(OTHERS.map((other, number) => [event(other, end), `other ${number}`]));
          expect(
            seen.map((raw) => {
              const other = others.get(raw);
              if (other !== undefined) return other;
              const line = raw.split(end).find((line) => line.startsWith("data:")) ?? "";
              const { index, output_index, delta, choices } = JSON.parse(line.slice(5));
              const call = choices?.[0].delta.tool_calls[0];
              const piece = call?.function.arguments ?? delta.partial_json ?? delta;
              return `call ${call?.index ?? index ?? output_index} ${piece}`;
            }),
          ).toEqual(expected);
        },
      ),
    );
  });

  test("are passed on in parts of bounded length", () => {
    const piece = "x".repeat(10_000);
    const events = joined(event(eventOf(0, piece, 0), "\n").repeat(10));
    expect(events.filter((raw) => raw !== "")).toHaveLength(5);
  });
});

test("events without arguments pass as soon as they are whole", () => {
  const events = new JoinedArguments();
  const text = event({ type: "content_block_delta", delta: { type: "text_delta", text: "hi" } }, "\n");
  expect(events.read(text)).toEqual([text]);
  expect(events.read("data: [DO")).toEqual([]);
  expect(events.read("NE]")).toEqual([]);
  expect(events.finish()).toEqual(["data: [DONE]"]);
});

test.each(PROVIDERS)(
  "a long call over $protocol reaches LangChain in few pieces",
  async ({ provider, spec }) => {
    const content = `${'a "quoted" lineé\n'.repeat(15_000)}😀`;
    const server = await startWireServer(() => ({
      toolCalls: [{ name: "write_file", args: { content } }],
      pieceLength: 24,
    }));
    try {
      const { model } = await resolveModel({ model: spec, env: server.env(provider) });
      const tool = {
        type: "function",
        function: { name: "write_file", parameters: { type: "object", properties: {} } },
      };
      let pieces = 0;
      const reply = await new ToolBinder()
        .bind({ model, tools: [tool] })
        .invoke("go", { callbacks: [{ handleLLMNewToken: () => void (pieces += 1) }] });
      expect(reply.tool_calls).toMatchObject([{ name: "write_file", args: { content } }]);
      expect(pieces).toBeLessThan(2000);
    } finally {
      await server.close();
    }
  },
);
