import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import {
  ENGINE,
  PROGRAM_LIMITS,
  type ProgramEnd,
  type ProgramLimits,
  withProgram,
} from "../../src/programs/program.ts";

type Tool = (args: unknown, number: number) => unknown;

/** Runs a program with these tools; each call is answered at once. */
async function run(
  source: string,
  tools: Record<string, Tool> = {},
  limits: Partial<ProgramLimits> = {},
  now = 1_700_000_000_000,
): Promise<ProgramEnd> {
  const calls: Array<{ number: number; name: string; args: string }> = [];
  let wake = (): void => undefined;
  const signal = new AbortController().signal;
  const names = Object.keys(tools);
  const ended = await withProgram(
    { source, names, now, seed: 7, signal, limits: { ...PROGRAM_LIMITS, ...limits } },
    { called: (call) => calls.push(call), waits: () => wake() },
    async (program) => {
      wake = () => {
        for (const { number, name, args } of calls.splice(0)) {
          const answer = tools[name]?.(JSON.parse(args), number);
          const message = answer instanceof Error ? { error: answer.message } : { value: answer };
          program.answer({ number, answer: JSON.stringify(message), at: now + 1000 * number });
        }
      };
      return program.end;
    },
  );
  if ("busy" in ended) throw new Error(ended.busy);
  return ended;
}

const add: Tool = (args) => {
  const { a, b } = args as { a: number; b: number };
  return a + b;
};

test("a program calls tools and returns JSON", async () => {
  const { outcome, log } = await run(
    `const sums = await Promise.all([1, 2, 3].map((a) => tools.add({ a, b: 10 })));
     console.log("sums", sums);
     return { total: sums.reduce((a, b) => a + b) };`,
    { add },
  );
  expect(outcome).toEqual({ value: '{"total":36}' });
  expect(log).toBe("sums [11,12,13]");
});

test("time and chance are the same at each start", async () => {
  const source = `const first = [Date.now(), Math.random()];
    await tools.add({ a: 1, b: 1 });
    return [...first, Date.now(), Math.random(), new Date().getTimezoneOffset()];`;
  const one = await run(source, { add });
  const other = await run(source, { add });
  expect(one).toEqual(other);
  expect(one.outcome).toEqual({
    value: expect.stringMatching(/^\[17000000000\d\d,0\.\d+,17000000010\d\d,0\.\d+,0\]$/),
  });
});

test.for([
  ["a tool's error can be caught", `try { await tools.bad() } catch (e) { return e.message }`, '"it broke"'],
  ["no value", `const one = await 1;`, "null"],
  ["the value of the last statement", `const one = 1; one + 1`, "2"],
  ["the value of main", `async function main() { return await tools.one(); }\nmain();`, "1"],
  ["the value of main that is awaited", `const main = async () => tools.one();\nawait main();`, "1"],
  ["a main function that is exported", "export default async () => await tools.one()", "1"],
  ["exported parts", "export const a = 1;\nexport function f() { return a }\nf()", "1"],
  ["types that are imported", 'import type { T } from "./t";\nconst a: T = 1;\na', "1"],
  ["a tool by its name alone", "return await one()", "1"],
  ["a variable with the name of a tool", "const one = 2;\none", "2"],
  ["promises in a list", `return [1, 2].map(async (n) => n + (await tools.one()))`, "[2,3]"],
  ["promises in an object", `return { a: tools.one() }`, '{"a":1}'],
  ["a code fence", "```js\nreturn 7\n```", "7"],
  ["types", "```ts\ninterface A { x: number }\nconst a: A = { x: 1 };\nreturn a.x as number\n```", "1"],
  ["an enumeration", "enum E { A, B }\nreturn E.B", "1"],
  [
    "a map and a set",
    `return { m: new Map([["a", 1]]), n: new Map([[1, 2]]), s: new Set([1]) }`,
    '{"m":{"a":1},"n":[[1,2]],"s":[1]}',
  ],
  [
    "dates, errors and big numbers",
    `return [new Date(0), new Error("x"), 5n, 2n ** 70n, NaN, /x/g, new Uint8Array(1)]`,
    '["1970-01-01T00:00:00.000Z",{"name":"Error","message":"x"},5,"1180591620717411303424","NaN","/x/g",[0]]',
  ],
  [
    "a circle",
    "const a = { b: 1 }; a.a = a; return [a, a];",
    '[{"b":1,"a":"[circular]"},{"b":1,"a":"[circular]"}]',
  ],
  ["a map in itself", "const m = new Map(); m.set('m', m); return m", '{"m":"[circular]"}'],
  [
    "a promise deep inside",
    "return { a: { b: Promise.resolve(1) } }",
    '{"a":{"b":"[a promise that was not awaited]"}}',
  ],
  [
    "numbers of a language",
    `return [(1234567.891).toLocaleString("de-DE"), (1234.5).toLocaleString(), 12345n.toLocaleString("en")]`,
    '["1.234.567,891","1,234.5","12,345"]',
  ],
  [
    "dates of a language",
    `return [new Date(0).toLocaleDateString("de-DE"), new Date(NaN).toLocaleString()]`,
    '["1.1.1970","Invalid Date"]',
  ],
  [
    "letters of a language",
    `return ["i".toLocaleUpperCase("tr"), "a2".localeCompare("a10", undefined, { numeric: true })]`,
    '["İ",-1]',
  ],
  [
    "the order of words",
    `return ["z", "ä", "B", "b", "a_1", "a-1", "a"].sort((x, y) => x.localeCompare(y))`,
    '["a","ä","a_1","a-1","b","B","z"]',
  ],
])("%s", async ([, source, value]) => {
  const { outcome } = await run(source ?? "", { bad: () => new Error("it broke"), one: () => 1 });
  expect(outcome).toEqual({ value });
});

