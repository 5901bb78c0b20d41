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

type Step = (spoken: Spoken) => readonly Said[];
const written =
  (id: string, text: string): Step =>
  (spoken) =>
    spoken.live(live(id, text));
const told =
  (text: string, seq = 1): Step =>
  (spoken) =>
    spoken.told(called(text, seq));
const next: Step = (spoken) => spoken.next();
const ends =
  (answer: string): Step =>
  (spoken) =>
    spoken.answered(completed(answer));

describe("the texts of a run", () => {
  test.each<[string, Step[], string[]]>([
    [
      "come once, whether they were live, told by the journal, or both",
      [
        written("1", "I "),
        written("1", `I look. ${LONG}`),
        told(`I look. ${LONG}`),
        next,
        told("I write.", 2),
        next,
        written("2", "Done"),
        written("2", "Done: all"),
        told("Done: all", 3),
        ends("Done: all"),
      ],
      [`I look. ${LONG}`, "I write.", "Done: all"],
    ],
    [
      "are whole at the end, if a follower missed the rest of the answer",
      [written("1", "Do"), ends("Done: all")],
      ["Done: all"],
    ],
    [
      "are told from the journal alone as before: the last one is the beginning of the answer",
      [told("I look."), next, told(LONG, 2), ends(LONG)],
      ["I look.", LONG],
    ],
    [
      "of a call that was tried again begin again, and another answer is sent whole",
      [
        written("1", "Broken"),
        next,
        written("2", "Whole"),
        written("1", "Broken"),
        told("Whole"),
        next,
        ends("Goal not met: Whole"),
      ],
      ["Broken", "Whole", "Goal not met: Whole"],
    ],
    [
      "are not sent again if events came between the last one and the end",
      [written("1", "Done"), told("Done"), next, ends("Done")],
      ["Done"],
    ],
    [
      "may be ahead of the journal",
      [
        written("1", "One"),
        written("2", "Two"),
        told("One"),
        next,
        written("2", "Two more"),
        told("Two more", 2),
        next,
        ends(""),
      ],
      ["One", "Two more"],
    ],
    [
      "may be behind the journal, where somebody begins to follow",
      [told("I look."), written("1", "I look."), next, ends("")],
      ["I look."],
    ],
  ])("%s", (_name, steps, texts) => {
    const spoken = new Spoken();
    expect(messagesOf(steps.flatMap((step) => step(spoken)))).toEqual({ texts, isOver: true });
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
