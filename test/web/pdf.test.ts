import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { serialize } from "node:v8";
import { deflateSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { isAlive, runProgram } from "../../src/core/child-process.ts";
import { filesIn } from "../support/files-in.ts";
import { inThread, pdfToText } from "../../src/web/convert.ts";

const { default: bounded } = await import("../../src/web/bounded-process.thread.ts?text");
const MB = 2 ** 20;
const PROBLEM = "A part of it unpacks to more than 100 MB.";
/** Longer than any of these tests may take: only a limit of memory ends a process before. */
const LONG_MS = 600_000;

/** A PDF with one page, whose content is in these streams, each packed already. */
function pdf(...streams: Uint8Array[]): Uint8Array {
  const ids = streams.map((_stream, at) => `${10 + at} 0`);
  const parts = streams.flatMap((stream, at) => [
    Buffer.from(`${ids[at]} obj<</Length ${stream.length}/Filter/FlateDecode>>stream\n`),
    stream,
    Buffer.from("\nendstream endobj\n"),
  ]);
  const page = `<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 144]/Contents[${ids.map((id) => `${id} R`).join(" ")}]/Resources<</Font<</F1 5 0 R>>>>>>`;
  return new Uint8Array(
    Buffer.concat([
      Buffer.from(
        `%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n3 0 obj${page}endobj\n5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n`,
      ),
      ...parts,
      Buffer.from("trailer<</Root 1 0 R>>\n%%EOF"),
    ]),
  );
}

const textOf = (document: Uint8Array) =>
  pdfToText(document, 1000, { timeMs: LONG_MS, signal: new AbortController().signal });

test("a PDF with packed content is read", async () => {
  const content = deflateSync("BT /F1 24 Tf 20 100 Td (Hello tides) Tj ET");
  expect(await textOf(pdf(content))).toEqual({ text: "[page 1]\nHello tides", notes: [] });
});

test("a stream that unpacks to 300 MB is not read to its end", async () => {
  const bomb = deflateSync(Buffer.alloc(300 * MB, 32));
  expect(bomb.length).toBeLessThan(MB);
  expect(await textOf(pdf(bomb))).toEqual({ problem: PROBLEM });
});

test("nor are the streams of a page that unpack to more together", async () => {
  const part = deflateSync(Buffer.alloc(40 * MB, 32));
  expect(await textOf(pdf(part, part, part))).toEqual({ problem: PROBLEM });
});

/** Runs the code of a thread in a bounded process. */
const run = (code: string, bytes = 512 * MB) =>
  runProgram(process.execPath, ["-e", bounded], {
    env: {},
    inputs: [serialize({ code, workerData: "given", timeMs: LONG_MS, bytes, parent: process.pid })],
    timeout: LONG_MS,
  });
const POST = "const post = (value) => require('node:worker_threads').parentPort.postMessage(value);";

test("the thread of a process has its input and no environment", async () => {
  const code = `${POST} post([require('node:worker_threads').workerData, process.env]);`;
  expect(JSON.parse(await run(code))).toEqual(["given", {}]);
});

test.each([
  ["buffers outside the heap", "all.push(Buffer.alloc(16 * 2 ** 20, 1))"],
  ["objects in the heap", "all.push(Array.from({ length: 10 ** 6 }, (_, at) => ({ at })))"],
])("%s count against the memory of a process", async (_what, grow) => {
  // Ends by itself if nothing else ends it.
  const code = `${POST} const all = []; for (let at = 0; at < 40; at += 1) ${grow}; setTimeout(() => post(all.length), 2000);`;
  await expect(run(code, 200 * MB)).rejects.toMatchObject({ code: null });
});

test("a process that has not ended in its time is killed, and nothing of its document is read", async () => {
  const content = deflateSync("BT /F1 24 Tf 20 100 Td (Hello tides) Tj ET");
  const limits = { timeMs: 1, signal: new AbortController().signal };
  expect(await pdfToText(pdf(content), 1000, limits)).toEqual({
    problem: expect.stringContaining("too much time"),
  });
});

test("the process of a PDF gets no variable of this one", async () => {
  const folder = filesIn({ program: '#!/bin/sh\nenv > "$(dirname "$0")/env"\n', env: "" });
  chmodSync(join(folder, "program"), 0o755);
  const { execPath } = process;
  onTestFinished(() => {
    process.execPath = execPath;
    delete process.env["DEEPAGENT_TEST_LEAK"];
  });
  process.env["DEEPAGENT_TEST_LEAK"] = "1";
  process.execPath = join(folder, "program");
  await textOf(pdf());
  const names = readFileSync(join(folder, "env"), "utf8").matchAll(/^(\w+)=/gm);
  const ofShell = ["PWD", "OLDPWD", "SHLVL", "_"];
  expect([...names].map(([, name = ""]) => name).filter((name) => !ofShell.includes(name))).toEqual([
    "ELECTRON_RUN_AS_NODE",
  ]);
});

test("the thread of HTML has no environment, and ends at its time and its memory", async () => {
  const given = { html: "", url: "", isPlain: false };
  const work = (code: string, timeMs = LONG_MS) =>
    inThread(
      `const post = (text) => require("node:worker_threads").parentPort.postMessage({ text }); ${code}`,
      given,
      {
        timeMs,
        signal: new AbortController().signal,
      },
    );
  expect(await work("post(JSON.stringify(process.env))")).toEqual({ text: "{}" });
  expect(await work("for (;;);", 100)).toBeUndefined();
  const grow =
    "const all = []; for (let at = 0; at < 60; at += 1) all.push(Array(2 ** 21).fill(at + 0.5)); post('all')";
  expect(await work(grow)).toBeUndefined();
});

test("a process whose thread is busy ends with its parent", async () => {
  const code = "for (;;);";
  const script = `const child = require("node:child_process").spawn(process.execPath, ["-e", process.argv[1]], { stdio: ["ignore", "ignore", "inherit", "pipe"] });
    const input = { code: process.argv[2], workerData: "", timeMs: ${LONG_MS}, bytes: 2 ** 29, parent: process.pid };
    child.stdio[3].end(require("node:v8").serialize(input), () => console.log(child.pid)); setInterval(() => {}, 1000);`;
  const parent = spawn(process.execPath, ["-e", script, bounded, code]);
  onTestFinished(() => void parent.kill("SIGKILL"));
  const [line] = (await once(parent.stdout, "data")) as [Buffer];
  const pid = Number(line.toString());
  expect(isAlive(pid)).toBe(true);
  parent.kill("SIGKILL");
  await expect.poll(() => isAlive(pid), { timeout: 20_000 }).toBe(false);
});
