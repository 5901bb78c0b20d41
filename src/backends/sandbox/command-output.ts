import { StringDecoder } from "node:string_decoder";
import type { ExecuteResponse } from "../executor.ts";
import { type ScreenRow, SCREEN_ROWS, TerminalScreen } from "../terminal-screen.ts";

export type OutputStream = "stdout" | "stderr";

/** A row of a stream, in the order of the output. */
interface Line {
  stream: OutputStream;
  row: ScreenRow;
  isEnded: boolean;
}

/**
 * Collects the output of a command as a terminal would show it: whole lines of both streams in the order of their
 * arrival, with a mark on those of standard error. Shows `limit` bytes, holds `room` bytes, and drops the rest.
 */
export class CommandOutput {
  /** Bytes. */
  readonly limit: number;
  readonly #room: number;
  readonly #onOutput: ((chunk: string) => void) | undefined;
  readonly #decoders = { stdout: new StringDecoder(), stderr: new StringDecoder() };
  readonly #screens = { stdout: this.#screenOf("stdout"), stderr: this.#screenOf("stderr") };
  /** Lines that can still change. */
  readonly #open: Line[] = [];
  /** Lines that cannot change, on their way into the buffer. */
  #settled = "";
  #isInLine = false;
  /** Lines for `onOutput`, as they first were. */
  #news = "";
  #left: number;
  #kept: Buffer = Buffer.alloc(0);
  #length = 0;
  /** True if some output was dropped. */
  #isFull = false;
  #isClosed = false;

  constructor(limit: number, onOutput?: (chunk: string) => void, room: number = limit) {
    this.limit = limit;
    this.#left = limit;
    this.#room = Math.max(limit, room);
    this.#onOutput = onOutput;
  }

  /** True if some output is not shown. */
  get truncated(): boolean {
    return this.#isFull || this.#length + this.#openBytes().length > this.limit;
  }

