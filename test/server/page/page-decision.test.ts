import { AIMessage } from "@langchain/core/messages";
import fc from "fast-check";
import { expect, test } from "vitest";
import { pageAnswer } from "../../../src/server/page/read-answer.ts";
import { editableArguments } from "../../../src/server/views/room/editable-arguments.ts";
import { ME, databaseFile, mine, note, noteTool, openServer, reach, startRun } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { anApproval } from "../support.ts";
import { openPages, visit } from "./support.ts";

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom("a\r\nb", "a\nb\n", "\n", "\ud800"),
);
const args = fc.record({ content: text, path: text }, { requiredKeys: ["path"] });
/** As a browser sends what it was given. */
const sent = (value: string): string => value.replace(/\r\n|\r|\n/g, "\r\n");

function fields(
  { text: own, json }: ReturnType<typeof editableArguments>,
  change = (value: string) => value,
) {
  const form = new URLSearchParams({ edited_args: sent(json) });
  if (own !== undefined) form.set("edited_text", sent(change(own.value)));
  // Over the wire and back.
  return new URLSearchParams(form.toString());
}

test("arguments that were only looked at are those of the call, whatever is in them", () => {
  fc.assert(
    fc.property(args, (given) => {
      const approval = anApproval({ args: given });
      const form = fields(editableArguments(approval));
      form.set("decision", "approve");
      expect(pageAnswer(approval, form)).toEqual({ ok: true, answer: { type: "approve" } });
      form.set("decision", "edit");
      const edited = { type: "edit", editedAction: { name: approval.tool, args: given } };
      expect(pageAnswer(approval, form)).toEqual({ ok: true, answer: edited });
    }),
  );
});

test("a text is edited as text, the rest as JSON", () => {
  const approval = anApproval({ args: { content: "one\ntwo", file_path: "/a" } });
  const editable = editableArguments(approval);
  expect(editable.text).toEqual({ name: "content", value: "one\ntwo", hasMarks: false });
  const form = fields(editable, (value) => `${value}\nthree`);
  form.set("decision", "edit");
  expect(pageAnswer(approval, form)).toMatchObject({
    answer: { editedAction: { args: { content: "one\ntwo\nthree", file_path: "/a" } } },
  });
  form.set("decision", "approve");
  expect(pageAnswer(approval, form)).toMatchObject({ ok: false });
});

test.each([
  ["a\r\nb", "a⟨U+000D⟩\nb"],
  ["👩\u200d🚀 ship", "👩⟨U+200D⟩🚀 ship"],
  ["turned\u202earound", "turned⟨U+202E⟩around"],
  ["bell\u0007\ud800", "bell⟨U+0007⟩⟨U+D800⟩"],
])(
  "%j, which a browser would not show or return as it is, is edited with visible marks",
  (content, shown) => {
    const approval = anApproval({ args: { content } });
    const editable = editableArguments(approval);
    expect(editable.text).toEqual({ name: "content", value: shown, hasMarks: true });
    const form = fields(editable, (value) => `${value}!`);
    form.set("decision", "edit");
    expect(pageAnswer(approval, form)).toMatchObject({
      answer: { editedAction: { args: { content: `${content}!` } } },
    });
  },
);

test("a text with such marks of its own is edited as JSON", () => {
  const content = "⟨U+200D⟩ stands for \u200d";
  const { text: own, json } = editableArguments(anApproval({ args: { content } }));
  expect(own).toBeUndefined();
  expect(json).not.toContain("\u200d");
  expect(JSON.parse(json)).toEqual({ content });
});

test("the words of an agent stand once, above the first request of their reply", async () => {
  const replies = [
    ["I note both.", "a", "b"],
    ["And the last.", "c"],
  ];
  const model = scriptedModel(({ messages }) => {
    const done = messages.filter((message) => AIMessage.isInstance(message)).length;
    const [text = "done", ...notes] = replies[done] ?? [];
    return { text, toolCalls: notes.map(note) };
  });
  const { service } = openServer(databaseFile(), {
    model,
    tools: [noteTool([])],
    interruptOn: { note: true },
  });
  const { id } = await startRun(service, "note");
  const pages = await openPages(service);
  const visitor = await visit(pages.link({ principal: ME, purpose: "decide" }));
  const said = async (path: string) =>
    (await visitor.get(path)).body
      .split("<article")
      .slice(1)
      .map((card) => /I note both\.|And the last\./.exec(card)?.[0]);
  await expect.poll(() => said(`/runs/${id}/review`)).toEqual(["I note both.", undefined]);
  expect(await said("/review")).toEqual(["I note both.", undefined]);
  const view = await reach(service, id, "input_required");
  const [first, second] = view.requests.map(({ id: request }) => request);
  const answer = async (requestId = "") =>
    mine(service).requests.answer(id, { requestId, answer: { type: "approve" } }, "test");
  await answer(first);
  await expect.poll(() => said("/review")).toEqual(["I note both."]);
  await answer(second);
  await expect.poll(() => said("/review")).toEqual(["And the last."]);
});
