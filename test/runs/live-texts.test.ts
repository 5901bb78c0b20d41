import { expect, test } from "vitest";
import type { RunEvent } from "../../src/runs/events.ts";
import { ChangeFeed, SharedTails, follow } from "../../src/runs/follow.ts";
import { type LiveText, LiveTexts } from "../../src/runs/live-texts.ts";
import type { JournalPage } from "../../src/runs/ports.ts";
import { deferred } from "../support/harness-deferred.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { ME, mine, calling, databaseFile, note, noteTool, openServer, reach, startRun } from "./support.ts";

const textsOf = (found: readonly LiveText[]) => found.map(({ text }) => text);

test("a reader gets each text whole so far, and nothing twice", () => {
  const texts = new LiveTexts(new ChangeFeed());
  const { say, told, end } = texts.speaker("run", 1);
  const read = texts.reader("run");
  expect(read()).toEqual([]);
  for (const text of ["", "I", "I look"]) say(text);
  expect(textsOf(read())).toEqual(["I look"]);
  expect(read()).toEqual([]);
  for (const text of ["I look.", "", "", "Again"]) say(text);
  expect(textsOf(read())).toEqual(["I look.", "Again"]);
  told("I look.");
  say("Again, and more");
  // One that begins now finds in the journal what it has.
  expect(textsOf(texts.reader("run")())).toEqual(["Again, and more"]);
  const known = read()[0]?.id ?? "";
  told("Again, and more");
  expect(texts.reader("run")()).toEqual([]);
  expect(textsOf(texts.reader("run", known)())).toEqual(["Again, and more"]);
  say("");
  say("The end");
  end();
  expect(textsOf(read())).toEqual(["The end"]);
  expect(texts.reader("run")()).toEqual([]);
});

test("texts of another stretch of work have other ids, and old ones are dropped", () => {
  const texts = new LiveTexts(new ChangeFeed());
  const read = texts.reader("run");
  const first = texts.speaker("run", 1);
  first.say("One");
  const [one] = read();
  const second = texts.speaker("run", 2);
  first.end();
  second.say("One");
  const [other] = read();
  expect(other?.text).toBe("One");
  expect(other?.id).not.toBe(one?.id);
  for (let call = 0; call < 9; call += 1) {
    second.say("");
    second.say(`Text ${call}`);
  }
  expect(textsOf(read())).toEqual(["Text 5", "Text 6", "Text 7", "Text 8"]);
});

/** Follows a run, and keeps what comes. */
function followed(service: ReturnType<typeof openServer>["service"], runId: string, principal = ME) {
  const stop = new AbortController();
  const items: (RunEvent | LiveText)[] = [];
  const ended = (async () => {
    for await (const item of service.as({ principal }).watch.live(runId, { signal: stop.signal }))
      items.push(item);
  })();
  const texts = () => items.flatMap((item) => (item.kind === "live_text" ? [item.text] : []));
  return { items, texts, ended, stop: () => stop.abort() };
}

test("followers of a run read what its agent writes before the journal has it; others read nothing", async () => {
  const rest = deferred();
  const model = scriptedModel(async ({ messages }) => {
    if (messages.some(({ type }) => type === "tool")) await rest.promise;
    return messages.some(({ type }) => type === "tool")
      ? { text: "All is noted." }
      : { text: "I note it.", toolCalls: [{ name: "note", args: { text: "a" } }] };
  });
  const { service } = openServer(databaseFile(), { model, tools: [noteTool([])] });
  const { id } = await startRun(service, "note");
  const [own, late, others] = [followed(service, id), followed(service, id), followed(service, id, "you")];
  await others.ended;
  await expect.poll(() => own.items.some(({ kind }) => kind === "tool_finished")).toBe(true);
  rest.resolve();
  await reach(service, id, "completed");
  await Promise.all([own.ended, late.ended]);
  expect(others.items).toEqual([]);
  for (const { items, texts } of [own, late]) {
    expect(texts().at(-1)).toBe("All is noted.");
    const text = items.findIndex((item) => item.kind === "live_text" && item.text === "All is noted.");
    const end = items.findIndex(({ kind }) => kind === "run_completed");
    expect(text).toBeGreaterThan(-1);
    expect(end).toBeGreaterThan(text);
  }
  // Nothing of it is stored.
  const events = (await mine(service).read.events(id)) ?? [];
  expect(events.filter(({ kind }) => kind === "model_called")).toHaveLength(2);
  const again = followed(service, id);
  await again.ended;
  expect(again.texts()).toEqual([]);
});

