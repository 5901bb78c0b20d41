import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { displayBlock, displayName, displayMarked } from "../../src/core/text.ts";
import { readForm, requestForm } from "../../src/server/views/request-form.ts";
import { INDENT } from "../../src/server/views/quoting.ts";
import { restOf, shownCall } from "../../src/server/views/shown-call.ts";
import type { Approval } from "../../src/runs/run.ts";
import { argumentsPreview } from "../../src/tools/call-preview.ts";
import { harness, stateBackend, foreignBackend } from "../tools/harness.ts";
import type { BoundPreview } from "../../src/tools/tool.ts";
import { anApproval } from "./support.ts";

/** Many of these texts are long. */
const RUNS = { numRuns: 40 };
const PLACE = { runId: "run_1", position: 1, total: 1, elsewhere: "open http://127.0.0.1:1/x" };

/** Short and long texts with everything that could hide a part of them. */
const part = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 80 }),
  fc.constantFrom("\r", "\r\n", "\n", "\t", " ", "\u200b", "\u202e", "\ufeff", "\u00a0", "·", "x"),
  fc
    .tuple(fc.constantFrom(" ", "\n", "\t", "a", "\r\n", "# filler\n"), fc.integer({ min: 1, max: 3000 }))
    .map(([unit, count]) => unit.repeat(count)),
);
const payload = fc.array(part, { maxLength: 8 }).map((parts) => parts.join("").toWellFormed());

/** The call as a person is asked about it. */
async function asked(tool: string, args: Record<string, unknown>, files = {}): Promise<Approval> {
  const backend =
    tool === "execute"
      ? foreignBackend({ execute: () => Promise.reject(new Error("not run")) })
      : stateBackend(files);
  const preview = await previewOf(backend, tool, args);
  return anApproval({ tool, args, preview, same: { key: "k", text: "call" } });
}

async function previewOf(
  backend: ReturnType<typeof stateBackend> | ReturnType<typeof foreignBackend>,
  tool: string,
  args: Record<string, unknown>,
): Promise<BoundPreview> {
  const spec = harness(backend).tool(tool);
  const context = { callId: "c", signal: new AbortController().signal, backend };
  const preview = await spec.preview?.(args, context);
  if (preview === undefined) throw new Error(`${tool} has no preview`);
  return preview;
}

/** What a form shows as it is, and whether it may approve. */
function inForm(approval: Approval): { shown: string; mayApprove: boolean } {
  const form = requestForm(approval, PLACE, { urls: false, lists: true });
  if (form.mode === "url") throw new Error("an address is no form");
  const { message, requestedSchema } = form;
  const shown = message
    .split("\n")
    .filter((line) => line.startsWith(INDENT))
    .map((line) => line.slice(INDENT.length))
    .join("\n");
  const decision = requestedSchema.properties["decision"];
  const offered = decision !== undefined && "enum" in decision ? (decision.enum ?? []) : [];
  expect(offered.includes("approve")).toBe(offered.includes("approve_same"));
  expect(offered).toContain("reject");
  const mayApprove = offered.includes("approve");
  for (const answer of ["approve", "approve_same"]) {
    expect(readForm(approval, { decision: answer }).ok).toBe(mayApprove);
  }
  expect(message.includes("cannot approve it")).toBe(!mayApprove);
  expect(message.includes(PLACE.elsewhere)).toBe(!mayApprove);
  expect(message.length).toBeLessThan(20_000);
  return { shown, mayApprove };
}

