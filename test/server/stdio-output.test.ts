import { PassThrough } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { expect, onTestFinished, test } from "vitest";
import { boundOutput } from "../../src/server/stdio/stdio.ts";

const LONG = "x".repeat(10_000);

/** A connection whose client does not read before `read` is called; each call gives what has come since. */
async function connect() {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const transport = new StdioServerTransport(stdin, stdout);
  boundOutput(transport, stdin, stdout);
  await transport.start();
  onTestFinished(() => transport.close());
  const read = async (): Promise<JSONRPCMessage[]> => {
    let text = "";
    stdout.setEncoding("utf8").on("data", (part: string) => (text += part));
    for (let length = -1; length < text.length;) {
      length = text.length;
      for (let turn = 0; turn < 10; turn += 1) await nextTurn();
    }
    return text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as JSONRPCMessage);
  };
  return { transport, stdin, stdout, read };
}

const progress = (n: number, progressToken = "p"): JSONRPCMessage => ({
  jsonrpc: "2.0",
  method: "notifications/progress",
  params: { progressToken, progress: n, message: LONG },
});

const updated = (uri: string): JSONRPCMessage => ({
  jsonrpc: "2.0",
  method: "notifications/resources/updated",
  params: { uri },
});

test("a client that reads late is told the newest of what superseded itself, and all else in order", async () => {
  const { transport, stdout, read } = await connect();
  for (let n = 1; n <= 3000; n += 1) {
    void transport.send(progress(n));
    if (n === 1000) void transport.send(updated("test://early"));
    if (n === 2000) void transport.send({ jsonrpc: "2.0", id: 1, method: "elicitation/create", params: {} });
    void transport.send(updated("test://often"));
    void transport.send(progress(n, "q"));
  }
  void transport.send({ jsonrpc: "2.0", id: 2, result: {} });
  expect(stdout.writableLength).toBeLessThan(200_000);
  const messages = await read();
  const told = messages.map((message) => ("method" in message ? message.method : "answer"));
  expect(told.filter((method) => method === "elicitation/create")).toHaveLength(1);
  expect(messages).toContainEqual(updated("test://early"));
  expect(messages.slice(-4)).toEqual([
    progress(3000),
    updated("test://often"),
    progress(3000, "q"),
    { jsonrpc: "2.0", id: 2, result: {} },
  ]);
});

test("a client that reads what it is sent is told everything", async () => {
  const { transport, stdout } = await connect();
  let lines = 0;
  stdout.setEncoding("utf8").on("data", (part: string) => (lines += part.split("\n").length - 1));
  for (let n = 1; n <= 1000; n += 1) await transport.send(progress(n));
  await nextTurn();
  expect(lines).toBe(1000);
});

test("requests of a client that does not read its answers wait, and are all answered when it does", async () => {
  const { transport, stdin, stdout, read } = await connect();
  let answered = 0;
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK object is no event target
  transport.onmessage = (message) => {
    answered += 1;
    if ("id" in message)
      void transport.send({ jsonrpc: "2.0", id: message.id!, result: { text: "y".repeat(1e6) } });
  };
  for (let id = 1; id <= 100; id += 1) {
    stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method: "ping" })}\n`);
    await nextTurn();
  }
  expect(answered).toBeLessThan(25);
  expect(stdout.writableLength).toBeLessThan(25e6);
  expect(await read()).toHaveLength(100);
  expect(answered).toBe(100);
});
