/** Questions that are not about approval, asked of real clients of both eras. */
import { isQuestion } from "../../../src/runs/run.ts";
import { tool } from "@langchain/core/tools";
import { interrupt } from "@langchain/langgraph";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { openMcpTools } from "../../../src/agent/mcp-tools/open-mcp-tools.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import type { Question } from "../../../src/tools/request.ts";
import { newServer, oldServer } from "../../agent/mcp-tools/asking-server.ts";
import { at, run } from "../../agent/mcp-tools/connect-to.ts";
import { calling, databaseFile, mine, note, noteTool, openServer, reach } from "../../runs/support.ts";
import {
  CLIENT_KINDS,
  type ClientOptions,
  type Form,
  type FormAnswer,
  type PageRequest,
} from "../../support/clients.ts";
import { findings, isJudge, unsettled } from "../../support/judge.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { type DepsOptions, connect, depsFor, questionRuns } from "../support.ts";

const FIELDS = [
  { name: "why", type: "text" },
  { name: "size", options: ["S", "M"] },
  { name: "colour", options: ["red", "blue"], other: true },
  { name: "extras", options: ["box", "card"], many: true, optional: true },
  { name: "count", type: "number" },
  { name: "gift", type: "yes_no" },
];
const SIZE = { kind: "elicitation", server: "shop", mode: "form", message: "Your size?" } as const;

const ANSWERS = {
  why: "it is blue",
  size: "M",
  colour_other: "grey",
  extras: ["card"],
  count: 2,
  gift: true,
};

const accept = (content: FormAnswer["content"]): FormAnswer => ({ action: "accept", content: content ?? {} });

/** Answers forms in turn, and keeps them. */
function person(...answers: FormAnswer[]) {
  const forms: Form[] = [];
  return {
    forms,
    answer: (form: Form): FormAnswer => {
      forms.push(form);
      return answers[forms.length - 1] ?? { action: "cancel" };
    },
  };
}

let ahead = 0;
const clock = (): number => Date.now() + ahead;

/** A person who takes the time to read. */
const slow = (answer: (form: Form) => FormAnswer) => ({
  person: (form: Form): FormAnswer => {
    ahead += 2000;
    return answer(form);
  },
});

type Runs = ReturnType<typeof openServer>;

/** Starts a run with one call of a client, and tells how both stand. */
async function call({ service }: Runs, options: ClientOptions, deps: DepsOptions = {}) {
  const client = await connect(depsFor(service, deps), options);
  const result = await client.call("run_deep_agent", { task: "ask" });
  const id = String(result.structured["run_id"]);
  return {
    client,
    result,
    id,
    questions: (await mine(service).read.view(id))?.requests.filter(isQuestion) ?? [],
  };
}

const asking = (args: object) =>
  openServer(databaseFile(), { model: calling({ name: "ask_user", args: { ...args } }), askUser: true });

