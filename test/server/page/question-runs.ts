/** A run that asks a person questions of every kind, of other MCP servers too. */
import { sqliteRuns } from "../../../src/storage/sqlite/runs/repository.ts";
import type { AgentPath } from "../../../src/agent/agent.ts";
import type { RunService } from "../../../src/runs/service.ts";
import type { Question } from "../../../src/tools/request.ts";
import { ME, connect, databaseFile, openServer } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

export const ASKED_AT = Date.UTC(2026, 2, 3, 10, 0, 0);

export interface Asking {
  service: RunService;
  runId: string;
  /** Sets the time of the service. */
  at: (now: number) => void;
}

/** No process works on the run: what is answered stays as it was stored. */
export async function askingRun(questions: readonly Question[], agent: AgentPath = []): Promise<Asking> {
  const file = databaseFile();
  const repository = sqliteRuns(connect(file));
  const work = repository.work({});
  let now = ASKED_AT;
  const runId = "run_asking";
  const fresh = { runId, newThreadId: "thr_asking", environment: "paint", now };
  await repository.create(ME, { task: "Paint the boat 🚢 の船" }, fresh);
  const wanted = { owner: "seed", environment: "paint", now, expiresAt: now + 3_600_000 };
  const claimed = await repository.claimNext(wanted, 10);
  if (claimed === undefined) throw new Error("nothing waits");
  for (const [index, question] of questions.entries())
    await work.ask(claimed.lease, agent, `q${index}`, [question], now + index * 60_000);
  const { service } = openServer(
    file,
    { model: scriptedModel(() => ({ text: "" })) },
    { concurrentRuns: 0, clock: () => now },
  );
  return { service, runId, at: (time) => void (now = time) };
}

const LONG = "検潮所の".repeat(40);

/** One of each kind, with long names, other scripts and characters that cannot be seen. */
export const QUESTIONS: readonly Question[] = [
  {
    kind: "ask",
    text: "Which colour should the hull have?",
    afterMs: 4.5 * 3_600_000,
    fields: [
      {
        name: "colour",
        title: "Colour",
        type: "choice",
        options: ["Red", "Signal blue", `${LONG}-without-any-blank-${"x".repeat(90)}`],
        other: true,
        required: true,
      },
      {
        name: "days",
        title: "Days on which nobody paints",
        type: "choice",
        options: ["Saturday", "Sunday", "Public holidays"],
        many: true,
      },
      {
        name: "coats",
        title: "Coats of paint",
        description: "Two are usual.",
        type: "number",
        integer: true,
        min: 1,
        max: 9,
        required: true,
      },
      { name: "name", title: "Paint the name too?", type: "yes_no" },
      { name: "notes", title: "Anything else", type: "text", maxLength: 500 },
    ],
  },
  {
    kind: "ask",
    text: `**No** markup <b>acts</b> here, and [no link](https://example.org).\n\nturned\u202earound, zero\u200bwidth, ${LONG}\n\n1. One line\n2. Another line`,
    fields: [{ name: "answer", type: "text", required: true }],
  },
  {
    kind: "interrupt",
    value: {
      question: "Which of these readings is wrong?",
      station: "cuxhaven",
      readings: [
        { id: 1181, m: 3.41 },
        { id: 1182, m: 0.02 },
      ],
    },
  },
  {
    kind: "interrupt",
    value: "Where should it dry?",
    schema: {
      type: "object",
      properties: {
        place: { type: "string", enum: ["dock", "shed"], enumNames: ["On the dock", "In the shed 🛖"] },
        until: { type: "string", format: "date" },
      },
      required: ["place"],
    },
  },
  {
    kind: "elicitation",
    server: "pager",
    message: "Where should the test message go?\nIt will ring <b>once</b>.",
    mode: "form",
    fields: [
      { name: "to", title: "Recipient", type: "text", format: "email", required: true },
      { name: "loud", title: "Ring even if the phone is silent", type: "yes_no", required: true },
    ],
  },
  {
    kind: "elicitation",
    server: "github\u200b",
    message: "Sign in so that the issue is created in your name.",
    mode: "url",
    url: "https://xn--gthub-cta.com/login/oauth/authorize?client_id=Iv1.8a61f9b3a7aba766&redirect_uri=https%3A%2F%2Fmcp.other.example%2Fcallback&scope=repo&state=6f1c2e90-41d7-4a0b-9d6e-2f5f1b7c33a1",
  },
  { kind: "elicitation", server: "files", message: "Open this.", mode: "url", url: "javascript:alert(1)" },
];
