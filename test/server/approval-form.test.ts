import { canonicalJson } from "../../src/core/json.ts";
import { anything, assert, dictionary, jsonValue, property, string } from "fast-check";
import { expect, test } from "vitest";
import { type FormPlace, readForm, requestForm } from "../../src/server/views/request-form.ts";
import { type Approval, alreadyAnswered } from "../../src/runs/run.ts";
import { MAX_EDITABLE } from "../../src/tools/call-request.ts";
import { anApproval } from "./support.ts";

const PLACE = { runId: "run_1", position: 1, total: 2 };
const ESC = "\u001b";

function approvalForm(approval: Approval, place: FormPlace) {
  const form = requestForm(approval, place, { urls: false, lists: true });
  if (form.mode === "url") throw new Error("an address is no form");
  return form;
}

test("a form says who wants to do what, and has no default decision", () => {
  const approval = anApproval({ agent: [{ callId: "c", name: "coder" }] });
  const { message, requestedSchema } = approvalForm(approval, PLACE);
  const said = '"coder" wants to run execute (runs a command):\nexecute npm audit\n\n    npm audit\n\n';
  expect(message).toBe(`${said}run run_1 · approval 1 of 2`);
  expect(requestedSchema).toEqual({
    type: "object",
    required: ["decision"],
    properties: {
      decision: {
        type: "string",
        title: "Decision",
        enum: ["approve", "edit", "reject"],
        description: expect.any(String),
      },
      edited_args: expect.objectContaining({ type: "string", default: '{"command":"npm audit"}' }),
      message: expect.objectContaining({ type: "string" }),
    },
  });
});

test("approving the same for the run is offered where approving is, and says what that covers", () => {
  const same = { key: "k", text: "this exact command" };
  const { message, requestedSchema } = approvalForm(anApproval({ same }), PLACE);
  expect(requestedSchema.properties["decision"]).toMatchObject({
    enum: ["approve", "approve_same", "edit", "reject"],
  });
  expect(message).toContain("approve_same: also approves this exact command for the rest of the run.");
  expect(readForm(anApproval({ same }), { decision: "approve_same" })).toEqual({
    ok: true,
    answer: { type: "approve_same" },
  });
  const never = anApproval({ same, allowedDecisions: ["reject"] });
  expect(readForm(never, { decision: "approve_same" })).toMatchObject({ ok: false });
  expect(readForm(anApproval(), { decision: "approve_same" })).toMatchObject({ ok: false });
});

const OFFERS = [
  { rules: ["Edit(/docs/a.md)"], sentence: "Change the file docs/a.md.", examples: ["change docs/a.md"] },
  { rules: ["Edit(/docs/**)", "Edit(/src/**)"], sentence: "Change [any](http://evil) file.", examples: [] },
];
const ruled = { call: { kind: "edit" as const, paths: ["docs/a.md"] }, folder: "/project", offers: OFFERS };
const [NARROW, WIDE] = ["Edit(/docs/a.md)", "Edit(/docs/**), Edit(/src/**)"];

test("a form offers rules for later calls in plain words, and takes one of them alone", () => {
  const asked = anApproval({ ruled });
  const { message, requestedSchema } = approvalForm(asked, PLACE);
  expect(requestedSchema.properties["decision"]).toMatchObject({
    enum: ["approve", "approve_always", "edit", "reject"],
  });
  expect(requestedSchema.properties["rule"]).toMatchObject({
    type: "string",
    oneOf: [
      { const: NARROW, title: `${NARROW}: Change the file docs/a.md.` },
      { const: WIDE, title: `${WIDE}: Change [any](http://evil) file.` },
    ],
  });
  expect(requestedSchema.required).toEqual(["decision"]);
  // Rules of files are full of signs of Markdown, so they stand in a code block.
  expect(message).toContain(
    [
      "approve_always: also save a rule, so that later calls like this run without asking. The rules:",
      "",
      `    ${NARROW}`,
      "      Change the file docs/a.md.",
      `    ${WIDE}`,
      "      Change [any](http://evil) file.",
    ].join("\n"),
  );
  const answer = (rules: string[]) => ({ ok: true, answer: { type: "approve_always", rules } });
  const read = (rule?: string) =>
    readForm(asked, { decision: "approve_always", ...(rule !== undefined && { rule }) });
  expect(read()).toEqual(answer([NARROW]));
  expect(read("")).toEqual(answer([NARROW]));
  expect(read(WIDE)).toEqual(answer(["Edit(/docs/**)", "Edit(/src/**)"]));
  for (const other of ["Bash(*)", "Edit(/docs/**)", `${NARROW}, Bash(*)`, "toString"])
    expect(read(other)).toMatchObject({ ok: false, message: expect.stringContaining("not offered") });
  // A rule without its decision changes nothing.
  expect(readForm(asked, { decision: "approve", rule: WIDE })).toEqual({
    ok: true,
    answer: { type: "approve" },
  });
});

