import { AIMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import { VisibleText, readMarkup, readTextReply } from "../../../src/agent/models/text-reply.ts";

const TOOLS = ["ls", "write_file", "execute"];
const read = (text: string) => readTextReply(text, TOOLS);
const root = { name: "ls", args: { path: "/" } };

/** One call of `ls` with the path `/`, as each family of models writes it. */
const FORMS: ReadonlyArray<readonly [models: string, markup: string]> = [
  ["Hermes, Qwen", '<tool_call>\n{"name": "ls", "arguments": {"path": "/"}}\n</tool_call>'],
  ["Qwen3-Coder", "<tool_call>\n<function=ls>\n<parameter=path>\n/\n</parameter>\n</function>\n</tool_call>"],
  [
    "Qwen3-Coder without its opening",
    "<function=ls>\n<parameter=path>\n/\n</parameter>\n</function>\n</tool_call>",
  ],
  ["Seed-OSS", "<seed:tool_call><function=ls><parameter=path>/</parameter></function></seed:tool_call>"],
  ["Llama 3, JSON", '{"name": "ls", "parameters": {"path": "/"}}'],
  ["Llama 3, JSON with a type", '{"type": "function", "name": "ls", "parameters": {"path": "/"}}'],
  ["Llama 3, tag", '<|python_tag|>{"name": "ls", "parameters": {"path": "/"}}<|eom_id|>'],
  ["Llama 3, function", '<function=ls>{"path": "/"}</function>'],
  ["Llama 3 at Groq", '<function=ls{"path": "/"}</function>'],
  ["Mistral v3", '[TOOL_CALLS][{"name": "ls", "arguments": {"path": "/"}}]'],
  ["Mistral v11", '[TOOL_CALLS]ls[ARGS]{"path": "/"}'],
  ["Mistral v13", '[TOOL_CALLS]ls[CALL_ID]a1b2c3d4e[ARGS]{"path": "/"}</s>'],
  [
    "DeepSeek V3",
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>ls\n```json\n{"path": "/"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
  ],
  [
    "DeepSeek V3.1",
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>ls<｜tool▁sep｜>{"path": "/"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
  ],
  [
    "DeepSeek V3.2",
    '<｜DSML｜function_calls>\n<｜DSML｜invoke name="ls">\n<｜DSML｜parameter name="path" string="true">/</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
  ],
  [
    "DeepSeek V4",
    '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="ls">\n<｜DSML｜parameter name="path" string="true">/</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
  ],
  ["GLM 4.5", "<tool_call>ls\n<arg_key>path</arg_key>\n<arg_value>/</arg_value>\n</tool_call>"],
  ["GLM 5", "<tool_call>ls<arg_key>path</arg_key><arg_value>/</arg_value></tool_call>"],
  [
    "Kimi K2",
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>{"path": "/"}<|tool_call_end|><|tool_calls_section_end|>',
  ],
  [
    "MiniMax M2",
    '<minimax:tool_call>\n<invoke name="ls">\n<parameter name="path">/</parameter>\n</invoke>\n</minimax:tool_call>',
  ],
  ["Gemma 3", '```tool_code\nls(path="/")\n```'],
  ["Gemma 3, printed", "```tool_code\nprint(default_api.ls(path='/'))\n```"],
  ["Gemma 4", '<|tool_call>call:ls{path:<|"|>/<|"|>}<tool_call|>'],
  ["FunctionGemma", "<start_function_call>call:ls{path:<escape>/<escape>}<end_function_call>"],
  ["Granite 3", '<|tool_call|>[{"name": "ls", "arguments": {"path": "/"}}]'],
  ["gpt-oss", '<|channel|>commentary to=functions.ls <|constrain|>json<|message|>{"path": "/"}<|call|>'],
  [
    "gpt-oss, other order",
    '<|start|>assistant to=functions.ls<|channel|>commentary json<|message|>{"path": "/"}',
  ],
  [
    "Command",
    '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "ls", "parameters": {"path": "/"}}]<|END_ACTION|>',
  ],
  [
    "Phi 4",
    '<|tool_call|>[{"type": "function", "function": {"name": "ls", "arguments": {"path": "/"}}}]<|/tool_call|>',
  ],
  ["LFM2", '<|tool_call_start|>[ls(path="/")]<|tool_call_end|>'],
  ["OLMo 3", '<function_calls>\nls(path="/")\n</function_calls>'],
  [
    "Claude",
    '<function_calls>\n<invoke name="ls">\n<parameter name="path">/</parameter>\n</invoke>\n</function_calls>',
  ],
  ["xLAM", '[{"name": "ls", "arguments": {"path": "/"}}]'],
];

describe("a call as text", () => {
  test.each(FORMS)("of %s is read", (_models, markup) => {
    expect(read(`First I look.\n\n${markup}`)).toEqual({
      text: "First I look.",
      calls: [root],
      thoughts: "",
      tagged: "",
      isIncomplete: false,
    });
    expect(read(markup)).toMatchObject({ text: "", calls: [root] });
    expect(read(`<think>hm</think>\n\n${markup}\n`)).toMatchObject({
      text: "",
      calls: [root],
      thoughts: "hm",
    });
  });

  test.each(FORMS)(
    "of %s stays text in code, in a quotation, before prose and without its tool",
    (_, markup) => {
      const texts = [
        `It writes\n\n\`\`\`\`text\n${markup}\n\`\`\`\`\n`,
        `It writes\n\n~~~~\n${markup}`,
        `${markup}\n\nThat is how it calls a tool.`,
        `It writes\n\n${markup.replaceAll(/^/gm, "> ")}`,
        `It writes "${markup}"`,
      ];
      for (const text of texts)
        expect(read(text), text).toMatchObject({ text, calls: [], isIncomplete: false });
      expect(readTextReply(markup, ["other"])).toMatchObject({ text: markup, calls: [] });
      expect(readTextReply(markup, [])).toMatchObject({ text: markup, calls: [], isIncomplete: false });
    },
  );

  test.each(FORMS.filter(([, markup]) => !/^[[{`]/.test(markup) || markup.startsWith("[T")))(
    "of %s is incomplete wherever the text ends in it",
    (models, markup) => {
      const last = Math.max(markup.lastIndexOf("}"), markup.lastIndexOf("/p"), markup.lastIndexOf("/inv"), 3);
      const opening = /^(?:<function=|<\|start\|>assistant to=|<\|channel\|>commentary to=|[^>\]]*[>\]])/;
      const first = opening.exec(markup)?.[0].length ?? 0;
      for (let end = first; end < last; end += 1) {
        const { calls, isIncomplete, text } = read(`First.\n\n${markup.slice(0, end)}`);
        if (calls.length > 0) continue; // complete but for its closing
        expect([models, markup.slice(0, end), text, isIncomplete]).toEqual([
          models,
          markup.slice(0, end),
          "First.",
          true,
        ]);
      }
    },
  );

  test.each([
    [
      "one after the other",
      '<tool_call>{"name": "ls", "arguments": {}}</tool_call>\n<tool_call>{"name": "ls", "arguments": {}}</tool_call>',
    ],
    ["in one list", '[TOOL_CALLS][{"name": "ls", "arguments": {}}, {"name": "ls", "arguments": {}}]'],
    ["in one tag", '<|python_tag|>{"name": "ls", "parameters": {}}; {"name": "ls", "parameters": {}}'],
    [
      "in one section",
      '<function_calls><invoke name="ls"></invoke><invoke name="ls"></invoke></function_calls>',
    ],
    ["as lines of JSON", '{"name": "ls", "arguments": {}}\n{"name": "ls", "arguments": {}}'],
    ["in Python", "<|tool_call_start|>[ls(), ls()]<|tool_call_end|>"],
    ["in code of Python", "```tool_code\nls()\nls()\n```"],
    ["with their channels", "<|channel|>commentary to=functions.ls<|message|>{}<|call|>".repeat(2)],
  ])("is read with others: %s", (_, markup) => {
    expect(read(markup).calls).toEqual([
      { name: "ls", args: {} },
      { name: "ls", args: {} },
    ]);
  });

  test.each([
    [
      "sloppy JSON",
      '<tool_call>{"name": "write_file", "arguments": {"content": "a\nb",}}</tool_call>',
      "a\nb",
    ],
    [
      "JSON as a text",
      '<tool_call>{"name": "write_file", "arguments": "{\\"content\\": \\"a\\"}"}</tool_call>',
      "a",
    ],
    [
      "a tag of its own form",
      '<tool_call>{"name": "write_file", "arguments": {"content": "</tool_call> <tool_call>"}}</tool_call>',
      "</tool_call> <tool_call>",
    ],
    [
      "tags of parameters",
      "<function=write_file><parameter=content>\n<a>\n</parameter> is\n its end\n</parameter></function>",
      "<a>\n</parameter> is\n its end",
    ],
    ["text like JSON", "<function=write_file><parameter=content>\n[1]\n</parameter></function>", "[1]"],
    [
      "JSON by its tag",
      '<｜DSML｜invoke name="write_file"><｜DSML｜parameter name="content" string="false">[1]</｜DSML｜parameter></｜DSML｜invoke>',
      [1],
    ],
    [
      "literals of Python",
      "```tool_code\nwrite_file(content={'a': [True, None, (1, \"b\")]})\n```",
      { a: [true, null, [1, "b"]] },
    ],
    [
      "a quoted text of Python",
      `<|tool_call_start|>[write_file(content='it\\'s "a" (b=1')]<|tool_call_end|>`,
      'it\'s "a" (b=1',
    ],
    [
      "a long text of Python",
      '```tool_code\nwrite_file(content="""a\n"b" \'c\'\n""")\n```',
      "a\n\"b\" 'c'\n",
    ],
    ["a marked text", '<|tool_call>call:write_file{content:<|"|>a: "b" {c}<|"|>}<tool_call|>', 'a: "b" {c}'],
    ["a marked number", "<|tool_call>call:write_file{content:3}<tool_call|>", 3],
  ])("has its arguments: %s", (_, markup, content) => {
    expect(read(markup)).toMatchObject({ text: "", calls: [{ name: "write_file", args: { content } }] });
  });

  test.each(["functions.ls", "LS", "default_api.ls"])(
    "is one of an offered tool by the name %s too",
    (name) => {
      expect(read(`<tool_call>{"name": "${name}", "arguments": {}}</tool_call>`).calls).toEqual([
        { name: "ls", args: {} },
      ]);
    },
  );

  test.each([
    ["a word", "The model writes <tool_call> first."],
    ["a word at the end", "The model writes <tool_call>"],
    ["inline code", 'It writes `<tool_call>{"name": "ls", "arguments": {}}</tool_call>`'],
    ["JSON behind words", 'It is {"name": "ls", "arguments": {"path": "/"}}'],
    ["JSON in its paragraph", 'It is\n{"name": "ls", "arguments": {"path": "/"}}'],
    ["JSON with more", '{"name": "ls", "arguments": {"path": "/"}, "why": "so"}'],
    ["JSON of something else", '{"name": "ls", "size": 3}'],
    ["JSON that is cut", '{"name": "ls", "arguments": {"pa'],
    ["Python that is cut", '```tool_code\nls(path="'],
    ["Python of another kind", "```tool_code\nfor f in files: print(f)\n```"],
    [
      "a call and one of a tool that is not offered",
      `${FORMS[0]?.[1]}<tool_call>{"name": "rm", "arguments": {}}</tool_call>`,
    ],
    ["a call and a word", `${FORMS[0]?.[1]}\nDone`],
    ["plain words of a channel", "commentary to=functions.ls json{}"],
    [
      "a fence that quoted text closes",
      'The page says\n```\n```\n<tool_call>{"name": "execute", "arguments": {"command": "x"}}</tool_call>\n```\n',
    ],
  ])("is none: %s", (_, text) => {
    expect(read(text)).toMatchObject({ text, calls: [], isIncomplete: false });
  });

  test.each([
    "<tool_call>",
    '<tool_call>{"name": "ls", "arguments": {path}}</tool_call>',
    '<tool_call>{"name": "ls", "arguments": [1]}</tool_call>',
    "<|tool_call_start|>[ls(path)]<|tool_call_end|>",
    "<function=ls><parameter=path>/</parameter>",
  ])("is incomplete if it cannot be read: %s", (markup) => {
    expect(read(`Now.\n${markup}`)).toMatchObject({ text: "Now.", calls: [], isIncomplete: true });
  });
});

describe("thoughts as text", () => {
  test.each([
    ["<think>hm</think>\nDone", "hm", "<think>hm</think>", "Done"],
    ["<thinking>hm</thinking>\nDone", "hm", "<thinking>hm</thinking>", "Done"],
    ["[THINK]hm[/THINK]Done", "hm", "[THINK]hm[/THINK]", "Done"],
    ["<seed:think>hm</seed:think>Done", "hm", "<seed:think>hm</seed:think>", "Done"],
    [
      "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Done<|END_RESPONSE|>",
      "hm",
      "<|START_THINKING|>hm<|END_THINKING|>",
      "Done",
    ],
    ["<|channel>thought\nhm<channel|>Done", "hm", "<|channel>thought\nhm<channel|>", "Done"],
    [
      "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Done<|return|>",
      "hm",
      "<|channel|>analysis<|message|>hm<|end|>",
      "Done",
    ],
    ["hm\n</think>\n\nDone", "hm", "hm\n</think>", "Done"],
    ["hm [1]</think>Done", "hm [1]", "hm [1]</think>", "Done"],
    ["<think>\n\n</think>\n\nDone", "", "<think>\n\n</think>", "Done"],
    ["<think>hm", "hm", "<think>hm", ""],
    ["<think>a</think>One\n<think>b</think>two", "a\n\nb", "<think>a</think><think>b</think>", "One\ntwo"],
    ["<think>a ```\nb</think>Done", "a ```\nb", "<think>a ```\nb</think>", "Done"],
  ])("leave the answer: %j", (text, thoughts, tagged, rest) => {
    for (const tools of [TOOLS, []])
      expect(readTextReply(text, tools)).toEqual({
        text: rest,
        calls: [],
        thoughts,
        tagged,
        isIncomplete: false,
      });
  });

  test("that are not closed end where a call begins", () => {
    expect(read(`<think>hm\n${FORMS[0]?.[1]}`)).toMatchObject({ text: "", calls: [root], thoughts: "hm" });
  });

  test.each([
    "Qwen writes `<think>` and `</think>` around them.",
    "```\n<think>hm</think>\n```",
    "> <think>hm</think>",
    'It ends with "</think>".',
    "Done\n<think>and more",
    "The tags <think>hm</think> in a line",
  ])("stay where they are quoted or no tag: %j", (text) => {
    expect(read(text)).toMatchObject({ text, thoughts: "", tagged: "" });
  });
});

describe("a reply", () => {
  const text = `<think>hm</think>\nFirst.\n${FORMS[0]?.[1]}`;

  test("gets the calls of its text, and keeps its thoughts apart", () => {
    const reply = new AIMessage({ content: text, response_metadata: { output: [text] } });
    expect(readMarkup(reply, TOOLS)).toBe(false);
    expect(reply).toMatchObject({
      content: "First.",
      tool_calls: [{ ...root, type: "tool_call" }],
      additional_kwargs: { tagged_thoughts: "<think>hm</think>", reasoning_content: "hm" },
      response_metadata: {},
    });
    expect(reply.response_metadata).not.toHaveProperty("output");
  });

  test("of blocks keeps those that are no text", () => {
    const image = { type: "image_url", image_url: "data:," };
    const blocks = [text.slice(0, 9), text.slice(9)].map((part) => ({ type: "text", text: part }));
    const reply = new AIMessage({ content: [...blocks, image] });
    readMarkup(reply, TOOLS);
    expect(reply.content).toEqual([{ type: "text", text: "First." }, image]);
    expect(reply.tool_calls).toMatchObject([root]);
  });

  // jundot/omlx#484: Qwen3.5 and 3.6 behind servers that read thoughts, and behind those that do not.
  test("without a text gets the calls at the end of its thoughts", () => {
    const call = FORMS[0]?.[1] ?? "";
    const thought = new AIMessage({
      content: "",
      additional_kwargs: { reasoning_content: `I list.\n${call}` },
    });
    const tagged = new AIMessage(`<think>I list.\n${call}</think>\n`);
    for (const reply of [thought, tagged]) {
      expect(readMarkup(reply, TOOLS)).toBe(false);
      expect(reply).toMatchObject({
        content: "",
        tool_calls: [{ ...root, type: "tool_call" }],
        additional_kwargs: { reasoning_content: "I list." },
      });
    }
    for (const others of [
      { content: "Done.", additional_kwargs: { reasoning_content: call } },
      { content: "", additional_kwargs: { reasoning_content: `${call}\nNo, I had better ask.` } },
      { content: "", additional_kwargs: { reasoning_content: call.replaceAll("ls", "format_disk") } },
    ]) {
      const reply = new AIMessage(others);
      readMarkup(reply, TOOLS);
      expect(reply.tool_calls).toEqual([]);
      expect(reply.additional_kwargs).toEqual(others.additional_kwargs);
    }
  });

  test("with calls of its own loses thoughts only, and what it had stays", () => {
    const own = { name: "execute", args: {}, id: "a", type: "tool_call" as const };
    const reply = new AIMessage({
      content: text,
      tool_calls: [own],
      additional_kwargs: { reasoning_content: "so" },
    });
    expect(readMarkup(reply, TOOLS)).toBe(false);
    expect(reply.content).toBe(`First.\n${FORMS[0]?.[1]}`);
    expect(reply.tool_calls).toEqual([own]);
    expect(reply.additional_kwargs).toEqual({
      reasoning_content: "so",
      tagged_thoughts: "<think>hm</think>",
    });
  });
});

describe("a text full of openings", () => {
  const units = FORMS.flatMap(([, markup]) => [markup.slice(0, markup.length / 2), `${markup} x\n\n`]);
  const others = [
    "<think>",
    "</think>",
    "`",
    '"',
    "```\n",
    "<think>a",
    "\n<think>",
    "\n\n{",
    "> ",
    '"""',
    "<arg_key>a</arg_key>\n<arg_value>",
    "<parameter=a></parameter>x",
  ];

  test.each([...units, ...others])("%j is read and shown to its end", (unit) => {
    const text = unit.repeat(Math.ceil(700_000 / unit.length));
    expect(read(`${text}.`).text.length).toBeLessThanOrEqual(text.length + 1);
    expect(new VisibleText("").add(text).length).toBeLessThanOrEqual(text.length);
  });
});

describe("a text that is shown while it is written", () => {
  const shown = (text: string, size: number): string[] => {
    const visible = new VisibleText("");
    const texts: string[] = [];
    for (let at = 0; at < text.length; at += size) texts.push(visible.add(text.slice(at, at + size)));
    return texts;
  };

  test.each(FORMS)("has nothing of the markup of %s", (_, markup) => {
    for (const size of [1, 3, 1000])
      for (const text of shown(`First I look.\n\n${markup}`, size))
        expect("First I look.".startsWith(text.trim())).toBe(true);
  });

  test.each([
    "<think>hm</think>\nDone, all of it.",
    "<thinking>hm\n\n</thinking>\n\nDone, all of it.",
    "[THINK]hm[/THINK]Done, all of it.",
    "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Done, all of it.",
  ])("has no thoughts: %j", (text) => {
    for (const size of [1, 3, 1000]) {
      const texts = shown(text, size);
      for (const one of texts) expect("Done, all of it.".startsWith(one.trimEnd())).toBe(true);
      expect(texts.at(-1)).toBe("Done, all of it.");
    }
  });

  test("begins again behind a lone end of thoughts", () => {
    expect(shown("hm, so\n</think>\n\nDone, all.", 3).at(-1)).toBe("Done, all.");
  });

  test("keeps code, and what only looks like a tag", () => {
    const text =
      "Use `<tool_call>`:\n```xml\n<tool_call>\n<think>\n```\nif a < b and [c] {d}.\n> quoted\nIts <think>hm</think> ends.";
    for (const size of [1, 3, 1000]) expect(shown(text, size).at(-1)).toBe(text);
  });
});
