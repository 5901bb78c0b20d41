// oxlint-disable-next-line typescript/triple-slash-reference -- programs that are checked with this source have no list of files
/// <reference path="../core/thread-texts.d.ts" />
/** Turns HTML and PDF into text, in a thread or a process that a page cannot hold up or exhaust. */
import { once } from "node:events";
import { serialize } from "node:v8";
import { Worker } from "node:worker_threads";
import { runProgram } from "../core/child-process.ts";
import { Semaphore } from "../core/concurrency.ts";
import { defined } from "../core/unknown.ts";

export interface Converted {
  title?: string | undefined;
  text: string;
  /** One sentence each: omissions. */
  notes: string[];
  /** Address that the page forwards its readers to. */
  forward?: string;
}

export type HtmlInput = { html: string; url: string; isPlain: boolean };
export type PdfInput = { pdf: Uint8Array; timeMs: number; characters: number };

/** Input of a bounded process: its thread, and the bounds. */
export interface ThreadInput {
  code: string;
  workerData: PdfInput;
  timeMs: number;
  /** Memory of the whole process. */
  bytes: number;
  /** Its id: the process ends with it, and may begin after its end. */
  parent: number;
}

/** The text, or a problem in one sentence for the model. */
export type Conversion = Converted | { problem: string };

interface ConvertOptions {
  timeMs: number;
  signal: AbortSignal;
}

/** An ordinary page needs 50 MB. For HTML it bounds the heap, for a PDF everything: its streams unpack outside the heap. */
const MAX_MEMORY_MB = 512;

/** The Markdown of a page. A page that takes too long or too much memory is read as plain text instead. */
export async function htmlToMarkdown(
  html: string,
  url: string,
  options: ConvertOptions,
): Promise<Conversion> {
  const { default: code } = await import("./html.thread.ts?text");
  const rich = await inThread(code, { html, url, isPlain: false }, options);
  return rich ?? (await inThread(code, { html, url, isPlain: true }, options)) ?? { problem: TOO_MUCH };
}

export async function pdfToText(
  pdf: Uint8Array,
  characters: number,
  options: ConvertOptions,
): Promise<Conversion> {
  const { default: code } = await import("./pdf.thread.ts?text");
  const { default: bounded } = await import("./bounded-process.thread.ts?text");
  const { timeMs, signal } = options;
  // The thread ends by itself with the pages it has read.
  const workerData = { pdf, characters, timeMs: timeMs * 0.8 };
  const bytes = MAX_MEMORY_MB * 2 ** 20;
  const input: ThreadInput = { code, workerData, timeMs, bytes, parent: process.pid };
  return conversionThreads.run(async () => {
    try {
      const output = await runProgram(process.execPath, ["-e", bounded], {
        // No variable of this process but one that Windows needs. A program built with Electron runs as Node.
        env: { ELECTRON_RUN_AS_NODE: "1", ...defined({ SystemRoot: process.env["SystemRoot"] }) },
        inputs: [serialize(input)],
        timeout: timeMs,
        // Characters of JSON for one of the text, with some for titles and notes.
        maxOutput: 6 * characters + 100_000,
        signal,
        windowsHide: true,
      });
      return JSON.parse(output) as Conversion; // as the thread posts it
    } catch {
      signal.throwIfAborted();
      return { problem: TOO_MUCH };
    }
  }, signal);
}

const TOO_MUCH = "It takes too much time or memory to read it.";

/** Each thread can take a core and its memory, whatever the number of runs. */
const conversionThreads = new Semaphore(2);

/** The thread has no environment and no output. Returns undefined if it took too much time or memory. */
export const inThread = (
  code: string,
  workerData: HtmlInput,
  { timeMs, signal }: ConvertOptions,
): Promise<Conversion | undefined> =>
  conversionThreads.run(async () => {
    // With larger spaces for new objects, pages of megabytes take a third more memory.
    const resourceLimits = { maxOldGenerationSizeMb: MAX_MEMORY_MB, maxYoungGenerationSizeMb: 8 };
    const bare = { env: {}, execArgv: [], stdout: true, stderr: true, resourceLimits };
    const worker = new Worker(code, { eval: true, workerData, ...bare });
    const stop = AbortSignal.any([signal, AbortSignal.timeout(timeMs)]);
    try {
      const [outcome] = (await once(worker, "message", { signal: stop })) as [Conversion]; // as the threads post it
      return outcome;
    } catch {
      // The thread failed, which is the same as too much, or was stopped.
      signal.throwIfAborted();
      return undefined;
    } finally {
      await worker.terminate();
    }
  }, signal);
