import type { ExecuteResponse } from "../executor.ts";

/** The two output streams of a process. */
export type OutputStream = "stdout" | "stderr";

const NEWLINE = 0x0a;
const STDERR_PREFIX = Buffer.from("[stderr] ");
const LINE_END = Buffer.from("\n");

/**
 * Collects the output of a command: whole lines of both streams in the order of their arrival, with a mark on those of
 * standard error. Shows `limit` bytes, holds `room` bytes, and drops the rest.
 */
export class CommandOutput {
  /** Bytes. */
  readonly limit: number;
  readonly #room: number;
  readonly #onOutput: ((chunk: string) => void) | undefined;
  /** The unfinished line of each stream. */
  readonly #partial: Record<OutputStream, Buffer[]> = { stdout: [], stderr: [] };
  #kept: Buffer = Buffer.alloc(0);
  #length = 0;
  /** Whether some output was dropped. */
  #isFull = false;
  #isClosed = false;

  constructor(limit: number, onOutput?: (chunk: string) => void, room: number = limit) {
    this.limit = limit;
    this.#room = Math.max(limit, room);
    this.#onOutput = onOutput;
  }

  /** Whether some output is not shown. */
  get truncated(): boolean {
    return this.#isFull || this.#length > this.limit;
  }

  add(stream: OutputStream, bytes: Buffer): void {
    if (this.#isFull || this.#isClosed) return;
    const partial = this.#partial[stream];
    const end = bytes.lastIndexOf(NEWLINE) + 1;
    if (end > 0) {
      this.#append(stream, Buffer.concat([...partial, bytes.subarray(0, end)]));
      partial.length = 0;
    }
    if (end < bytes.length) partial.push(Buffer.from(bytes.subarray(end)));
    if (this.#length + sizeOf(partial) > this.#room) this.#flush(stream);
  }

  /** Ends the output: unfinished lines are kept as they are. */
  finish(): void {
    this.#flush("stdout");
    this.#flush("stderr");
  }

  /** As `finish`, and drops later output of a command that has been answered. */
  close(): void {
    this.finish();
    this.#isClosed = true;
  }

  /** The shown output so far, with unfinished lines. */
  text(): string {
    if (this.truncated) return this.#kept.subarray(0, this.#shown(this.#length)).toString("utf8");
    const unfinished = Buffer.concat(this.#partial.stdout);
    return Buffer.concat([this.#kept.subarray(0, this.#length), unfinished]).toString("utf8");
  }

  /** The whole held output if it is longer than the shown one. `isCut` says that even more was written. */
  whole(): { text: string; isCut: boolean; bytes: number } | undefined {
    if (this.#length <= this.limit) return undefined;
    const text = this.#kept.subarray(0, this.#length).toString("utf8");
    return { text, isCut: this.#isFull, bytes: this.#room };
  }

  /** How much of the first `length` bytes is shown. */
  #shown(length: number): number {
    return length <= this.limit ? length : characterBoundary(this.#kept, this.limit);
  }

  #flush(stream: OutputStream): void {
    const partial = this.#partial[stream];
    if (partial.length === 0) return;
    const bytes = Buffer.concat(partial);
    partial.length = 0;
    this.#append(stream, bytes);
  }

  #append(stream: OutputStream, bytes: Buffer): void {
    if (stream === "stdout") return this.#keep(bytes);
    const startsLine = this.#length === 0 || this.#kept[this.#length - 1] === NEWLINE;
    const marked: Buffer[] = startsLine ? [] : [LINE_END];
    for (let at = 0; at < bytes.length;) {
      const next = bytes.indexOf(NEWLINE, at) + 1 || bytes.length;
      marked.push(STDERR_PREFIX, bytes.subarray(at, next));
      at = next;
    }
    this.#keep(Buffer.concat(marked));
  }

  #keep(bytes: Buffer): void {
    if (this.#isFull) return;
    const before = this.#length;
    const room = this.#room - before;
    this.#isFull = bytes.length > room;
    const kept = this.#isFull ? bytes.subarray(0, characterBoundary(bytes, room)) : bytes;
    const length = before + kept.length;
    if (length > this.#kept.length) this.#kept = grown(this.#kept, Math.min(length * 2, this.#room));
    kept.copy(this.#kept, before);
    this.#length = length;
    const [from, to] = [this.#shown(before), this.#shown(length)];
    if (to > from) this.#onOutput?.(this.#kept.subarray(from, to).toString("utf8"));
  }
}

const sizeOf = (chunks: readonly Buffer[]): number => chunks.reduce((sum, { length }) => sum + length, 0);

function grown(bytes: Buffer, length: number): Buffer {
  const larger = Buffer.alloc(length);
  bytes.copy(larger);
  return larger;
}

/** The last position at or before `at` that is not inside a UTF-8 character. */
function characterBoundary(bytes: Buffer, at: number): number {
  for (let back = 0; back < 4 && at >= back; back += 1) {
    if (((bytes[at - back] ?? 0) & 0xc0) !== 0x80) return at - back;
  }
  return at;
}

const TIMEOUT_EXIT_CODE = 124;

/** The response for a command that was ended at its time limit in seconds. */
export function timedOutResponse(output: CommandOutput, timeout: number): ExecuteResponse {
  return {
    ...written(output),
    output: withLine(outputText(output), `Error: Command timed out after ${timeout} seconds.`),
    exitCode: TIMEOUT_EXIT_CODE,
    timedOut: true,
  };
}

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

/** Resolves when the time in seconds is over or `signal` aborts; never, if `settled` aborts before. */
export function stopReason(
  timeout: number,
  signal: AbortSignal | undefined,
  settled: AbortSignal,
): Promise<"timeout" | "aborted"> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve("timeout"), timeout * 1000);
    settled.addEventListener("abort", () => clearTimeout(timer), { once: true });
    if (signal === undefined) return;
    if (signal.aborted) resolve("aborted");
    else signal.addEventListener("abort", () => resolve("aborted"), { once: true, signal: settled });
  });
}
