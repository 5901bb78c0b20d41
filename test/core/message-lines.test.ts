import { Readable } from "node:stream";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { bytesShapeProblem } from "../../src/core/json.ts";
import { checkedBody, checkedEvents, checkedLines, type LineChecks } from "../../src/core/message-lines.ts";

const MAX_BYTES = 1024 * 1024;

const checks = (refuse: LineChecks["refuse"]): LineChecks => ({
  maxBytes: MAX_BYTES,
  tooLong: "too long",
  problemOf: (line) => bytesShapeProblem(line),
  refuse,
});

async function all(lines: AsyncIterable<Buffer>): Promise<Buffer[]> {
  const passed: Buffer[] = [];
  for await (const line of lines) passed.push(line);
  return passed;
}

/** What is passed on of `chunks`, line by line, and what is refused. */
async function pass(chunks: Iterable<string>) {
  const refused: [id: string | number, problem: string][] = [];
  const input = Readable.from(
    [...chunks].map((chunk) => Buffer.from(chunk)),
    { objectMode: false },
  );
  const passed = await all(
    checkedLines(
      input,
      checks((id, problem) => refused.push([id, problem])),
    ),
  );
  return {
    lines: Buffer.concat(passed).toString().split("\n").slice(0, -1),
    refused,
  };
}

const LONG = "x".repeat(MAX_BYTES);
const DEEP = JSON.parse(`${"[".repeat(300)}${"]".repeat(300)}`) as unknown;
const MANY = Array.from({ length: 20_000 }, (_, key) => key);

test("lines arrive whole and in order, however they are cut into pieces; empty ones do not", async () => {
  const line = fc.string({ maxLength: 20 }).map((text) => JSON.stringify(text));
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(line, fc.constant(""))),
      fc.integer({ min: 1, max: 9 }),
      async (lines, size) => {
        const all = lines.map((one) => `${one}\n`).join("");
        const chunks = all.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? [];
        expect(await pass(chunks)).toEqual({ lines: lines.filter((one) => one !== ""), refused: [] });
      },
    ),
  );
});

test.each([
  ["too long", LONG, /^too long$/],
  ["too deep", DEEP, /nested deeper than 200 levels/],
  ["of too many values", MANY, /more than 10000 elements and members/],
])("a request that is %s is refused by its id, the next one is read", async (_what, params, problem) => {
  const method = "tools/call";
  const requests = [
    { jsonrpc: "2.0", id: 1, method, params },
    { id: "two", method, params },
    { method, params, jsonrpc: "2.0", id: 3 },
    { method, params, id: 4, jsonrpc: "2.0" },
    { method: "notifications/progress", params },
  ];
  const { lines, refused } = await pass([...requests, "next"].map((line) => `${JSON.stringify(line)}\n`));
  expect(lines).toEqual(['"next"']);
  expect(refused.map(([id]) => id)).toEqual([1, "two", 3, 4]);
  for (const [, text] of refused) expect(text).toMatch(problem);
});

test("an answer that is too long becomes an error, so that nobody waits for it", async () => {
  const result = { content: LONG };
  const answers = [
    { jsonrpc: "2.0", id: 7, result },
    { result, jsonrpc: "2.0", id: 8 },
  ];
  const { lines, refused } = await pass(answers.map((line) => `${JSON.stringify(line)}\n`));
  expect(refused).toEqual([]);
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject(
    [7, 8].map((id) => ({ id, error: { message: "too long" } })),
  );
});

test("of a line without an end no more than the limit is held", async () => {
  const before = process.memoryUsage().arrayBuffers;
  let most = 0;
  const [chunk, chunks] = [Buffer.alloc(512 * 1024, "x"), 800];
  function* endless() {
    for (let count = 0; count < chunks; count += 1) {
      most = Math.max(most, process.memoryUsage().arrayBuffers - before);
      yield Buffer.from(chunk);
    }
  }
  const refused: unknown[] = [];
  const passed = await all(
    checkedLines(
      Readable.from(endless(), { objectMode: false }),
      checks((id) => refused.push(id)),
    ),
  );
  expect({ passed, refused }).toEqual({ passed: [], refused: [] });
  // Garbage counts, too, until it is collected.
  expect(most).toBeLessThan((chunk.length * chunks) / 2);
});

/** What comes out of a stream of the web when `chunks` go in. */
async function through(
  stream: TransformStream<Uint8Array, Uint8Array>,
  chunks: Iterable<string>,
): Promise<string> {
  const bytes = new ReadableStream<string>({
    start: (controller) => {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  return new Response(bytes.pipeThrough(new TextEncoderStream()).pipeThrough(stream)).text();
}

const pieces = (text: string, size: number): string[] => text.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
const never = checks(() => expect.unreachable());

test("events arrive whole and in order, however they are cut into pieces", async () => {
  const line = fc.constantFrom('data: {"a":1}', "data: b", ": ping", "event: message", "id: 1,2");
  const event = fc.array(line, { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(event, { maxLength: 5 }),
      fc.constantFrom("\n", "\r\n"),
      fc.integer({ min: 1, max: 9 }),
      async (events, end, size) => {
        const text = events.map((lines) => lines.join(end) + end + end).join("");
        expect(await through(checkedEvents(never), pieces(text, size))).toBe(text);
      },
    ),
  );
});

test("an event that is too long becomes one with an error, and the next is passed on", async () => {
  const answer = JSON.stringify({ jsonrpc: "2.0", id: 7, result: { content: LONG } });
  const text = `event: message\ndata: ${answer}\n\ndata: {}\n\n`;
  const [first = "", ...rest] = (await through(checkedEvents(never), pieces(text, 65_536))).split("\n\n");
  expect(JSON.parse(first.slice("data: ".length))).toMatchObject({ id: 7, error: { message: "too long" } });
  expect(rest).toEqual(["data: {}", ""]);
});

test("a body that is one message is passed on, or an error in its place", async () => {
  const short = '{\n  "jsonrpc": "2.0",\n  "id": 8,\n  "result": {}\n}';
  expect(await through(checkedBody(never), pieces(short, 5))).toBe(short);
  const long = JSON.stringify({ result: { content: LONG }, jsonrpc: "2.0", id: 8 });
  const told = await through(checkedBody(never), pieces(long, 65_536));
  expect(JSON.parse(told)).toMatchObject({ id: 8, error: { message: "too long" } });
  expect(await through(checkedBody(never), pieces("x".repeat(2 * MAX_BYTES), 65_536))).toBe("");
});
