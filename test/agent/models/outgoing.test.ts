import { describe, expect, test } from "vitest";
import {
  type Wire,
  isForced,
  outgoing,
  signatureDigests,
} from "../../../src/agent/models/profiles/outgoing.ts";
import { type RequestRules, requestRules } from "../../../src/agent/models/profiles/schema.ts";
import type { Json } from "../../../src/agent/models/strict-chunks.ts";

const EPHEMERAL = { cache_control: { type: "ephemeral" } };
const SYSTEM = { role: "system", content: "You help." };
const USER = { role: "user", content: "Hi." };
const call = (id: string, more: Json = {}) => ({
  id,
  type: "function",
  function: { name: "ls", arguments: "{}" },
  ...more,
});
const CALLS = { role: "assistant", content: "", tool_calls: [call("call_1")] };
const RESULT = { role: "tool", tool_call_id: "call_1", content: "a.txt" };
const REPLY = { role: "assistant", content: "Done." };
const HISTORY = [SYSTEM, USER, CALLS, RESULT];
const thinks = (text: string) => ({ ...CALLS, reasoning_content: text });

const SCHEMA = {
  type: "object",
  properties: {
    path: { type: "string", description: "A path.", pattern: "^/", maxLength: 9 },
    mode: { type: ["string", "null"], enum: ["r", "w"] },
  },
  required: ["path"],
  additionalProperties: false,
};
const PLAIN = {
  type: "object",
  properties: {
    path: { type: "string", description: "A path." },
    mode: { type: ["string", "null"], enum: ["r", "w"] },
  },
  required: ["path"],
};
const IN_WORDS = [
  "Reads.",
  "",
  "Its arguments are a JSON object.",
  "- path (string, required): A path.",
  "- mode (string or null): One of r, w.",
].join("\n");
const NO_PARAMETERS = { type: "object", properties: {} };
const chatTool = (parameters: Json, description = "Reads.") => ({
  type: "function",
  function: { name: "read", description, parameters },
});
const strict = (tool: ReturnType<typeof chatTool>) => ({
  ...tool,
  function: { ...tool.function, strict: true },
});

const thought = (signature: string) => ({ type: "thinking", thinking: "Hm.", signature });
const TEXT = { type: "text", text: "Done." };
const USE = { type: "tool_use", id: "toolu_1", name: "ls", input: {} };
const assistant = (...content: Json[]) => ({ role: "assistant", content });

