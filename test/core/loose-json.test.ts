import { expect, test } from "vitest";
import { looseJson } from "../../src/core/loose-json.ts";

test.each<[source: string, text: string, value: unknown]>([
  [
    "MoonshotAI/kimi-cli#1378",
    '{"command": "git commit -m \'a\n\nb\'"}',
    { command: "git commit -m 'a\n\nb'" },
  ],
  ["jundot/omlx#1672", '{"old_string": "\t\t// x\\n"}', { old_string: "\t\t// x\n" }],
  [
    "mistralai/mistral-vibe#216",
    String.raw`{"path": "C:\Users\x", "url": "\users"}`,
    { path: String.raw`C:\Users\x`, url: String.raw`\users` },
  ],
  [
    "NousResearch/hermes-agent#110436",
    String.raw`{"pattern": "\d+\.\\s\"q\""}`,
    { pattern: String.raw`\d+\.\s"q"` },
  ],
  ["anthropics/claude-code#79339", String.raw`{"text": "\로\u0041"}`, { text: String.raw`\로A` }],
  ["OpenHands/software-agent-sdk#2488", String.raw`{"view": \n[1, 2]\n\n}`, { view: [1, 2] }],
  ["a comma at the end", '{"a": [1, 2, ], "b": ",}",\n}', { a: [1, 2], b: ",}" }],
  ["a code fence", '```json\n{"a": 1}\n```\n', { a: 1 }],
])("%s: %j is read", (_source, text, value) => {
  expect(looseJson(text)).toEqual(value);
});

test.each(['{"a": "b', '{"a": [1, 2', '{"a": 1}{"b": 2}', "{'a': 1}", '{"a": "b"c"}', ""])(
  "%j is not complete, or may mean several things",
  (text) => {
    expect(looseJson(text)).toBeUndefined();
  },
);
