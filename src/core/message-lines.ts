import { ownTurn } from "./concurrency.ts";

type RequestId = string | number;

export interface LineChecks {
  /** Longest line that is passed on. */
  maxBytes: number;
  tooLong: string;
  /** Finds the problem of a line without parsing it. Returns undefined if it has none. */
  problemOf(line: Uint8Array): string | undefined;
  /** Receives the reason why a request is not passed on. */
  refuse(id: RequestId, problem: string): void;
}

/**
 * Yields the lines of `input` that can be parsed without holding up everything else, each in a turn of its own, and
 * leaves out blank ones. A refused answer to a question of ours is replaced by an error with its id.
 * Only the beginning and the end of a line that is too long are kept in memory.
 */
export async function* checkedLines(
  input: AsyncIterable<Buffer>,
  checks: LineChecks,
): AsyncGenerator<Buffer> {
  const line = new Line(checks.maxBytes);
  for await (const chunk of input) {
    let start = 0;
    for (let end = chunk.indexOf("\n"); end !== -1; end = chunk.indexOf("\n", start)) {
      const isBlank = end === start && line.isEmpty;
      // Nothing is made of blank lines: a chunk can have 65,536 of them.
      if (!isBlank) line.add(chunk.subarray(start, end + 1));
      start = end + 1;
      if (isBlank) continue;
      const passed = await passedOn(line, checks);
      if (passed !== undefined) yield passed;
    }
    line.add(chunk.subarray(start));
    await ownTurn();
  }
}

/**
 * Checks the events of a stream (`text/event-stream`) as `checkedLines` checks lines. A blank line or the end of the
 * stream ends an event. A refused answer is replaced by an event with an error.
 */
export function checkedEvents(checks: LineChecks): TransformStream<Uint8Array, Uint8Array> {
  const event = new Line(checks.maxBytes);
  /** Bytes of the current line. */
  let width = 0;
  let isAfterReturn = false;
  const pass = async (controller: TransformStreamDefaultController<Uint8Array>): Promise<void> => {
    const passed = await passedOn(event, checks, (error) => Buffer.from(`data: ${error.toString()}\n`));
    if (passed !== undefined) controller.enqueue(passed);
  };
  return new TransformStream({
    transform: async (bytes, controller) => {
      const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      let start = 0;
      for (let at = 0; at < chunk.length; at += 1) {
        const isReturn = chunk[at] === CARRIAGE_RETURN;
        const isEnd = isReturn || (chunk[at] === LINE_FEED && !isAfterReturn);
        if (!isEnd && chunk[at] !== LINE_FEED) width += 1;
        isAfterReturn = isReturn;
        if (!isEnd) continue;
        const isBlank = width === 0;
        width = 0;
        if (!isBlank) continue;
        event.add(chunk.subarray(start, at + 1));
        start = at + 1;
        await pass(controller);
      }
      event.add(chunk.subarray(start));
    },
    flush: async (controller) => {
      if (!event.isEmpty) await pass(controller);
    },
  });
}

/** Checks a body that is one message as `checkedLines` checks a line. */
export function checkedBody(checks: LineChecks): TransformStream<Uint8Array, Uint8Array> {
  const body = new Line(checks.maxBytes);
  return new TransformStream({
    transform: (bytes) => body.add(Buffer.from(bytes)),
    flush: async (controller) => {
      const passed = await passedOn(body, checks);
      if (passed !== undefined) controller.enqueue(passed);
    },
  });
}

/** Checks the message that has come in. Returns it, an error in its place, or undefined if it is dropped. */
async function passedOn(line: Line, checks: LineChecks, framed = (error: Buffer): Buffer => error) {
  const { bytes, isTooLong } = line.take();
  await ownTurn();
  const problem = isTooLong ? checks.tooLong : checks.problemOf(bytes);
  await ownTurn();
  if (problem === undefined) return bytes;
  // The id, and whether it is an answer, are read without parsing the message.
  const message = bytes.subarray(Math.max(bytes.subarray(0, EDGE).indexOf("{"), 0));
  const first = message.toString("latin1", 0, EDGE);
  const last = message.toString("latin1", Math.max(message.length - EDGE, 0));
  const json = (FIRST_ID.exec(first) ?? LAST_ID.exec(last))?.[1];
  if (json === undefined) return undefined;
  // Both expressions take JSON of a number or a string only.
  const id = JSON.parse(json) as RequestId;
  if (/^\{[^{[]{0,150}"(?:result|error)"/.test(first)) {
    // The code of an invalid request in JSON-RPC.
    const answer = { jsonrpc: "2.0", id, error: { code: -32_600, message: problem } };
    return framed(Buffer.from(`${JSON.stringify(answer)}\n`));
  }
  checks.refuse(id, problem);
  return undefined;
}

const [LINE_FEED, CARRIAGE_RETURN] = [0x0a, 0x0d];

/** One message as it comes in. */
class Line {
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** True if nothing was added since the last take. */
  get isEmpty(): boolean {
    return this.#length === 0;
  }

  add(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#length += piece.length;
    if (this.#length <= this.#maxBytes) return;
    const held = Buffer.concat(this.#pieces);
    // Copies, so that the whole can be released.
    this.#pieces = [Buffer.from(held.subarray(0, EDGE)), Buffer.from(held.subarray(EDGE).subarray(-EDGE))];
  }

  /** Returns the added bytes, or their beginning and end, and starts from empty. */
  take(): { bytes: Buffer; isTooLong: boolean } {
    const taken = { bytes: Buffer.concat(this.#pieces), isTooLong: this.#length > this.#maxBytes };
    this.#pieces = [];
    this.#length = 0;
    return taken;
  }
}

/** Bytes at either end of a line, among which programs write the id and whether it is an answer. */
const EDGE = 300;

const FIRST_ID =
  /^\{\s{0,9}(?:"jsonrpc"\s{0,9}:\s{0,9}"2\.0"\s{0,9},\s{0,9})?"id"\s{0,9}:\s{0,9}(\d{1,15}|"[\w-]{1,100}")\s{0,9},/;
const LAST_ID =
  /,\s{0,9}"id"\s{0,9}:\s{0,9}(\d{1,15}|"[\w-]{1,100}")\s{0,9}(?:,\s{0,9}"jsonrpc"\s{0,9}:\s{0,9}"2\.0"\s{0,9})?\}\s{0,9}$/;