/** A rule, the API, what it is given, and what is sent. */
const ROWS: ReadonlyArray<readonly [rules: RequestRules, wire: Wire, given: Json, sent: Json]> = [
  [
    { rename: { max_tokens: "max_completion_tokens" } },
    "chat",
    { max_tokens: 9 },
    { max_completion_tokens: 9 },
  ],
  [{ drop: ["stop", "user"] }, "chat", { stop: ["x"], user: "u", n: 1 }, { n: 1 }],
  [{ drop: ["top_k"] }, "messages", { top_k: 1, max_tokens: 2 }, { max_tokens: 2 }],
  [{ drop: ["store"] }, "responses", { store: false, input: [] }, { input: [] }],
  [{ put: { a: 1, b: 2 } }, "chat", { a: 3 }, { a: 3, b: 2 }],
  [{ put: { thinking: { type: "adaptive" } } }, "messages", {}, { thinking: { type: "adaptive" } }],
  [{ put: { reasoning: { effort: "low" } } }, "responses", {}, { reasoning: { effort: "low" } }],
  [{ put: { a: 1 }, drop: ["a"] }, "chat", {}, {}],
  [{ most: { max_tokens: 10 } }, "chat", { max_tokens: 11 }, { max_tokens: 10 }],
  [{ most: { max_tokens: 10 } }, "messages", { max_tokens: 11 }, { max_tokens: 10 }],
  [{ most: { max_output_tokens: 10 } }, "responses", { max_output_tokens: 11 }, { max_output_tokens: 10 }],
  [
    { rename: { max_tokens: "max_completion_tokens" }, most: { max_completion_tokens: 10 } },
    "chat",
    { max_tokens: 99 },
    { max_completion_tokens: 10 },
  ],
  [
    { systemRole: "developer" },
    "chat",
    { messages: [SYSTEM, USER] },
    { messages: [{ ...SYSTEM, role: "developer" }, USER] },
  ],
  [
    { systemRole: "system" },
    "chat",
    { messages: [{ ...SYSTEM, role: "developer" }, USER] },
    { messages: [SYSTEM, USER] },
  ],
  [
    { systemRole: "user" },
    "chat",
    { messages: [SYSTEM, USER, REPLY, USER] },
    { messages: [{ role: "user", content: "You help.\n\nHi." }, REPLY, USER] },
  ],
  [
    { systemRole: "user" },
    "chat",
    { messages: [SYSTEM, { role: "user", content: [TEXT] }] },
    { messages: [{ role: "user", content: [{ type: "text", text: "You help." }, TEXT] }] },
  ],
  [
    { afterTool: "notUser" },
    "chat",
    { messages: [...HISTORY, USER] },
    { messages: [...HISTORY, { role: "assistant", content: "I have read the results." }, USER] },
  ],
  [{ put: { b: 2 } }, "chat", { a: 3, b: undefined }, { a: 3, b: 2 }],
  [{ emptyContent: "filled" }, "chat", { messages: [CALLS] }, { messages: [{ ...CALLS, content: "…" }] }],
  [{ emptyContent: "null" }, "chat", { messages: [CALLS] }, { messages: [{ ...CALLS, content: null }] }],
  [
    { emptyContent: "none" },
    "chat",
    { messages: [{ ...CALLS, content: null }] },
    { messages: [{ role: "assistant", tool_calls: CALLS.tool_calls }] },
  ],
  [
    { callIds: "nine" },
    "chat",
    { messages: [CALLS, RESULT] },
    {
      messages: [
        { ...CALLS, tool_calls: [call("2w667dite")] },
        { ...RESULT, tool_call_id: "2w667dite" },
      ],
    },
  ],
  [
    { needsTools: true },
    "chat",
    { messages: HISTORY },
    {
      messages: HISTORY,
      tools: [
        {
          type: "function",
          function: { name: "ls", description: "Not available any more.", parameters: NO_PARAMETERS },
        },
      ],
      tool_choice: "none",
    },
  ],
  [{ schema: "plain" }, "chat", { tools: [strict(chatTool(SCHEMA))] }, { tools: [chatTool(PLAIN)] }],
  [
    { schema: "plain" },
    "responses",
    { tools: [{ type: "function", name: "read", parameters: SCHEMA, strict: true }] },
    { tools: [{ type: "function", name: "read", parameters: PLAIN }] },
  ],
  [
    { schema: "plain" },
    "messages",
    {
      tools: [
        { name: "read", input_schema: SCHEMA },
        { type: "web_search_20250305", name: "web_search" },
      ],
    },
    {
      tools: [
        { name: "read", input_schema: PLAIN },
        { type: "web_search_20250305", name: "web_search" },
      ],
    },
  ],
  [{ schema: "text" }, "chat", { tools: [chatTool(SCHEMA)] }, { tools: [chatTool(NO_PARAMETERS, IN_WORDS)] }],
  [
    { schema: "text" },
    "messages",
    { tools: [{ name: "read", description: "Reads.", input_schema: SCHEMA }] },
    { tools: [{ name: "read", description: IN_WORDS, input_schema: NO_PARAMETERS }] },
  ],
  [{ forced: "no" }, "chat", { tool_choice: "required", n: 1 }, { n: 1 }],
  [{ forced: "no" }, "chat", { tool_choice: { type: "function", function: { name: "ls" } } }, {}],
  [{ forced: "no" }, "messages", { tool_choice: { type: "any" } }, {}],
  [{ forced: "no" }, "responses", { tool_choice: "required" }, {}],
  [
    { marks: "blocks" },
    "messages",
    { ...EPHEMERAL, system: [{ ...TEXT, ...EPHEMERAL }], messages: [USER, REPLY, USER] },
    {
      system: [{ ...TEXT, ...EPHEMERAL }],
      messages: [USER, REPLY, { role: "user", content: [{ type: "text", text: "Hi.", ...EPHEMERAL }] }],
    },
  ],
  [
    { marks: "blocks" },
    "messages",
    {
      ...EPHEMERAL,
      messages: [
        { role: "user", content: [TEXT, { ...TEXT, cache_control: { type: "ephemeral", ttl: "1h" } }] },
      ],
    },
    {
      messages: [
        { role: "user", content: [TEXT, { ...TEXT, cache_control: { type: "ephemeral", ttl: "1h" } }] },
      ],
    },
  ],
  [
    { marks: "none" },
    "messages",
    {
      ...EPHEMERAL,
      system: [{ ...TEXT, ...EPHEMERAL }],
      tools: [
        { name: "t", input_schema: { properties: { cache_control: { type: "object" } } }, ...EPHEMERAL },
      ],
      messages: [{ role: "user", content: [{ ...TEXT, ...EPHEMERAL }] }],
    },
    {
      system: [TEXT],
      tools: [{ name: "t", input_schema: { properties: { cache_control: { type: "object" } } } }],
      messages: [{ role: "user", content: [TEXT] }],
    },
  ],
  [
    { markText: true },
    "chat",
    { messages: [SYSTEM, USER, REPLY, USER] },
    {
      messages: [
        { role: "system", content: [{ type: "text", text: "You help.", ...EPHEMERAL }] },
        USER,
        REPLY,
        { role: "user", content: [{ type: "text", text: "Hi.", ...EPHEMERAL }] },
      ],
    },
  ],
  [
    { thoughts: { field: "reasoning_content", on: "calls" } },
    "chat",
    { messages: [thinks("Hm."), { ...REPLY, reasoning_content: "So." }, { ...CALLS, reasoning: "Oh." }] },
    { messages: [thinks("Hm."), { ...REPLY, reasoning_content: "So." }, thinks("Oh.")] },
  ],
  [
    { thoughts: { field: "reasoning_content", on: "all", missing: "empty" } },
    "chat",
    { messages: [USER, CALLS, REPLY] },
    { messages: [USER, thinks(""), { ...REPLY, reasoning_content: "" }] },
  ],
  [
    { thoughts: { field: "reasoning_content", on: "calls", missing: "empty" } },
    "chat",
    { messages: [CALLS, REPLY] },
    { messages: [thinks(""), REPLY] },
  ],
  [
    { thoughts: { field: "reasoning", on: "all" } },
    "chat",
    { messages: [thinks("Hm."), REPLY] },
    { messages: [{ ...CALLS, reasoning: "Hm." }, REPLY] },
  ],
  [
    { thoughts: { field: "none" } },
    "chat",
    { messages: [thinks("Hm."), { ...REPLY, reasoning: "So.", reasoning_details: [{ text: "So." }] }] },
    { messages: [CALLS, REPLY] },
  ],
  [
    { thoughts: { field: "tags", on: "all" } },
    "chat",
    {
      messages: [
        { ...REPLY, reasoning: "So." },
        { role: "assistant", content: [TEXT], reasoning: "Hm." },
      ],
    },
    {
      messages: [
        { role: "assistant", content: "<think>So.</think>Done." },
        { role: "assistant", content: [{ type: "text", text: "<think>Hm.</think>" }, TEXT] },
      ],
    },
  ],
  [
    { thoughts: { field: "signature", on: "calls", missing: "skip" } },
    "chat",
    {
      messages: [
        CALLS,
        {
          ...CALLS,
          tool_calls: [call("a", { extra_content: { google: { thought_signature: "s" } } }), call("b")],
        },
      ],
    },
    {
      messages: [
        {
          ...CALLS,
          tool_calls: [
            call("call_1", {
              extra_content: { google: { thought_signature: "skip_thought_signature_validator" } },
            }),
          ],
        },
        {
          ...CALLS,
          tool_calls: [call("a", { extra_content: { google: { thought_signature: "s" } } }), call("b")],
        },
      ],
    },
  ],
  [
    { thoughts: { field: "none" } },
    "messages",
    { messages: [assistant(thought("s"), TEXT), assistant({ type: "redacted_thinking", data: "d" })] },
    { messages: [assistant(TEXT)] },
  ],
  [
    { thoughts: { field: "blocks", missing: "off" } },
    "messages",
    { messages: [assistant(thought("s"), USE), assistant(USE)] },
    { messages: [assistant(thought("s"), USE), assistant(USE)], thinking: { type: "disabled" } },
  ],
  [
    { thoughts: { field: "blocks", missing: "off" } },
    "messages",
    { messages: [assistant(thought("s"), USE), assistant(TEXT)] },
    { messages: [assistant(thought("s"), USE), assistant(TEXT)] },
  ],
  // Without a signature no server of this API takes a thought of another one.
  [{}, "messages", { messages: [assistant(thought(""), TEXT)] }, { messages: [assistant(TEXT)] }],
];

