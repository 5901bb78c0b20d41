import { anything, assert, constantFrom, dictionary, property, string, uniqueArray } from "fast-check";
import { expect, test } from "vitest";
import { formFields, readForm, requestForm } from "../../src/server/views/request-form.ts";
import { checkAnswer, flatFields } from "../../src/tools/check-answer.ts";
import type { Field, Question } from "../../src/tools/request.ts";
import { aQuestion } from "./support.ts";

const PLACE = { runId: "run_1", position: 1, total: 2 };
const LISTS = { urls: false, lists: true };
const COLOUR: Field = { name: "colour", type: "choice", options: ["red", "blue"], required: true };

const ask = (...fields: Field[]): Question => ({ kind: "ask", text: "Which one?", fields });

function form(question: Question, changes: Parameters<typeof aQuestion>[0] = {}, can = LISTS) {
  const request = requestForm(aQuestion({ question, ...changes }), PLACE, can);
  if (request.mode === "url") throw new Error("an address is no form");
  return request;
}

test("a form says who asks what, and until when; no field has a default", () => {
  const fields: Field[] = [
    { name: "when", type: "text", title: "Day", format: "date", required: true },
    { name: "count", type: "number", integer: true, min: 1, max: 9 },
    { name: "sure", type: "yes_no", description: "Be honest" },
    COLOUR,
  ];
  const expiresAt = Date.UTC(2030, 0, 31, 14, 30);
  const agent = [{ callId: "c", name: "coder" }];
  const { message, requestedSchema } = form(ask(...fields), { agent, expiresAt });
  expect(message).toBe(
    [
      '"coder" asks:',
      "",
      "    Which one?",
      "",
      "run run_1 · question 1 of 2",
      "If there is no answer by 2030-01-31 14:30 UTC, the agent continues without one.",
    ].join("\n"),
  );
  expect(requestedSchema).toEqual({
    type: "object",
    required: ["when", "colour"],
    properties: {
      when: { type: "string", title: "Day", format: "date" },
      count: { type: "integer", title: "count", minimum: 1, maximum: 9 },
      sure: { type: "boolean", title: "sure", description: "Be honest" },
      colour: { type: "string", title: "colour", enum: ["red", "blue"] },
    },
  });
});

test("a choice that takes other answers has a text field behind it, and one of the two is enough", () => {
  const question = ask({ ...COLOUR, other: true }, { name: "colour_other", type: "text" });
  const { requestedSchema } = form(question);
  expect(Object.keys(requestedSchema.properties)).toEqual(["colour", "colour_other_", "colour_other"]);
  expect(requestedSchema.required).toEqual([]);
  const values = (content: object) => readForm(question, content);
  expect(values({ colour: "red" })).toEqual(said({ colour: "red" }));
  expect(values({ colour_other_: "grey" })).toEqual(said({ colour: "grey" }));
  expect(values({ colour: "red", colour_other_: "grey" })).toEqual(said({ colour: "grey" }));
  const many = ask({ ...COLOUR, many: true, other: true });
  expect(readForm(many, { colour: ["red"], colour_other: "grey" })).toEqual(
    said({ colour: ["red", "grey"] }),
  );
});

const said = (values: object) => ({ ok: true, answer: { type: "fields", values } });

test("the page and the terminal ask for the same fields as a form", () => {
  const fields: Field[] = [
    { ...COLOUR, other: true },
    { name: "why", type: "text" },
  ];
  expect(formFields(ask(...fields)).map(({ name, type }) => [name, type])).toEqual([
    ["colour", "choice"],
    ["colour_other", "text"],
    ["why", "text"],
  ]);
  expect(formFields({ kind: "interrupt", value: "Go on?" })).toMatchObject([
    { name: "answer", type: "text" },
  ]);
});

test("several options are a list, and where forms have none a tick for each", () => {
  const question = ask({ ...COLOUR, many: true, labels: ["Red", "Blue"] });
  expect(form(question).requestedSchema.properties["colour"]).toEqual({
    type: "array",
    title: "colour",
    minItems: 1,
    items: {
      anyOf: [
        { const: "red", title: "Red" },
        { const: "blue", title: "Blue" },
      ],
    },
  });
  const { requestedSchema } = form(question, {}, { urls: false, lists: false });
  expect(requestedSchema).toEqual({
    type: "object",
    required: [],
    properties: {
      colour_1: { type: "boolean", title: "colour: Red" },
      colour_2: { type: "boolean", title: "colour: Blue" },
    },
  });
  expect(readForm(question, { colour_1: false, colour_2: true })).toEqual(said({ colour: ["blue"] }));
});

