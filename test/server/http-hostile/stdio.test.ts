import { isApproval } from "../../../src/runs/run.ts";
import { EventEmitter } from "node:events";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { serveStdioServer } from "../../../src/server/stdio/stdio.ts";
import { calling, cleanUpWith, databaseFile, note, noteTool, openServer } from "../../runs/support.ts";
import { IS_LONG } from "../../support/effort.ts";
import { depsFor } from "../support.ts";
import { answerTo, EXPECTED, HOSTILE_KINDS, hostileMessages, usedMemory, type Hostile } from "./messages.ts";

const COUNT = IS_LONG ? 4000 : 1000;
const BATCH = 200;
/** MiB that may be in use more after thousands of messages than after the first ones. */
const GROWTH = 32;

/** Kinds without the id that the test gives. Each is answered once all the same. */
const UNNUMBERED = new Set(["broken JSON", "not a message", "wrong types in the message"]);

test(`${COUNT} hostile messages over stdio are refused`, { timeout: 600_000 }, async () => {
  const notes: string[] = [];
  const { service } = openServer(databaseFile(), {
    model: calling(note("a")),
    tools: [noteTool(notes)],
    interruptOn: { note: true },
  });
  const started = await service.as({ principal: "alice" }).control.start({ task: "note" });
  if (!started.ok) throw new Error(started.message);
  const { run } = started;
  const signal = new AbortController().signal;
  for await (const _event of service.as({ principal: "alice" }).watch.events(run.id, { signal })) {
    if ((await service.as({ principal: "alice" }).read.view(run.id))?.run.status === "input_required") break;
  }
  const before = await service.as({ principal: "alice" }).read.view(run.id);
  const foreign = {
    runId: run.id,
    threadId: run.threadId,
    approvalId: before?.requests.filter(isApproval)[0]?.id ?? "",
  };

  const client = open("mallory");
  const messages = hostileMessages(foreign, COUNT, 7);
  expect(new Set(messages.map(({ kind }) => kind))).toEqual(new Set(HOSTILE_KINDS));
  const wrong: string[] = [];
  let unnumbered = 0;
  const send = async ({ kind, text }: Hostile, id: number): Promise<void> => {
    const line = text.replace(/^(\{"jsonrpc":"2\.0","id":)\d+,/, `$1${id},`);
    if (UNNUMBERED.has(kind)) {
      unnumbered += 1;
      return client.write(line);
    }
    // Every tenth comes twice with one id, and is answered twice.
    const times = id % 10 === 0 ? 2 : 1;
    for (const reply of await client.ask(id, line, times)) {
      const answer = answerTo(reply);
      const right = (EXPECTED[kind] as readonly unknown[] | undefined)?.includes(answer) ?? false;
      if (!right) wrong.push(`${kind}: ${answer} for ${text.slice(0, 200)}`);
    }
  };
  let id = 1000;
  const sendAll = async (all: readonly Hostile[]): Promise<void> => {
    for (let from = 0; from < all.length; from += BATCH) {
      await Promise.all(all.slice(from, from + BATCH).map((message) => send(message, (id += 1))));
    }
  };
  // The first message decides on the era.
  const [listed] = await client.ask(1, LIST, 1);
  expect(listed).toMatchObject({ result: { resources: expect.any(Array) } });
  await sendAll(messages.slice(0, COUNT / 5));
  const first = usedMemory();
  await sendAll(messages.slice(COUNT / 5));
  expect(wrong).toEqual([]);
  const others = client.unexpected.map((reply) => answerTo(reply));
  expect(others).toHaveLength(unnumbered);
  expect(new Set(others)).toEqual(new Set([-32_700, -32_600]));
  expect(usedMemory() - first).toBeLessThan(GROWTH);

  // Who works on it comes and goes.
  const { leasedUntil: _lease, ...unchanged } = before?.run ?? {};
  expect(await service.as({ principal: "alice" }).read.view(run.id)).toMatchObject({
    ...before,
    run: unchanged,
  });
  expect(await service.as({ principal: "mallory" }).read.list({ limit: 10 })).toEqual([]);
  expect(notes).toEqual([]);
  expect(await client.ask(2, LIST.replace('"id":1,', '"id":2,'), 1)).toHaveLength(1);

  /** A stdio server whose user is `principal`, spoken to in lines. */
  function open(principal: string) {
    const [stdin, stdout] = [new PassThrough(), new PassThrough()];
    const server = serveStdioServer(
      depsFor(service, {
        principalOf: () => principal,
        config: { approvals: { allowModelAnswers: true } },
      }),
      {
        stdin,
        stdout,
        stderr: new PassThrough().resume(),
        signals: new EventEmitter(),
        close: async () => {},
      },
    );
    cleanUpWith(() => server.close());
    const waiting = new Map<unknown, (reply: unknown) => void>();
    const unexpected: unknown[] = [];
    createInterface({ input: stdout }).on("line", (line) => {
      const reply = JSON.parse(line) as { id?: unknown };
      const answered = waiting.get(reply.id);
      if (answered === undefined) unexpected.push(reply);
      else answered(reply);
    });
    const write = (line: string): void => void stdin.write(`${line}\n`);
    return {
      unexpected,
      write,
      ask: async (key: number, line: string, times: number): Promise<unknown[]> => {
        const replies: unknown[] = [];
        await new Promise<void>((resolve) => {
          waiting.set(key, (reply) => {
            if (replies.push(reply) === times) resolve();
          });
          for (let sent = 0; sent < times; sent += 1) write(line);
        });
        waiting.delete(key);
        return replies;
      },
    };
  }
});

const LIST = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "resources/list",
  params: {
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "hostile", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  },
});