describe.each(CLIENT_KINDS)("%s", (kind) => {
  const by = kind === "v2-modern" ? "input_required" : "elicitation";

  test("one form has all fields of a question, and its answer goes to the agent", async () => {
    const { forms, answer } = person(accept(ANSWERS));
    const runs = asking({ question: "What is it?", fields: FIELDS });
    const { result, questions } = await call(runs, { kind, person: answer });
    expect(forms).toHaveLength(1);
    expect(forms[0]?.message).toMatch(/^The main agent asks:\n\n {4}What is it\?\n/);
    expect(result.structured).toMatchObject({ status: "completed" });
    const { colour_other: colour, ...others } = ANSWERS;
    expect(result.text).toContain(
      JSON.stringify({ why: others.why, size: "M", colour, extras: ["card"], count: 2, gift: true }),
    );
    expect(questions).toMatchObject([{ status: "answered", decidedBy: by }]);
  });

  test("what a judge cannot settle is one form, and accepting it ends the run", async () => {
    const { forms, answer } = person(accept({ decision: "accept" }));
    const model = scriptedModel((request) =>
      isJudge(request) ? findings(unsettled("uncertain")) : { text: "done" },
    );
    const goal = { criteria: ["The customer likes it"] };
    const runs = openServer(databaseFile(), { model, goal, askUser: true });
    const { result } = await call(runs, { kind, ...slow(answer) }, { clock });
    expect(forms).toHaveLength(1);
    expect(forms[0]?.message).toContain("The customer likes it");
    expect(result.structured).toMatchObject({ status: "completed", answer: "done" });
  });

  test("an answer that does not fit is asked for again, with the reason", async () => {
    const field = { name: "colour", options: ["red", "blue"], other: true };
    const { forms, answer } = person(accept({}), accept({ colour_other: "grey" }));
    const runs = asking({ question: "Which?", fields: [field] });
    const { result } = await call(runs, { kind, ...slow(answer) }, { clock });
    expect(result.structured).toMatchObject({ status: "completed", answer: "The person answered: grey" });
    expect(forms[1]?.message).toMatch(/^'colour' is missing\.\n/);
  });

  test.each<FormAnswer>([accept({}), { action: "accept" }, { action: "decline" }])(
    "a client that answers %j by itself answers nothing",
    async (response) => {
      const frozen = Date.now();
      const optional = [{ name: "hint", optional: true }];
      const { result, questions } = await call(
        asking({ question: "Any hint?", fields: optional }),
        { kind, person: () => response },
        { clock: () => frozen },
      );
      expect(result.structured).toMatchObject({ status: "input_required" });
      expect(result.text).toContain("closed the question before anyone could read it");
      expect(questions).toMatchObject([{ status: "pending" }]);
    },
  );

  test("a person who declines lets the agent go on without an answer; a closed form leaves it open", async () => {
    const { answer } = person({ action: "cancel" }, { action: "decline" });
    const runs = asking({ question: "Which?" });
    const { client, result, id } = await call(runs, { kind, ...slow(answer) }, { clock });
    expect(result.structured).toMatchObject({
      status: "input_required",
      questions: [{ kind: "ask", text: "Which?", status: "pending" }],
    });
    await client.call("check_deep_agent", { run_id: id });
    const { run, requests } = await reach(runs.service, id, "completed");
    const questions = requests.filter(isQuestion);
    expect(questions).toMatchObject([{ status: "declined", answer: { type: "decline" } }]);
    expect(run.answer).toContain("The person did not answer.");
  });

  test("interrupts of a LangChain tool are asked one after the other", async () => {
    const booking = tool(
      () => {
        const seat: unknown = interrupt({ question: "Which seat?" });
        const meal: unknown = interrupt("Which meal?", {
          responseSchema: z.object({ meal: z.enum(["fish", "rice"]) }),
        });
        return JSON.stringify({ seat, meal });
      },
      { name: "book", description: "Books a flight.", schema: z.object({}) },
    );
    const runs = openServer(databaseFile(), { model: calling({ name: "book", args: {} }), tools: [booking] });
    const { forms, answer } = person(accept({ answer: "12A" }), accept({ meal: "fish" }));
    const { result } = await call(runs, { kind, person: answer });
    expect(result.structured).toMatchObject({ answer: '{"seat":"12A","meal":{"meal":"fish"}}' });
    expect(forms.map(({ message }) => message)).toEqual([
      expect.stringMatching(/uses a tool that asks:\n\n {4}Which seat\?/),
      expect.stringContaining("Which meal?"),
    ]);
  });

  test("the form of another MCP server names that server", async () => {
    const question: Question = { ...SIZE, fields: [{ name: "size", type: "number", required: true }] };
    const { forms, answer } = person(accept({ size: 44 }));
    const { result } = await call(questionRuns(question), { kind, person: answer });
    expect(forms[0]?.message).toMatch(/^Asked by the MCP server "shop"/);
    expect(result.structured["answer"]).toBe('{"type":"fields","values":{"size":44}}');
  });

  const url = "https://pay.example/x?y=1";
  const PAY: Question = { kind: "elicitation", server: "shop", mode: "url", message: "Pay.", url };

  test("an address of another MCP server is opened by a client that opens addresses", async () => {
    const pages: PageRequest[] = [];
    const browser = (page: PageRequest): FormAnswer => {
      if (pages.length > 0) ahead += 2000;
      pages.push(page);
      return { action: "accept" };
    };
    const { answer } = person();
    const runs = questionRuns(PAY);
    const { client, result, id } = await call(runs, { kind, person: answer, browser }, { clock });
    // Nobody can have read it by then.
    expect(result.structured).toMatchObject({ status: "input_required" });
    await client.call("check_deep_agent", { run_id: id });
    expect((await reach(runs.service, id, "completed")).run.answer).toBe('{"type":"opened"}');
    expect(pages).toMatchObject([{ url: "https://pay.example/x?y=1" }, { url: "https://pay.example/x?y=1" }]);
    expect(pages[0]?.message).toContain("Host: pay.example");
  });

  test("a client with forms alone says where to open it", async () => {
    const { forms, answer } = person(accept({ answer: "opened" }));
    const { result } = await call(questionRuns(PAY), { kind, person: answer });
    expect(forms[0]?.message).toContain("    Host: pay.example\n    Address: https://pay.example/x?y=1");
    expect(result.structured["answer"]).toBe('{"type":"opened"}');
  });

  test("approvals and questions that wait together are all asked", async () => {
    const notes: string[] = [];
    const model = calling(note("a"), { name: "ask_user", args: { question: "Which?" } });
    const tools = [noteTool(notes)];
    const agent = { model, askUser: true, tools, interruptOn: { note: true } };
    const forms: string[] = [];
    const answer = ({ message, requestedSchema: { properties } }: Form): FormAnswer => {
      forms.push(message);
      return accept("decision" in properties ? { decision: "approve" } : { answer: "blue" });
    };
    const { result } = await call(openServer(databaseFile(), agent), { kind, person: answer });
    expect(result.structured).toMatchObject({ answer: "noted a; The person answered: blue" });
    expect(notes).toEqual(["a"]);
    expect(forms.toSorted()).toEqual([
      expect.stringContaining("question 1 of 1"),
      expect.stringContaining("approval 1 of 1"),
    ]);
  });

  test("without forms the report has the question, and says who may answer it", async () => {
    const runs = asking({ question: "Which?", wait_minutes: 60 });
    const { result, id, client } = await call(runs, { kind });
    expect(result.isError).toBe(false);
    const asked = { kind: "ask", agent: "main agent", asked_by: "The main agent asks:", text: "Which?" };
    expect(result.structured["questions"]).toMatchObject([{ ...asked, status: "pending" }]);
    expect(result.text).toContain(`Run ${id} waits for a person to answer what is listed under questions.`);
    expect(result.text).toContain(`deepagent-mcp runs open ${id}`);
    expect(result.text).toMatch(/If there is no answer by \d{4}-/);
    expect(result.text).not.toContain("answer_deep_agent");
    const [question] = (await mine(runs.service).read.view(id))?.requests.filter(isQuestion) ?? [];
    const red = { type: "fields", values: { answer: "red" } } as const;
    await mine(runs.service).requests.answer(id, { requestId: question?.id ?? "", answer: red }, "page");
    const checked = await client.call("check_deep_agent", { run_id: id });
    expect(checked.text).toContain("The person answered: red");
  });
});