test("no rule is offered for a call shown in part, nor one that cannot be shown as it is", () => {
  const detail = "x".repeat(10_000);
  const long = anApproval({ ruled, preview: { kind: "command", summary: "run", detail } });
  const { message, requestedSchema } = approvalForm(long, PLACE);
  expect(message).not.toContain("approve_always");
  expect(requestedSchema.properties["decision"]).toMatchObject({ enum: ["edit", "reject"] });
  expect(readForm(long, { decision: "approve_always", rule: NARROW })).toMatchObject({ ok: false });
  for (const rule of ["Edit(/a\u202eb)", "Edit(/a  b)", "Edit(/a\nb)", `Edit(/${"長".repeat(3000)})`]) {
    const hidden = anApproval({
      ruled: { ...ruled, offers: [{ rules: [rule], sentence: "", examples: [] }] },
    });
    expect(approvalForm(hidden, PLACE).message).not.toContain("approve_always");
    expect(readForm(hidden, { decision: "approve_always", rule })).toMatchObject({ ok: false });
  }
  const huge = Array.from({ length: 3 }, (_, at) => ({
    rules: [`Edit(/${"長".repeat(600)}${at})`],
    sentence: "w".repeat(1000),
    examples: [],
  }));
  expect(approvalForm(anApproval({ ruled: { ...ruled, offers: huge } }), PLACE).message.length).toBeLessThan(
    8000,
  );
});

test("a form says why rules did not allow the call", () => {
  const heldBack = ["a page of evil.example", "[results](http://evil)"];
  const { message } = approvalForm(anApproval({ ruled: { ...ruled, offers: [], heldBack } }), PLACE);
  const sources = String.raw`a page of evil.example, \[results\]\(http\://evil)`;
  expect(message).toContain(
    `A rule would allow this, but this conversation has read: ${sources}; so you are asked.`,
  );
  expect(message).not.toContain("approve_always");
});

test("a form says until when somebody has to decide, and an answer that is late is told so", () => {
  const expiresAt = Date.UTC(2030, 0, 31, 12, 0);
  const { message } = approvalForm(anApproval({ expiresAt }), PLACE);
  expect(message).toContain("Denied unless somebody decides by 2030-01-31 12:00 UTC.");
  const late = anApproval({ expiresAt, status: "rejected", decidedBy: "deadline" });
  expect(alreadyAnswered(late)).toBe("Too late: nobody decided by 2030-01-31 12:00 UTC, so this was denied.");
  expect(alreadyAnswered(anApproval({ status: "approved", decidedBy: "page" }))).toBe(
    "This has already been decided: approved (page).",
  );
});

test("the real diff is in the message, and every line of it is a code block", () => {
  const detail = "--- a.md\n+++ a.md\n@@ -1 +1 @@\n-old\n+new\n\n[click](http://evil)\n```\n# not a heading";
  const preview = { kind: "diff" as const, summary: "edit_file /a.md [x](http://evil)", detail };
  const { message } = approvalForm(anApproval({ preview }), PLACE);
  for (const line of detail.split("\n")) expect(message.split("\n")).toContain(`    ${line}`);
  expect(message).toContain(String.raw`edit_file /a.md \[x\]\(http\://evil)`);
});

test("characters of a command that cannot be seen are shown as escapes", () => {
  const detail = `rm ${ESC}[2Kls\u202e\r/etc\u200b\u00a0\u{e0041}`;
  const { message } = approvalForm(
    anApproval({ preview: { kind: "command", summary: detail, detail } }),
    PLACE,
  );
  expect(message.split("").filter((unit) => unit < " " && unit !== "\n")).toEqual([]);
  expect(message).not.toMatch(/[\u202e\u200b\u00a0\u{e0041}]/u);
  expect(message).toContain(String.raw`    rm \u001b[2Kls\u202e\r/etc\u200b\u00a0\udb40\udc41`);
});

