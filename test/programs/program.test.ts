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
  ["no value", `await 1;`, "null"],
])("%s", async ([, source, value]) => {
  const { outcome } = await run(source ?? "", { bad: () => new Error("it broke") });
  expect(outcome).toEqual({ value });
});

test.for([
  ["a mistake in the text", "return 1 +;", /^SyntaxError: .*\n.*program\.js:1/],
  ["an error with its line", "\nlet a;\na.b();", /^TypeError: .*\n.*program\.js:3:1/],
  ["an unknown tool", "await tools.nothing()", /No tool is named 'nothing'. Tools: add\./],
  ["a value that is thrown", "throw { code: 1 }", /^The program threw \{"code":1\}$/],
  ["nothing to wait for", "await new Promise(() => {})", /waits for something that never happens/],
  ["too long a result", `return "x".repeat(2e6)`, /returned 2000002 characters of JSON, more than 1048576/],
  ["a circle", "const a = {}; a.a = a; return a;", /circular/],
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

test("calls that nobody waits for are not answered after the end", async () => {
  const { outcome } = await run("tools.add({ a: 1, b: 2 }); return 1;", { add });
  expect(outcome).toEqual({ value: "1" });
});

test("records name the engine that runs programs", () => {
  const { name, version } = JSON.parse(readFileSync("node_modules/quickjs-wasi/package.json", "utf8")) as {
    name: string;
    version: string;
  };
  expect(ENGINE).toBe(`${name} ${version}`);
});
