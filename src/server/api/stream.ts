/** Streams a run: first the run, then each event of its journal once, and the words of its agent as they are written. */
import { once } from "node:events";
import { whenStalled } from "../../core/concurrency.ts";
import { headOf } from "../../core/text.ts";
import { memberOf } from "../../core/unknown.ts";
import { type RunView, isFinal } from "../../runs/run.ts";
import { SECURITY_HEADERS } from "../page/responses.ts";
import { toDocument } from "./documents.ts";
import { type Call, readSchema } from "./schema.ts";

const KEEP_ALIVE_MS = 10_000;
const HEADERS = { ...SECURITY_HEADERS, "content-type": "text/event-stream", "x-accel-buffering": "no" };

/** Sends server-sent events until the run has ended, the reader leaves or `stop` aborts. */
export async function followRun({ runs, run, reply, context }: Call, view: RunView, stop: AbortSignal) {
  const { request, response } = reply;
  const send = async (name: string, document: string, value: object, seq?: number): Promise<void> => {
    if (stop.aborted) return;
    const data = JSON.stringify(toDocument(readSchema(document), value, context));
    response.write(`${seq === undefined ? "" : `id: ${seq}\n`}event: ${name}\ndata: ${data}\n\n`);
    // Over HTTP `write` always reports room.
    if (response.writableNeedDrain) await once(response, "drain", { signal: stop }).catch(() => undefined);
  };
  response.writeHead(200, HEADERS).flushHeaders();
  const alive = setInterval(() => {
    if (!response.writableNeedDrain) response.write(": alive\n\n");
  }, KEEP_ALIVE_MS);
  whenStalled(response, () => response.destroy());
  try {
    const { lastSeq } = view.run;
    const known = Number(/^\d{1,15}$/.exec(String(request.headers["last-event-id"]))?.[0] ?? Infinity);
    if (known > lastSeq) await send("snapshot", "Run", view, lastSeq);
    const texts = new Map<string, string>();
    for await (const event of runs.watch.live(run, { after: Math.min(known, lastSeq), signal: stop })) {
      if (event.kind !== "live_text") {
        const id = memberOf(event.data, "approvalId") ?? memberOf(event.data, "questionId");
        const requests = id === undefined ? [] : ((await runs.read.view(run))?.requests ?? []);
        const request = requests.find((one) => one.id === id);
        await send("event", "Event", { ...event, request }, event.seq);
        continue;
      }
      const before = texts.get(event.id) ?? "";
      // A character whose second half has not come yet waits for it.
      const text = headOf(`${event.text} `, event.text.length);
      const offset = text.startsWith(before) ? before.length : 0;
      texts.set(event.id, text);
      if (text !== before) await send("text", "TextPart", { id: event.id, offset, text: text.slice(offset) });
    }
    const last = await runs.read.view(run);
    // Otherwise the server closes, or the run was deleted.
    if (last !== undefined && isFinal(last.run.status)) await send("end", "Run", last, last.run.lastSeq);
  } finally {
    clearInterval(alive);
    response.end();
  }
}