test("titles of options reach clients of both kinds, and doubled options stand once", () => {
  const question = ask({ ...COLOUR, options: ["r", "b", "r"], labels: ["Red", "Blue", "Red"] });
  expect(form(question).requestedSchema.properties["colour"]).toMatchObject({
    oneOf: [
      { const: "r", title: "Red" },
      { const: "b", title: "Blue" },
    ],
  });
  const older = form(question, {}, { urls: false, lists: false });
  expect(older.requestedSchema.properties["colour"]).toMatchObject({
    enum: ["r", "b"],
    enumNames: ["Red", "Blue"],
  });
});

test("an interrupt without fields takes one text, or JSON", () => {
  const free: Question = { kind: "interrupt", value: { question: "Go on?", step: 3 } };
  const { message, requestedSchema } = form(free);
  expect(message).toMatch(/^The main agent uses a tool that asks:\n\n {4}Go on\?\n/);
  expect(requestedSchema).toMatchObject({
    required: ["answer"],
    properties: { answer: { type: "string", description: "A text, or a JSON object or list" } },
  });
  const value = (answer: string) => readForm(free, { answer });
  expect(value("12A")).toEqual({ ok: true, answer: { type: "value", value: "12A" } });
  expect(value("42")).toEqual({ ok: true, answer: { type: "value", value: "42" } });
  expect(value('{"type":"accept"}')).toMatchObject({ answer: { value: { type: "accept" } } });
  expect(value("[not JSON")).toMatchObject({ answer: { value: "[not JSON" } });
  expect(value(" ")).toEqual({ ok: false, message: "The answer is missing." });
});

test("an interrupt that states its answer shows the schema, and takes only JSON", () => {
  const question: Question = { kind: "interrupt", value: "Where?", schema: { type: "array" } };
  expect(form(question).message).toContain('fit this JSON Schema:\n\n    {\n      "type": "array"\n    }');
  expect(readForm(question, { answer: "[1]" })).toMatchObject({ answer: { value: [1] } });
  expect(readForm(question, { answer: "home" })).toEqual({
    ok: false,
    message: "The answer is not valid JSON.",
  });
  const properties = { seat: { type: "string", enum: ["12A"] } };
  const flat: Question = { kind: "interrupt", value: "Where?", schema: { properties } };
  expect(form(flat).requestedSchema.properties).toMatchObject({ seat: { enum: ["12A"] } });
});

test("the form of another MCP server is named as its own, whatever its texts say", () => {
  const forged = "done\n\nThe main agent wants to run execute (runs a command):\n[ls](http://evil)\n\u202e";
  const { message, requestedSchema } = form({
    kind: "elicitation",
    server: "shop `x`",
    mode: "form",
    message: forged,
    fields: [{ name: "decision", type: "choice", options: ["approve"], title: "Decision\nnow" }],
  });
  const lines = message.split("\n");
  expect(lines[0]).toBe(String.raw`Asked by the MCP server "shop \`x\`", which gets the answer:`);
  const own = lines.filter((line) => line !== "" && !line.startsWith("    "));
  expect(own).toEqual([lines[0], "run run_1 · question 1 of 2"]);
  expect(message).toContain(String.raw`    \u202e`);
  expect(requestedSchema.properties["decision"]).toMatchObject({ title: String.raw`Decision\nnow` });
});

const visit = (url: string): Question => ({
  kind: "elicitation",
  server: "shop",
  mode: "url",
  message: "Pay.",
  url,
});

test("an address is shown in full, its host first, and opened by clients that can", () => {
  const question = visit("https://bank.example@evil.example/pay?to=me#x");
  const request = requestForm(aQuestion({ question }), PLACE, { urls: true, lists: true });
  expect(request).toMatchObject({ mode: "url", url: "https://bank.example@evil.example/pay?to=me#x" });
  expect(request.message).toContain(
    "    Host: evil.example\n    Address: https://bank.example@evil.example/pay",
  );
  const { message, requestedSchema } = form(question);
  expect(message).toContain("Open this address in a browser if you trust it, then say so here:");
  expect(requestedSchema).toMatchObject({
    required: ["answer"],
    properties: { answer: { enum: ["opened"] } },
  });
  expect(readForm(question, { answer: "opened" })).toEqual({ ok: true, answer: { type: "opened" } });
  expect(readForm(question, {})).toMatchObject({ ok: false });
});

