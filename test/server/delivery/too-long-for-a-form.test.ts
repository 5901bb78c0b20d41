import { tool } from "@langchain/core/tools";
import { expect, test } from "vitest";
import { z } from "zod";
import type { RunService } from "../../../src/runs/service.ts";
import { calling, databaseFile, mine, openServer, reach } from "../../runs/support.ts";
import { CLIENT_KINDS, type Form, type FormAnswer } from "../../support/clients.ts";
import { connect, depsFor } from "../support.ts";

const FILLER = "filler ".repeat(800);
const LONG = `begin ${FILLER}HIDDEN-PAYLOAD ${FILLER}end`;

/** Runs that ask before they keep a text. */
function keepingRuns(text: string): { service: RunService; kept: string[] } {
  const kept: string[] = [];
  const keep = tool(({ text: given }) => `kept ${kept.push(given)}`, {
    name: "keep",
    description: "Keeps a text.",
    schema: z.object({ text: z.string() }),
  });
  const { service } = openServer(databaseFile(), {
    model: calling({ name: "keep", args: { text } }),
    tools: [keep],
    interruptOn: { keep: true },
  });
  return { service, kept };
}

const accept = (content: Record<string, string>): FormAnswer => ({ action: "accept", content });
const decisionsIn = ({ requestedSchema }: Form): unknown => requestedSchema.properties["decision"];

test.each(CLIENT_KINDS)("%s: a form too small for the call approves nothing", async (kind) => {
  const { service, kept } = keepingRuns(LONG);
  const forms: Form[] = [];
  const answer = (form: Form): FormAnswer => {
    forms.push(form);
    // A client that does not look at the schema.
    return accept({ decision: forms.length % 2 === 1 ? "approve" : "approve_same" });
  };
  const client = await connect(depsFor(service, { page: true }), { kind, person: answer });
  const { structured } = await client.call("run_deep_agent", { task: "keep it" });
  expect(structured).toMatchObject({ status: "input_required" });
  const [form] = forms;
  if (form === undefined) throw new Error("nobody was asked");
  expect(form.message).not.toContain("HIDDEN-PAYLOAD");
  expect(decisionsIn(form)).toMatchObject({ enum: ["reject"] });
  expect(form.message).toMatch(
    /cannot approve it\. To see all of it and decide, open http:\/\/127\.0\.0\.1:\d+\/\S+; the run waits\./,
  );
  // The other clients' answers are refused by the schema before they are read.
  if (kind === "v2-modern") expect(forms[1]?.message).toContain("did not show the whole call");
  expect(kept).toEqual([]);
});

test.each(CLIENT_KINDS)("%s: it can be rejected, and names the terminal", async (kind) => {
  const { service, kept } = keepingRuns(LONG);
  const forms: Form[] = [];
  const client = await connect(depsFor(service), {
    kind,
    person: (form) => (forms.push(form), accept({ decision: "reject", message: "too long" })),
  });
  const { structured } = await client.call("run_deep_agent", { task: "keep it" });
  expect(structured).toMatchObject({ status: "completed" });
  expect(forms[0]?.message).toMatch(/run deepagent-mcp runs open run_\S+ in a terminal; the run waits\./);
  expect(kept).toEqual([]);
});

test.each(CLIENT_KINDS)("%s: a model approves nothing that its report does not show whole", async (kind) => {
  for (const [text, isShown] of [
    ["short", true],
    [`${"x".repeat(5000)}HIDDEN`, false],
  ] as const) {
    const { service, kept } = keepingRuns(text);
    const config = { approvals: { allowModelAnswers: true } };
    const client = await connect(depsFor(service, { config }), { kind });
    const { structured, text: report } = await client.call("run_deep_agent", { task: "keep it" });
    const [approval] = structured["approvals"] as { id: string; decisions: string[]; detail: string }[];
    expect(approval?.decisions.includes("approve")).toBe(isShown);
    expect(report.includes("This is not the whole call")).toBe(!isShown);
    const runId = String(structured["run_id"]);
    const answer = (more: object) =>
      client.call("answer_deep_agent", { run_id: runId, approval_id: approval?.id, ...more });
    if (!isShown) {
      const refused = await answer({ decision: "edit", edited_args: { text } });
      expect(refused).toMatchObject({ isError: true });
    }
    const answered = await answer({ decision: "approve" });
    expect(answered.isError).toBe(!isShown);
    if (isShown) await reach(service, runId, "completed");
    else expect(answered.text).toContain("in a terminal with deepagent-mcp runs open");
    expect(kept).toEqual(isShown ? [text] : []);
    expect((await mine(service).read.view(runId))?.run.status).toBe(isShown ? "completed" : "input_required");
  }
});
