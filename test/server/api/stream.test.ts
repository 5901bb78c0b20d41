import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { play } from "../../support/harness-brain.ts";
import { deferred } from "../../support/harness-deferred.ts";
import { openHome } from "../../support/harness.ts";
import { serveHttp } from "../../support/harness-http-process.ts";
import {
  calling,
  databaseFile,
  follow,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "../../runs/support.ts";
import { entry } from "../auth/support.ts";
import { waitingRun } from "../page/support.ts";
import { plainRuns } from "../support.ts";
import { type Frame, ask, frames, openApi, openStream } from "./support.ts";

const seqsOf = (all: readonly Frame[]): number[] =>
  all.flatMap(({ name, data }) => (name === "event" ? [data.seq as number] : []));
const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

async function collect(all: AsyncIterable<Frame>): Promise<Frame[]> {
  const collected: Frame[] = [];
  for await (const frame of all) collected.push(frame);
  return collected;
}

/** Decides on the requests that frames name, and returns all frames. */
async function approving(
  origin: string,
  stream: Response,
  onFrame: (frame: Frame) => void = () => undefined,
) {
  const all: Frame[] = [];
  for await (const frame of frames(stream)) {
    all.push(frame);
    onFrame(frame);
    const { name, data } = frame;
    for (const request of name === "snapshot" ? data.requests : [data.request]) {
      if (request?.status !== "pending") continue;
      const at = `POST /runs/${request.run_id}/requests/${encodeURIComponent(request.id)}`;
      await ask(origin, "mine", at, { shown: request.shown, answer: { type: "approve" } });
    }
  }
  return all;
}

test("a stream has the run, each later event once with its request, and the finished run", async () => {
  const { service, runId } = await waitingRun("a");
  const { origin } = await openApi(service);
  const [one, other] = await Promise.all([openStream(origin, runId), openStream(origin, runId)]);
  expect(one.headers.get("content-type")).toBe("text/event-stream");
  const [all, watched] = await Promise.all([approving(origin, one), collect(frames(other))]);
  const [first] = all;
  expect(first).toMatchObject({ name: "snapshot", data: { run_id: runId, status: "input_required" } });
  expect(first?.id).toBe(String(first?.data.last_event));
  const last = all.at(-1);
  expect(last).toMatchObject({ name: "end", data: { status: "completed", answer: "noted a" } });
  expect(seqsOf(all)).toEqual(range(first?.data.last_event + 1, last?.data.last_event));
  expect(all.filter(({ name }) => name === "event").map(({ id }) => Number(id))).toEqual(seqsOf(all));
  const decided = all.find(({ data }) => data.kind === "approval_decided");
  expect(decided?.data.request).toMatchObject({ status: "approved", decided_by: "api" });
  expect(watched.at(-1)?.name).toBe("end");
});

test("a reader continues behind the newest event that it knows, without a loss or a repetition", async () => {
  const service = plainRuns();
  const { id } = await startRun(service, "look");
  await reach(service, id, "completed");
  const known = (await follow(service, id)).map(({ seq }) => seq);
  const { origin } = await openApi(service);
  const after = async (seq: string) =>
    collect(frames(await openStream(origin, id, { "last-event-id": seq })));
  expect(seqsOf(await after("0"))).toEqual(known);
  const rest = await after("2");
  expect([rest[0]?.name, seqsOf(rest)]).toEqual(["event", known.filter((seq) => seq > 2)]);
  expect((await after(String(known.at(-1)))).map(({ name }) => name)).toEqual(["end"]);
  // Numbers of another run, and no numbers, begin with the run.
  for (const strange of ["999999", "x", "-1", "1e3"])
    expect((await after(strange)).map(({ name }) => name)).toEqual(["snapshot", "end"]);
});

test("a stream goes on at the next server after the first was killed between two events", async () => {
  const file = databaseFile();
  const notes: string[] = [];
  const agent = {
    model: calling(note("a"), note("b")),
    tools: [noteTool(notes)],
    interruptOn: { note: true },
  };
  const first = openServer(file, agent);
  const { id } = await startRun(first.service, "note both");
  await reach(first.service, id, "input_required");
  const before = await openApi(first.service);
  const stream = frames(await openStream(before.origin, id));
  const snapshot = (await stream.next()).value as Frame;
  await before.close();
  first.kill();
  expect((await stream.next().catch(() => ({ done: true }))).done).toBe(true);

  const second = openServer(file, { ...agent, model: calling(note("a"), note("b")) });
  const { origin } = await openApi(second.service);
  const headers = { "last-event-id": snapshot.id ?? "" };
  // The requests are in the snapshot of the first stream.
  const decide = Promise.all(
    snapshot.data.requests.map((request: { id: string; shown: string }) =>
      ask(origin, "mine", `POST /runs/${id}/requests/${encodeURIComponent(request.id)}`, {
        shown: request.shown,
        answer: { type: "approve" },
      }),
    ),
  );
  const all = await approving(origin, await openStream(origin, id, headers));
  await decide;
  const end = all.at(-1)?.data;
  expect(end.status).toBe("completed");
  expect(seqsOf(all)).toEqual(range(Number(snapshot.id) + 1, end.last_event));
  expect(notes.toSorted()).toEqual(["a", "b"]);
});

test("a stream ends with its token, with the run, and with the server", async () => {
  const { service, runId } = await waitingRun("a");
  const site = await openApi(service);
  const stream = frames(await openStream(site.origin, runId));
  await stream.next();
  site.tokens.splice(0, site.tokens.length, entry("bobs", "bob"));
  expect((await stream.next()).done).toBe(true);
  expect((await openStream(site.origin, runId)).status).toBe(401);
  site.tokens.push(entry("mine", "bob"));
  expect((await openStream(site.origin, runId)).status).toBe(404);
});

test("there are as many streams as the page may have, and one that was closed makes room", async () => {
  const { service, runId } = await waitingRun("a");
  const { origin } = await openApi(service);
  const open = await Promise.all(Array.from({ length: 64 }, () => openStream(origin, runId)));
  const more = await openStream(origin, runId);
  expect([more.status, await more.json()]).toEqual([
    503,
    { error: { code: "too_many_streams", message: expect.any(String) } },
  ]);
  for (const { body } of open) await body?.cancel();
  await expect.poll(async () => (await openStream(origin, runId)).status).toBe(200);
});

test("words are sent as they are written, each part once at its place", async () => {
  const half = deferred();
  const answer = "It is written — 潮汐 🛰️🛰️, and nothing else was changed. ".repeat(4).trim();
  const write = { id: "c1", name: "write_file", args: { file_path: "/workspace/a.md", content: "hi" } };
  const home = await openHome({
    think: play({
      "write it": [
        { text: "I write.", toolCalls: [write] },
        { text: answer, pieceLength: 7, rest: half.promise },
      ],
    }),
  });
  const config = join(home.workspace, "..", "config.json");
  writeFileSync(config, JSON.stringify({ http: { tokens: [entry("mine", "me")] } }));
  const { url } = await serveHttp(home, ["--config", config]);
  const { origin } = new URL(url);
  const { run } = (await ask(origin, "mine", "POST /runs", { task: "write it" })).answer;
  const texts = new Map<string, string>();
  const all = await approving(origin, await openStream(origin, run.id), ({ name, data }) => {
    if (name !== "text") return;
    const before = texts.get(data.id) ?? "";
    expect(data.offset).toBe(before.length);
    texts.set(data.id, before + data.text);
    // The model continues once its first half has arrived here.
    if ((texts.get(data.id) ?? "").length > 10) half.resolve();
  });
  expect(all.at(-1)?.data).toMatchObject({ status: "completed", answer });
  expect([...texts.values()].at(-1)).toBe(answer);
  expect(JSON.stringify(all)).not.toContain("\\ud8");
});