/** Follows a run whose journal and texts change while it is read: each look at the journal makes the next change. */
async function lookedAt(looks: readonly ((texts: Speaker) => RunEvent[])[]) {
  const feed = new ChangeFeed();
  const texts = new LiveTexts(feed);
  const speaker = texts.speaker("run", 1);
  const stored: RunEvent[] = [];
  let count = 0;
  const journal = async (_principal: string, _runId: string, after: number) => {
    const found = stored.filter(({ seq }) => seq > after);
    // What happens now was not read.
    const happened = looks[count]?.(speaker) ?? [];
    count += 1;
    for (const event of happened) stored.push({ ...event, seq: stored.length + 1 });
    feed.notify("run");
    const status = count > looks.length ? "completed" : "working";
    return { run: { status, lastSeq: found.at(-1)?.seq ?? after }, events: found } as unknown as JournalPage; // all that is read of it
  };
  const runs = { journal, list: async () => [] };
  const tails = new SharedTails({ runs, feed });
  const said: string[] = [];
  const signal = new AbortController().signal;
  for await (const item of follow<LiveText>("me", "run", { signal }, { feed, tails, texts }))
    said.push(item.kind === "live_text" ? item.text : item.kind);
  return said;
}

type Speaker = ReturnType<LiveTexts["speaker"]>;
const base = { runId: "run", seq: 0, time: 0, agent: [] };
const finished = {
  ...base,
  kind: "tool_finished",
  data: { callId: "c", tool: "ls", summary: "", isError: false },
} as unknown as RunEvent; // all that is read of it
const called = (text: string) => ({ ...base, kind: "model_called", data: { text } }) as unknown as RunEvent; // likewise
const completed = { ...base, kind: "run_completed", data: { answer: "", sources: [] } } as RunEvent;

test("a text that begins while the journal is read waits for what happened before it", async () => {
  const said = await lookedAt([
    () => [],
    ({ say }) => {
      say("");
      say("I look.");
      return [called("I look.")];
    },
    ({ say }) => {
      say("");
      say("All is");
      return [finished];
    },
    ({ say }) => {
      say("All is done.");
      return [called("All is done."), completed];
    },
  ]);
  expect(said).toEqual([
    "I look.",
    "model_called",
    "tool_finished",
    "All is done.",
    "model_called",
    "run_completed",
  ]);
});

test("a text of a call that broke off comes before the next one, and before the end", async () => {
  const broken = ({ say }: Speaker) => {
    say("");
    say("Broken");
    return [];
  };
  const next = ({ say, told }: Speaker) => {
    say("");
    say("Whole");
    told("Whole");
    return [called("Whole"), finished];
  };
  expect(await lookedAt([broken, next, () => [completed]])).toEqual([
    "Broken",
    "Whole",
    "model_called",
    "tool_finished",
    "run_completed",
  ]);
  expect(await lookedAt([(texts) => [...broken(texts), completed]])).toEqual(["Broken", "run_completed"]);
});

test("a follower that reads nothing holds up neither the run nor another follower", async () => {
  const { service } = openServer(databaseFile(), { model: calling(note("a")), tools: [noteTool([])] });
  const { id } = await startRun(service, "note");
  const signal = new AbortController();
  const idle = mine(service).watch.live(id, { signal: signal.signal })[Symbol.asyncIterator]();
  await idle.next();
  await reach(service, id, "completed");
  signal.abort();
  await idle.return?.();
});