  add(stream: OutputStream, bytes: Buffer): void {
    if (this.#isFull || this.#isClosed) return;
    const screen = this.#screens[stream];
    screen.write(this.#decoders[stream].write(bytes));
    const units = this.#open.reduce((sum, { row }) => sum + row.length, screen.unfinished?.length ?? 0);
    // Bounds the rows that can still change, in UTF-16 code units.
    if (units > 256 * 1024) this.#settle(0);
    if (this.#length + units > this.#room) return this.finish();
    this.#keep();
    this.#tell();
  }

  /** Ends the output: unfinished lines are kept as they are. */
  finish(): void {
    for (const stream of ["stdout", "stderr"] as const) {
      this.#screens[stream].write(this.#decoders[stream].end());
      this.#screens[stream].finish();
    }
    this.#settle(0);
    this.#keep();
    this.#tell();
  }

  /** Like `finish`, and reports later output to nobody, but collects it. */
  mute(): void {
    this.finish();
    this.#left = 0;
  }

  /** Like `finish`, and drops later output of a command that has been answered. */
  close(): void {
    this.finish();
    this.#isClosed = true;
  }

  /** The shown output so far, with unfinished lines. */
  text(): string {
    const unfinished = this.#isFull ? "" : (this.#screens.stdout.unfinished?.text ?? "");
    const parts = [this.#kept.subarray(0, this.#length), this.#openBytes(), Buffer.from(unfinished)];
    return headBytes(Buffer.concat(parts), this.limit).toString("utf8");
  }

  /** The whole held output if it is longer than the shown one. `isCut` is true if even more was written. */
  whole(): { text: string; isCut: boolean; bytes: number } | undefined {
    if (this.#length <= this.limit) return undefined;
    const text = this.#kept.subarray(0, this.#length).toString("utf8");
    return { text, isCut: this.#isFull, bytes: this.#room };
  }

  #screenOf(stream: OutputStream): TerminalScreen {
    return new TerminalScreen((row, isEnded) => {
      const line = { stream, row, isEnded };
      this.#open.push(line);
      if (this.#onOutput !== undefined && this.#left > 0) this.#news += lineText(line, false);
      this.#settle(SCREEN_ROWS);
    });
  }

  /** All but the last lines cannot change any more. */
  #settle(most: number): void {
    for (let line = this.#open[0]; line !== undefined && this.#open.length > most; line = this.#open[0]) {
      this.#open.shift();
      this.#settled += lineText(line, this.#isInLine);
      if (!line.row.isErased) this.#isInLine = !line.isEnded;
    }
  }

  #openBytes(): Buffer {
    let isInLine = this.#isInLine;
    const texts = this.#open.map((line) => {
      const text = lineText(line, isInLine);
      if (!line.row.isErased) isInLine = !line.isEnded;
      return text;
    });
    return Buffer.from(texts.join(""));
  }

  #keep(): void {
    const bytes = Buffer.from(this.#settled);
    this.#settled = "";
    const before = this.#length;
    const kept = headBytes(bytes, this.#room - before);
    this.#isFull ||= kept.length < bytes.length;
    const length = before + kept.length;
    if (length > this.#kept.length)
      this.#kept = Buffer.concat([this.#kept], Math.min(length * 2, this.#room));
    kept.copy(this.#kept, before);
    this.#length = length;
  }

  #tell(): void {
    const shown = headBytes(Buffer.from(this.#news), this.#left);
    this.#left = shown.length < Buffer.byteLength(this.#news) ? 0 : this.#left - shown.length;
    this.#news = "";
    if (shown.length > 0) this.#onOutput?.(shown.toString("utf8"));
  }
}

/** `isInLine`: the text before it has no end of line. */
function lineText({ stream, row, isEnded }: Line, isInLine: boolean): string {
  if (row.isErased) return "";
  const end = isEnded ? "\n" : "";
  return stream === "stdout" ? row.text + end : `${isInLine ? "\n" : ""}[stderr] ${row.text}${end}`;
}

/** At most so many bytes, without a part of a UTF-8 character at the end. */
function headBytes(bytes: Buffer, length: number): Buffer {
  if (bytes.length <= length) return bytes;
  for (let end = length; end >= 0 && end > length - 4; end -= 1) {
    if (((bytes[end] ?? 0) & 0xc0) !== 0x80) return bytes.subarray(0, end);
  }
  return bytes.subarray(0, length);
}

/** The response for a command that was ended at its time limit in seconds, with the exit code of `timeout`. */
export const timedOutResponse = (output: CommandOutput, timeout: number): ExecuteResponse => ({
  ...written(output),
  output: withLine(outputText(output), `Error: Command timed out after ${timeout} seconds.`),
  exitCode: 124,
  timedOut: true,
});

/** The members of a response that concern output. */
export function written(output: CommandOutput): Pick<ExecuteResponse, "output" | "truncated" | "whole"> {
  const { text, isCut, bytes } = output.whole() ?? {};
  const whole = isCut === true ? withLine(text ?? "", cutAt(bytes ?? 0)) : text;
  const { truncated } = output;
  return { output: outputText(output), truncated, ...(whole === undefined ? {} : { whole }) };
}

const cutAt = (bytes: number): string => `... Output truncated at ${bytes} bytes.`;

/** The shown output, with a last line if it was cut. */
export function outputText(output: CommandOutput): string {
  const text = output.text();
  return output.truncated ? withLine(text, cutAt(output.limit)) : text;
}

export const withLine = (text: string, line: string): string =>
  text === "" || text.endsWith("\n") ? text + line : `${text}\n${line}`;

/** Resolves when the time in seconds is up or `signal` aborts; never, if `settled` aborts before. */
export const stopReason = (
  timeout: number,
  signal: AbortSignal | undefined,
  settled: AbortSignal,
): Promise<"timeout" | "aborted"> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => resolve("timeout"), timeout * 1000);
    settled.addEventListener("abort", () => clearTimeout(timer), { once: true });
    if (signal === undefined) return;
    if (signal.aborted) resolve("aborted");
    else signal.addEventListener("abort", () => resolve("aborted"), { once: true, signal: settled });
  });