describe("a form shows the whole call, or does not approve it", () => {
  test("for commands", async () => {
    await fc.assert(
      fc.asyncProperty(payload, async (command) => {
        const approval = await asked("execute", { command });
        const { shown, mayApprove } = inForm(approval);
        if (mayApprove) expect(shown).toBe(displayBlock(command));
        expect(shownCall(approval, Infinity)).toMatchObject({ isWhole: true, detail: displayBlock(command) });
      }),
      RUNS,
    );
  });

  test("for new files", async () => {
    await fc.assert(
      fc.asyncProperty(payload, async (content) => {
        const approval = await asked("write_file", { file_path: "/workspace/a.md", content });
        const { shown, mayApprove } = inForm(approval);
        const isCrlf = shown.includes("\n[each line ends with CRLF]\n");
        const lines = (isCrlf ? content.replaceAll("\r\n", "\n") : content).split("\n");
        const wanted = (lines.at(-1) === "" ? lines.slice(0, -1) : lines).map(
          (line) => `+${displayMarked(line)}`,
        );
        if (mayApprove)
          expect(
            shown
              .split("\n")
              .filter((line) => line.startsWith("+"))
              .slice(1),
          ).toEqual(wanted);
        else if (!shownCall(approval, Infinity).isWhole)
          expect(restOf(approval)).toContain(displayBlock(content));
      }),
      RUNS,
    );
  });

  test("for edits, where a long line is changed in its middle as well", async () => {
    await fc.assert(
      fc.asyncProperty(payload, payload, async (around, replacement) => {
        const text = `${around}THE PLACE${around}`;
        fc.pre(text.split("THE PLACE").length === 2 && replacement !== "THE PLACE");
        const args = {
          file_path: "/a",
          old_string: "THE PLACE",
          new_string: replacement,
          replace_all: false,
        };
        const approval = await asked("edit_file", args, { "/a": text });
        const { shown, mayApprove } = inForm(approval);
        if (!mayApprove) return;
        const added = shown.split("\n").filter((line) => line.startsWith("+"));
        const marks = (line: string) => displayMarked(line.replace(/\r$/, "")).replace(/[·→]+$/, "");
        for (const line of replacement.replaceAll("\r\n", "\n").split("\n").slice(1, -1)) {
          expect(added.map((each) => each.replace(/\\r$/, "").replace(/[·→]+$/, ""))).toContain(
            `+${marks(line)}`,
          );
        }
      }),
      RUNS,
    );
  });

  test("for the arguments of any other tool", async () => {
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), payload), async (args) => {
        const approval = anApproval({
          args,
          preview: argumentsPreview("call", args),
          same: { key: "k", text: "c" },
        });
        const { shown, mayApprove } = inForm(approval);
        if (mayApprove) expect(shown).toBe(displayMarked(JSON.stringify(args, null, 2)));
        if (shownCall(approval, Infinity).isWhole) return;
        for (const text of Object.values(args)) expect(restOf(approval)).toContain(displayBlock(text));
      }),
      RUNS,
    );
  });
});

test("an edit that changes nothing is no way around it, and a real one is taken", () => {
  const args = { command: `${"#".repeat(6500)}\nrm -rf /` };
  const approval = anApproval({ args, preview: { kind: "command", summary: "Run", detail: args.command } });
  const edited = (command: string) =>
    readForm(approval, { decision: "edit", edited_args: JSON.stringify({ command }) });
  expect(edited(args.command)).toMatchObject({
    ok: false,
    message: expect.stringContaining("cannot approve it"),
  });
  expect(edited("ls")).toMatchObject({ ok: true });
});

test("a call that an earlier version stored and cut is not whole", () => {
  const kind = "arguments";
  for (const detail of [
    '{ "a": "b\n[12 more characters not shown]',
    "--- a\n+++ a\n@@ -0,0 +1 @@\n+xx [3001 characters more not shown]",
    "a\n[diff cut: 7 lines more not shown]",
    "a\n[… 7 of 20 characters not shown …]\nb",
  ]) {
    expect(shownCall({ preview: { kind, summary: "s", detail } }, Infinity).isWhole).toBe(false);
  }
});

test("the place that really changes has a line of its own, however long the name of the link is", () => {
  const destination = `/workspace/${"deep/".repeat(200)}real file .txt`;
  const preview = { kind: "diff" as const, summary: `Edit ${"x".repeat(5000)}`, destination, detail: "+a" };
  const { message } = requestForm(anApproval({ preview }), PLACE, { urls: false, lists: true });
  expect(message.split("\n")).toContain(`    Destination: ${displayName(destination)}`);
});