test.each(ROWS)("%j over %s", (rules, wire, given, sent) => {
  requestRules.parse(rules);
  const before = structuredClone(given);
  const once = outgoing(given, wire, rules);
  expect(once).toEqual(sent);
  expect(given, "the request itself is not changed").toEqual(before);
  expect(outgoing(once, wire, rules), "a second time").toEqual(sent);
});

test("each rule that changes requests has a row", () => {
  // The API is chosen before a request is made.
  const tested = new Set(["wire", ...ROWS.flatMap(([rules]) => Object.keys(rules))]);
  expect(Object.keys(requestRules.shape).filter((name) => !tested.has(name))).toEqual([]);
});

describe("a request is the same object", () => {
  const full: Json = {
    model: "m",
    max_tokens: 9,
    tool_choice: "auto",
    tools: [chatTool(SCHEMA)],
    messages: [...HISTORY, REPLY, USER],
  };
  const empty: RequestRules[] = [
    {},
    { rename: { max_completion_tokens: "max_tokens" }, drop: ["store"], most: { max_tokens: 9, seed: 1 } },
    { put: { max_tokens: 1 }, forced: "no", schema: "full", needsTools: true, markText: false },
    { callIds: "any", afterTool: "notUser", emptyContent: "text", systemRole: "system", marks: "none" },
    { thoughts: { field: "none" } },
    { thoughts: { field: "reasoning_content", on: "calls" } },
    { thoughts: { field: "tags" } },
    { thoughts: { field: "reasoning_details" } },
  ];
  test.each(
    empty.flatMap((rules) => (["chat", "messages", "responses"] as const).map((wire) => ({ rules, wire }))),
  )("$rules over $wire", ({ rules, wire }) => {
    const sent = outgoing(full, wire, rules);
    if (rules.systemRole === undefined || wire !== "chat") expect(sent).toBe(full);
    else expect(sent).toEqual(full);
  });

  test("whatever its messages are", () => {
    for (const messages of [
      undefined,
      null,
      "text",
      [],
      [{}],
      [{ role: "assistant", content: 3, tool_calls: "x" }],
    ])
      for (const wire of ["chat", "messages", "responses"] as const) {
        const odd: Json = { messages };
        expect(outgoing(odd, wire, { callIds: "nine", needsTools: true, emptyContent: "null" })).toEqual(odd);
      }
  });
});