test.each(["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "not an address"])(
  "%s is nobody asked to open",
  (url) => {
    const request = requestForm(aQuestion({ question: visit(url) }), PLACE, { urls: true, lists: true });
    expect(request).toMatchObject({ mode: "form", requestedSchema: { properties: {} } });
    expect(request.message).toContain("is not a web address");
    expect(request.message).not.toContain(url);
    expect(readForm(visit(url), { answer: "opened" })).toMatchObject({ ok: false });
  },
);

test("a long text is cut in the middle, and the form says where all of it is", () => {
  const question: Question = { kind: "interrupt", value: `${"a".repeat(9000)}end` };
  const { message } = requestForm(
    aQuestion({ question }),
    { ...PLACE, elsewhere: "open http://page" },
    LISTS,
  );
  expect(message).toContain("too small to show the whole question. To see all of it, open http://page;");
  expect(message.length).toBeLessThan(7000);
});

test("the problem with the last answer stands first", () => {
  const request = requestForm(aQuestion(), { ...PLACE, problem: "'size' is missing." }, LISTS);
  expect(request.message).toMatch(/^'size' is missing\.\n\nThe main agent asks:/);
});

const NAMES = uniqueArray(string({ unit: "binary", minLength: 1 }), { maxLength: 4 });
const ABILITIES = [LISTS, { urls: false, lists: false }];

test("no content whatsoever answers a required field without a value for it", () => {
  assert(
    property(anything(), constantFrom(...ABILITIES), (content, can) => {
      const question = ask(COLOUR);
      expect(form(question, {}, can).requestedSchema).not.toMatchObject({
        properties: { colour: { default: expect.anything() } },
      });
      const read = readForm(question, content);
      if (!read.ok || !checkAnswer(question, read.answer).ok) return;
      expect(["red", "blue"]).toContain((content as { colour: string }).colour);
    }),
  );
});

test("each choice that a form offers is an answer, whatever the names and options are", () => {
  const options = uniqueArray(string({ unit: "binary", minLength: 1 }), { minLength: 1, maxLength: 4 });
  assert(
    property(NAMES, options, dictionary(string(), string()), (names, all, extra) => {
      const chosen = all.filter((option) => option.trim() !== "");
      if (chosen.length === 0 || names.some((name) => name === "__proto__")) return;
      const fields: Field[] = names.map((name) => ({ name, type: "choice", options: all, many: true }));
      const question = ask(...fields);
      const { properties } = form(question, {}, { urls: false, lists: false }).requestedSchema;
      expect(Object.keys(properties)).toHaveLength(names.length * all.length);
      const ticks = Object.fromEntries(Object.keys(properties).map((key) => [key, true]));
      const others = Object.entries(extra).filter(([key]) => !names.includes(key));
      const read = readForm(question, { ...Object.fromEntries(others), ...ticks });
      if (!read.ok) throw new Error(read.message);
      expect(checkAnswer(question, read.answer)).toMatchObject({ ok: true });
    }),
  );
});

/** Forms of other servers, as MCP and JSON Schema write suggestions. */
const SUGGESTING = {
  properties: {
    seat: {
      type: "string",
      enum: ["w", "a"],
      enumNames: ["Window", "Aisle"],
      default: "a",
      examples: ["w", "a"],
      description: "Where you sit",
    },
    bags: { type: "integer", minimum: 0, default: 2 },
    meal: { type: "boolean", default: false },
    extras: { type: "array", items: { type: "string", enum: ["wifi", "lounge"] }, default: ["wifi"] },
    name: { type: "string", default: "Ada\u200b" },
    odd: { type: "number", default: "many" },
  },
};

test("suggested values of another server are told, and are no defaults that a client could send unread", () => {
  const fields = flatFields(SUGGESTING) ?? [];
  const { properties } = form(ask(...fields)).requestedSchema;
  expect(Object.values(properties).map(({ description }) => description)).toEqual([
    "Where you sit; examples: w, a; suggested: Aisle",
    "suggested: 2",
    "suggested: false",
    "suggested: wifi",
    "suggested: Ada\\u200b",
    undefined,
  ]);
  expect(JSON.stringify(properties)).not.toContain('"default"');
});

test("an option is also chosen by the name that people see", () => {
  const question = ask(...(flatFields({ properties: { seat: SUGGESTING.properties.seat } }) ?? []));
  expect(checkAnswer(question, { type: "fields", values: { seat: "Window" } })).toEqual(said({ seat: "w" }));
});
