import { expect, test } from "vitest";
import { inGroups } from "../../../src/agent/models/stream-guard.ts";

const LONG = 'a "quoted" line\n\ud83d\ude00'.repeat(20_000);
const event = (data: object, end = "\n"): string => `event: x${end}data: ${JSON.stringify(data)}${end}${end}`;
const dataOf = (raw: string) => JSON.parse(/^data: ?(.*)$/m.exec(raw)?.[1] ?? "null");

test.each([
  [
    "text",
    (text: string) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }),
    ["delta", "text"],
  ],
  [
    "thinking",
    (thinking: string) => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "thinking_delta", thinking },
    }),
    ["delta", "thinking"],
  ],
  [
    "arguments",
    (json: string) => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "input_json_delta", partial_json: json },
    }),
    ["delta", "partial_json"],
  ],
  [
    "text of chat completions",
    (content: string) => ({ id: "x", choices: [{ index: 0, delta: { content } }] }),
    ["choices", 0, "delta", "content"],
  ],
  ["text of responses", (delta: string) => ({ type: "response.output_text.delta", delta }), ["delta"]],
])("a long event with %s is divided", (_name, make, place) => {
  const groups = [...inGroups([event(make("before")), event(make(LONG), "\r\n"), event(make("after"))])];
  expect(Math.max(...groups.map((group) => group.join("").length))).toBeLessThan(100_000);
  const texts = groups.flat().map((raw) => {
    const data = dataOf(raw.replaceAll("\r", ""));
    const text = place.reduce((value, key) => value[key], data);
    expect(data).toEqual(make(text));
    return text;
  });
  expect(texts.join("")).toBe(`before${LONG}after`);
});

test.each([
  ["Anthropic's", (message: string) => ({ type: "error", error: { type: "overloaded_error", message } })],
  [
    "of responses",
    (message: string) => ({ type: "response.failed", response: { error: { code: "x", message } } }),
  ],
  ["of chat completions", (message: string) => ({ error: { code: 400, message } })],
])("the words of an error are cut: %s", (_name, make) => {
  const [raw = ""] = [...inGroups([event(make(LONG))])].flat();
  expect(dataOf(raw)).toEqual(make(LONG.slice(0, 16_384)));
});

test("other long events pass as they are", () => {
  const others = [event({ type: "response.completed", output: LONG }), `data: ${LONG}\n\n`, LONG];
  expect([...inGroups(others)].flat()).toEqual(others);
});