test("thoughts with a refused signature are not sent again, others are", () => {
  const body = {
    messages: [
      assistant(thought("foreign"), TEXT),
      assistant(thought("own"), TEXT),
      assistant({ type: "redacted_thinking", data: "other" }, TEXT),
      assistant(thought("foreign")),
    ],
  };
  const [foreign = "", own, other = "", ...more] = signatureDigests(body);
  expect(new Set([foreign, own, other]).size).toBe(3);
  expect(more).toEqual([foreign]);
  const refused = new Set([foreign, other]);
  expect(outgoing(body, "messages", {}, refused)).toEqual({
    messages: [assistant(TEXT), assistant(thought("own"), TEXT), assistant(TEXT)],
  });
});

test("an id of a call that is changed is the same one each time, and differs from others", () => {
  const ids = Array.from({ length: 500 }, (_, at) => `call_${at}`);
  const changed = ids.map((id) => {
    const { messages } = outgoing({ messages: [{ ...RESULT, tool_call_id: id }] }, "chat", {
      callIds: "nine",
    });
    return (messages as [{ tool_call_id: string }])[0].tool_call_id;
  });
  expect(new Set(changed).size).toBe(ids.length);
  for (const id of changed) expect(id).toMatch(/^[a-zA-Z0-9]{9}$/);
});

test.each([
  ["auto", false],
  ["none", false],
  [undefined, false],
  ["required", true],
  ["any", true],
  [{ type: "auto" }, false],
  [{ type: "none" }, false],
  [{ type: "any" }, true],
  [{ type: "tool", name: "ls" }, true],
])("the choice %j forces a call: %s", (choice, forces) => expect(isForced(choice)).toBe(forces));
