import { expect, test } from "vitest";
import type { RunEvent } from "../../src/runs/events.ts";
import { ChangeFeed } from "../../src/runs/follow.ts";
import { type LiveText, LiveTexts } from "../../src/runs/live-texts.ts";
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