test.for([
  ["a mistake in the text", "return 1 +;", /^SyntaxError: .*\n.*program\.js:1/],
  ["an error with its line", "\nlet a;\na.b();", /^TypeError: .*\n.*program\.js:3:1/],
  ["an unknown tool", "await tools.nothing()", /No tool is named 'nothing'. Tools: add\./],
  ["a value that is thrown", "throw { code: 1 }", /^The program threw \{"code":1\}$/],
  ["nothing to wait for", "await new Promise(() => {})", /waits for something that never happens/],
  ["too long a result", `return "x".repeat(2e6)`, /returned 2000002 characters of JSON, more than 1048576/],
  ["a locale that is none", "return (5).toLocaleString('no such')", /^RangeError: .*\n.*program\.js:1/],
  [
    "an import",
    "import fs from 'fs'; return fs",
    /^Error: A program cannot import 'fs'\. .*\n.*program\.js:1/,
  ],
  ["a module", "const { join } = require('path')", /^Error: A program cannot import 'path'\. All that/],
  [
    "an error in main",
    "async function main() { throw new Error('BAD'); }\nmain();",
    /^Error: BAD\n.*program\.js:1/,
  ],
  ["too much memory", "const a = []; for (;;) a.push(new Uint8Array(1e6));", /out of memory|too much memory/],
  ["no end of calling itself", "const f = () => f() + 1; return f();", /call stack|stack overflow/i],
  ["what is not there", "return process.env.HOME", /process is not defined/],
])("the model reads about %s", async ([, source, text]) => {
  const { outcome } = await run(String(source), { add });
  expect(outcome).toEqual({ error: expect.stringMatching(text as RegExp) });
  expect(JSON.stringify(outcome)).not.toMatch(/prelude\.js|ending\.js|node:/);
});

test("a program without an end is stopped", async () => {
  const { outcome } = await run("for (;;);", {}, { ownMs: 300 });
  expect(outcome).toEqual({ error: expect.stringContaining("it worked for more than") });
});

test("a program makes so many calls and no more", async () => {
  const source = `let made = 0;
    try { for (;;) { await tools.add({ a: made, b: 0 }); made += 1; } } catch (e) { return [made, e.message]; }`;
  const { outcome } = await run(source, { add }, { calls: 5 });
  expect(outcome).toEqual({ value: '[5,"A program may make 5 calls."]' });
});

test.for([
  ["a call", "tools.add({ a: 1, b: 2 }).then((sum) => console.log(sum)); return 1;", "1", "3"],
  ["a function", "(async () => { console.log(await tools.add({ a: 1, b: 2 })); })();", "null", "3"],
  ["each", "[1, 2].forEach(async (a) => { console.log(await tools.add({ a, b: 2 })); });", "null", "3\n4"],
  [
    "a rejection",
    "Promise.reject(new Error('LOST'));\nreturn 1;",
    "1",
    "A promise was rejected, and the program did not await it: Error: LOST",
  ],
  ["a rejection that is handled", "const p = Promise.reject(1); p.catch(() => 0); return 1;", "1", ""],
  [
    "a call that fails",
    "tools.bad(); return 1",
    "1",
    "A promise was rejected, and the program did not await it: Error: it broke",
  ],
])("the work of what nobody awaits is done: %s", async ([, source, value, printed]) => {
  const { outcome, log } = await run(source ?? "", { add, bad: () => new Error("it broke") });
  expect([outcome, log]).toEqual([{ value }, printed]);
});

test("records name the engine that runs programs", () => {
  const { name, version } = JSON.parse(readFileSync("node_modules/quickjs-wasi/package.json", "utf8")) as {
    name: string;
    version: string;
  };
  expect(ENGINE).toBe(`${name} ${version}`);
});