test("a long preview is cut in the middle and says how much is missing", () => {
  const detail = `${"a".repeat(5000)}${"b".repeat(5000)}`;
  const { message } = approvalForm(
    anApproval({ preview: { kind: "arguments", summary: "x", detail } }),
    PLACE,
  );
  expect(message).toContain("[… 4000 of 10000 characters not shown …]");
  expect(message.length).toBeLessThan(7000);
});

test("editing is offered only when it is allowed and the arguments fit", () => {
  const fixed = approvalForm(anApproval({ allowedDecisions: ["approve", "reject"] }), PLACE);
  expect(Object.keys(fixed.requestedSchema.properties)).toEqual(["decision", "message"]);
  const huge = anApproval({ args: { command: "x".repeat(MAX_EDITABLE) } });
  const form = approvalForm(huge, PLACE);
  expect(form.requestedSchema.properties["decision"]).toMatchObject({ enum: ["approve", "reject"] });
  expect(form.message).toContain("too long to be edited");
  expect(readForm(huge, { decision: "edit", edited_args: "{}" })).toMatchObject({ ok: false });
});

test("hidden characters of the arguments are visible in the field for editing", () => {
  const { requestedSchema } = approvalForm(anApproval({ args: { command: "a\u202eb\u200bc" } }), PLACE);
  expect(requestedSchema.properties["edited_args"]).toMatchObject({
    default: '{"command":"a\\u202eb\\u200bc"}',
  });
});

test.each([
  [{ decision: "approve" }, { type: "approve" }],
  [{ decision: "approve", edited_args: '{ "command": "npm audit" }' }, { type: "approve" }],
  [{ decision: "reject" }, { type: "reject" }],
  [
    { decision: "reject", message: "too slow" },
    { type: "reject", message: "too slow" },
  ],
  [
    { decision: "edit", edited_args: '{"command":"ls"}' },
    { type: "edit", editedAction: { name: "execute", args: { command: "ls" } } },
  ],
])("%j decides", (content, decision) => {
  expect(readForm(anApproval(), content)).toEqual({ ok: true, answer: decision });
});

test.each([
  [undefined, "choose a decision"],
  [{ decision: "reject", message: "x".repeat(2001) }, "characters, a message 2000"],
  [{ decision: "edit", edited_args: "x".repeat(8001) }, "arguments have at most 8000 characters"],
  [{}, "choose a decision"],
  [{ decision: "yes" }, "choose a decision"],
  [{ decision: "edit" }, "write the changed arguments"],
  [{ decision: "edit", edited_args: "{command" }, "not valid JSON"],
  [{ decision: "edit", edited_args: "[1]" }, "must be a JSON object"],
  [{ decision: "edit", edited_args: "null" }, "must be a JSON object"],
  [{ decision: "approve", edited_args: '{"command":"ls"}' }, "Choose edit"],
  [{ decision: "approve", edited_args: "{command" }, "Choose edit"],
])("%j decides nothing and says why", (content, problem) => {
  expect(readForm(anApproval(), content)).toEqual({ ok: false, message: expect.stringContaining(problem) });
});

test("no content whatsoever approves without the word approve", () => {
  assert(
    property(anything(), (content) => {
      const answer = readForm(anApproval(), content);
      if (!answer.ok || answer.answer.type !== "approve") return;
      expect(content).toMatchObject({ decision: "approve" });
    }),
  );
});

test("the arguments offered for editing mean the same arguments, whatever they are", () => {
  assert(
    property(dictionary(string({ unit: "binary" }), jsonValue()), (args) => {
      const approval = anApproval({ args });
      const field = approvalForm(approval, PLACE).requestedSchema.properties["edited_args"];
      const offered = field !== undefined && "default" in field ? String(field.default) : "";
      expect(canonicalJson(JSON.parse(offered))).toBe(canonicalJson(args));
      expect(readForm(approval, { decision: "approve", edited_args: offered })).toMatchObject({ ok: true });
    }),
  );
});
