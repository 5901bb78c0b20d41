import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { oneLine } from "../../src/core/text.ts";
import { type Said, Spoken } from "../../src/server/views/spoken.ts";

const event = { runId: "r", time: 0, agent: [] };
const called = (text: string, seq = 1) => ({
  ...event,
  seq,
  kind: "model_called" as const,
  data: {
    model: "m",
    usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 },
    text: oneLine(text, 300),
  },
});
const completed = (answer: string, seq = 9) => ({
  ...event,
  seq,
  kind: "run_completed" as const,
  data: { answer, sources: [] },
});
const live = (id: string, text: string) => ({ kind: "live_text" as const, id, text });

/** The texts of the messages, and the ids of those that have ended. */
function messagesOf(parts: readonly Said[]) {
  const texts = new Map<string, string>();
  const ended = new Set<string>();
  for (const { id, text, isLast } of parts) {
    texts.set(id, (texts.get(id) ?? "") + text);
    if (isLast) ended.add(id);
    else ended.delete(id);
  }
  return { texts: [...texts.values()].filter((text) => text !== ""), isOver: ended.size === texts.size };
}

const LONG = "A text of more than three hundred characters. ".repeat(20);

describe("the texts of a run", () => {
  test("come once, whether they were live, told by the journal, or both", () => {
    const spoken = new Spoken();
    const parts = [
      ...spoken.live(live("1", "I ")),
      ...spoken.live(live("1", `I look. ${LONG}`)),
      ...spoken.told(called(`I look. ${LONG}`)),
      ...spoken.next(),
      ...spoken.told(called("I write.", 2)),
      ...spoken.next(),
      ...spoken.live(live("2", "Done")),
      ...spoken.live(live("2", "Done: all")),
      ...spoken.told(called("Done: all", 3)),
      ...spoken.answered(completed("Done: all")),
    ];
    expect(messagesOf(parts)).toEqual({ texts: [`I look. ${LONG}`, "I write.", "Done: all"], isOver: true });
  });

  test("are whole at the end, if a follower missed the rest of the answer", () => {
    const spoken = new Spoken();
    const parts = [...spoken.live(live("1", "Do")), ...spoken.answered(completed("Done: all"))];
    expect(messagesOf(parts)).toEqual({ texts: ["Done: all"], isOver: true });
  });

  test("are told from the journal alone as before: the last one is the beginning of the answer", () => {
    const spoken = new Spoken();
    const parts = [
      ...spoken.told(called("I look.")),
      ...spoken.next(),
      ...spoken.told(called(LONG, 2)),
      ...spoken.answered(completed(LONG)),
    ];
    expect(messagesOf(parts)).toEqual({ texts: ["I look.", LONG], isOver: true });
  });

  test("of a call that was tried again begin again, and another answer is sent whole", () => {
    const spoken = new Spoken();
    const parts = [
      ...spoken.live(live("1", "Broken")),
      ...spoken.next(),
      ...spoken.live(live("2", "Whole")),
      ...spoken.live(live("1", "Broken")),
      ...spoken.told(called("Whole")),
      ...spoken.next(),
      ...spoken.answered(completed("Goal not met: Whole")),
    ];
    expect(messagesOf(parts)).toEqual({ texts: ["Broken", "Whole", "Goal not met: Whole"], isOver: true });
  });

  test("are not sent again if events came between the last one and the end", () => {
    const spoken = new Spoken();
    const parts = [
      ...spoken.live(live("1", "Done")),
      ...spoken.told(called("Done")),
      ...spoken.next(),
      ...spoken.answered(completed("Done")),
    ];
    expect(messagesOf(parts)).toEqual({ texts: ["Done"], isOver: true });
  });

  test("may be ahead of the journal", () => {
    const spoken = new Spoken();
    const parts = [
      ...spoken.live(live("1", "One")),
      ...spoken.live(live("2", "Two")),
      ...spoken.told(called("One")),
      ...spoken.next(),
      ...spoken.live(live("2", "Two more")),
      ...spoken.told(called("Two more", 2)),
      ...spoken.next(),
      ...spoken.answered(completed("")),
    ];
    expect(messagesOf(parts)).toEqual({ texts: ["One", "Two more"], isOver: true });
  });

  test("may be behind the journal, where somebody begins to follow", () => {
    const spoken = new Spoken();
    const parts = [
      ...spoken.told(called("I look.")),
      ...spoken.live(live("1", "I look.")),
      ...spoken.next(),
      ...spoken.answered(completed("")),
    ];
    expect(messagesOf(parts)).toEqual({ texts: ["I look."], isOver: true });
  });

  test("continue in a later stream, which sends what is missing", () => {
    const first = new Spoken();
    const parts = [...first.live(live("1", "Half ")), ...first.pause()];
    const second = new Spoken(first.sent);
    expect(second.newest).toBe("1");
    parts.push(
      ...second.live(live("1", "Half and half")),
      ...second.told(called("Half and half")),
      ...second.answered(completed("Half and half")),
    );
    expect(messagesOf(parts)).toEqual({ texts: ["Half and half"], isOver: true });
  });

  test("come whole and once, however few steps of them a follower sees", () => {
    const turn = fc.record({
      text: fc.string({ maxLength: 400 }),
      steps: fc.array(fc.nat(400), { maxLength: 5 }),
    });
    fc.assert(
      fc.property(fc.array(turn, { minLength: 1, maxLength: 6 }), (turns) => {
        const spoken = new Spoken();
        const parts: Said[] = [];
        const last = turns.length - 1;
        for (const [index, { text: given, steps }] of turns.entries()) {
          const text = `${index}${given}`;
          // The newest state of a text that is still written always arrives.
          const sizes = [...steps.toSorted((one, other) => one - other), text.length];
          for (const size of sizes) {
            const part = text.slice(0, size);
            if (part !== "") parts.push(...spoken.live(live(String(index), part)));
          }
          parts.push(...spoken.told(called(text, index)));
          parts.push(...(index === last ? spoken.answered(completed(text)) : spoken.next()));
        }
        const texts = turns.map(({ text }, index) => `${index}${text}`);
        expect(messagesOf(parts)).toEqual({ texts, isOver: true });
      }),
    );
  });
});

test("no part ends inside a character", () => {
  const spoken = new Spoken();
  const whole = "a😀b";
  const parts = [1, 2, 3, 4].flatMap((size) => spoken.live(live("1", whole.slice(0, size))));
  expect(parts.map(({ text }) => text)).toEqual(["a", "😀", "b"]);
});