test("no model can answer a question, even where models pass decisions on", async () => {
  const runs = asking({ question: "Which?" });
  const allowed = { config: { approvals: { allowModelAnswers: true } } };
  const { client, result, id, questions } = await call(runs, { kind: "v2-modern" }, allowed);
  expect(result.structured).toMatchObject({ next: { tool: "check_deep_agent" } });
  for (const decision of ["approve", "reject"]) {
    const args = { run_id: id, approval_id: questions[0]?.id ?? "", decision };
    const refused = await client.call("answer_deep_agent", args);
    expect(refused).toMatchObject({ isError: true, text: expect.stringContaining("no tool can answer") });
  }
  expect((await mine(runs.service).read.view(id))?.requests.filter(isQuestion)).toMatchObject([
    { status: "pending" },
  ]);
});

test("2025 era: an answer given elsewhere takes the open form back", async () => {
  const runs = asking({ question: "Which?" });
  const { result } = await call(runs, {
    kind: "v1",
    person: async () => {
      const [question] = await mine(runs.service).read.pending(1);
      const values = { answer: "red" };
      const { runId = "", id = "" } = question ?? {};
      await mine(runs.service).requests.answer(
        runId,
        { requestId: id, answer: { type: "fields", values } },
        "page",
      );
      return new Promise<FormAnswer>(() => {});
    },
  });
  expect(result.structured).toMatchObject({ status: "completed", answer: "The person answered: red" });
});

test("progress and resources say who asks what", async () => {
  const { service } = questionRuns({ ...SIZE, fields: [{ name: "size", type: "number" }] });
  const client = await connect(depsFor(service), { kind: "v2-modern" });
  const lines: string[] = [];
  const onProgress = (line: string) => void lines.push(line);
  const { structured } = await client.call("run_deep_agent", { task: "ask" }, { onProgress });
  expect(lines.join("\n")).toContain("MCP server shop asks: Your size?");
  const { contents } = await client.readResource(`deepagent://runs/${String(structured["run_id"])}`);
  expect(JSON.parse(String(contents[0]?.["text"]))).toMatchObject({
    activity: "MCP server shop asks: Your size?",
    questions: [
      {
        kind: "elicitation",
        text: "Your size?",
        status: "pending",
        asked: { server: "shop", mode: "form", fields: [{ name: "size", type: "number" }] },
      },
    ],
  });
});

test.each(["2026", "2025"])("a person answers what an MCP server of %s asks", async (era) => {
  const server = era === "2026" ? at((await newServer()).url) : run(await oldServer());
  const options = { env: { PATH: process.env["PATH"] }, version: "0.0.0-test", log: silentLogger };
  const mcp = openMcpTools({ airline: server }, options);
  onTestFinished(() => mcp.close());
  for (const kind of ["v1", "v2-modern"] as const) {
    const agent = async () => ({
      model: calling({ name: "airline__book", args: {} }),
      tools: (await mcp.forAgent()).tools,
    });
    const { forms, answer } = person(accept({ seat: "window" }));
    const { result } = await call(openServer(databaseFile(), agent), { kind, person: answer });
    expect(forms[0]?.message).toMatch(/^Asked by the MCP server "airline".*\n\n {4}Which seat\?\n/);
    expect(result.structured).toMatchObject({ status: "completed", answer: "accept window" });
  }
});
