/** Reads what a client writes, a line a message, and answers what is not a message. */
import {
  ProtocolErrorCode,
  type RequestId,
  isInitializeRequest,
  isJSONRPCNotification,
  isJSONRPCRequest,
} from "@modelcontextprotocol/server";
import { type Received, errorAnswer, readMessages } from "../protocol/envelope.ts";
import { REVISIONS } from "../protocol/revisions.ts";

/** Yields each message as a line that the SDK takes, and gives errors about the rest to `answer`. */
export async function* messageLines(
  lines: AsyncIterable<Uint8Array>,
  batches: Batches,
  answer: (content: unknown) => Promise<void>,
): AsyncGenerator<Buffer> {
  let takesBatches = false;
  for await (const line of lines) {
    const text = new TextDecoder().decode(line);
    // A byte order mark or a carriage return alone is a blank line.
    if (text.trim() === "") continue;
    const { messages, errors, isBatch } = readLine(text, takesBatches);
    if (isBatch && takesBatches) {
      batches.begin(
        messages.filter(isJSONRPCRequest).map(({ id }) => id),
        errors,
      );
    } else {
      // Sending fails only if the client is gone.
      for (const error of errors) answer(error).catch(() => undefined);
    }
    for (const message of messages) {
      if (isInitializeRequest(message)) takesBatches = takesBatchesIn(message.params.protocolVersion);
      if (isJSONRPCNotification(message) && message.method === "notifications/cancelled")
        batches.withdraw(message.params?.["requestId"]);
      yield Buffer.from(`${JSON.stringify(message)}\n`);
    }
  }
}

/** The revision that a client asks for is the one it gets, if the server speaks it. */
const takesBatchesIn = (requested: string): boolean =>
  REVISIONS.some(({ id, batches }) => batches && id === requested);

/** Reads a line. */
function readLine(line: string, takesBatches: boolean): Received & { isBatch: boolean } {
  try {
    const value: unknown = JSON.parse(line);
    return { ...readMessages(value, takesBatches), isBatch: Array.isArray(value) && value.length > 0 };
  } catch {
    const problem = "a line must hold one message as JSON in UTF-8";
    const error = errorAnswer(null, problem, ProtocolErrorCode.ParseError);
    return { messages: [], errors: [error], isBatch: false };
  }
}

interface Batch {
  /** Ids of the requests that are not answered yet. */
  waiting: RequestId[];
  answers: unknown[];
  /** Settles when the list was sent. */
  sent: Promise<void>;
  begin(): void;
}

/** Answers a batch of requests with one list, as JSON-RPC has it, once all of them are answered. */
export class Batches {
  readonly #send: (answers: readonly unknown[]) => Promise<void>;
  readonly #open: Batch[] = [];

  constructor(send: (answers: readonly unknown[]) => Promise<void>) {
    this.#send = send;
  }

  /** Begins a batch of requests. `answers`: those that are known already. */
  begin(requests: readonly RequestId[], answers: readonly unknown[]): void {
    let begin = (): void => {};
    const complete = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const batch: Batch = { waiting: [...requests], answers: [...answers], begin, sent: Promise.resolve() };
    batch.sent = complete.then(() => this.#send(batch.answers));
    // Sending fails only if the client is gone; whoever waits for it learns it too.
    batch.sent.catch(() => undefined);
    this.#open.push(batch);
    this.#finish(batch);
  }

  /** Keeps an answer until the rest of its batch is there, and resolves when it was sent. `undefined`: it has no batch. */
  take(id: RequestId | undefined, answer: unknown): Promise<void> | undefined {
    const batch = this.#without(id);
    batch?.answers.push(answer);
    if (batch !== undefined) this.#finish(batch);
    return batch?.sent;
  }

  /** The client took a request back, so that nobody answers it. */
  withdraw(id: unknown): void {
    const batch = this.#without(id);
    if (batch !== undefined) this.#finish(batch);
  }

  /** The batch that waits for a request, which it does not do any longer. */
  #without(id: unknown): Batch | undefined {
    const batch = this.#open.find(({ waiting }) => waiting.some((one) => one === id));
    batch?.waiting.splice(
      batch.waiting.findIndex((one) => one === id),
      1,
    );
    return batch;
  }

  #finish(batch: Batch): void {
    if (batch.waiting.length > 0) return;
    this.#open.splice(this.#open.indexOf(batch), 1);
    // A batch of notifications has no answer.
    if (batch.answers.length > 0) batch.begin();
  }
}
