import { isQuestion } from "../../src/runs/run.ts";
import { tool } from "@langchain/core/tools";
import { interrupt } from "@langchain/langgraph";
import { expect, test } from "vitest";
import { z } from "zod";
import { scriptedModel } from "../support/scripted-model.ts";
import {
  calling,
  callingInTurn,
  databaseFile,
  follow,
  kinds,
  mine,
  openServer,
  reach,
  startRun,
} from "./support.ts";

const ASK = { name: "ask_user", args: { question: "Which colour?" } };

/** A server with one run that waits for the answer to a question. */
async function asking(args: object = {}, options: object = {}) {
  const agent = { model: calling({ ...ASK, args: { ...ASK.args, ...args } }), askUser: true };
  const file = databaseFile();
  const server = openServer(file, agent, options);
  const { id: runId } = await startRun(server.service, "paint");
  const questions = (await reach(server.service, runId, "input_required")).requests.filter(isQuestion);
  const [question] = questions;
  if (question === undefined) throw new Error("nothing was asked");
  return { ...server, file, agent, runId, question };
}

test("the agent asks, waits without a time limit, and goes on with the answer", async () => {
  const { service, runId, question } = await asking();
  expect(question).toMatchObject({ status: "pending", kind: "ask", text: "Which colour?" });
  expect(question.expiresAt).toBeUndefined();
  expect(await mine(service).read.pending(10)).toMatchObject([{ id: question.id, task: "paint" }]);
  expect(await mine(service).read.countPending()).toBe(1);
  const values = { answer: "blue" };
  const answered = await mine(service).requests.answer(
    runId,
    { requestId: question.id, answer: { type: "fields", values } },
    "page",
  );
  expect(answered).toMatchObject({
    ok: true,
    how: "stored",
    request: { status: "answered", decidedBy: "page" },
  });
  const { run } = await reach(service, runId, "completed");
  expect(run.answer).toBe("The person answered: blue");
  const events = await follow(service, runId);
  expect(kinds(events).filter((kind) => kind.startsWith("question"))).toEqual([
    "question_asked",
    "question_answered",
  ]);
});

test("an answer is stored once; another one and a malformed one change nothing", async () => {
  const options = [
    { name: "size", options: ["S", "M"] },
    { name: "count", type: "number" },
  ];
  const { service, runId, question } = await asking({ fields: options });
  const give = (values: object) =>
    mine(service).requests.answer(
      runId,
      { requestId: question.id, answer: { type: "fields", values: { ...values } } },
      "page",
    );
  expect(await give({ size: "XL", count: 2 })).toMatchObject({
    code: "invalid_answer",
    message: "'size' must be one of: S, M.",
  });
  expect(await give({ size: "S" })).toMatchObject({ code: "invalid_answer", message: "'count' is missing." });
  expect(await give({ size: "M", count: "3", more: "x" })).toMatchObject({ ok: true });
  expect(await give({ size: "M", count: 3 })).toMatchObject({ ok: true, how: "repeated" });
  expect(await give({ size: "S", count: 3 })).toMatchObject({ ok: false, code: "already_answered" });
  expect(
    await service
      .as({ principal: "other" })
      .requests.answer(runId, { requestId: question.id, answer: { type: "decline" } }, "page"),
  ).toMatchObject({
    code: "not_found",
  });
  const { run } = await reach(service, runId, "completed");
  expect(run.answer).toContain('{"size":"M","count":3}');
});

test("a question that nobody answers in time ends with no answer; a late one reaches the agent as a message", async () => {
  let now = 1_000_000;
  const args = { wait_minutes: 5 };
  const later = { name: "ask_user", args: { question: "And the size?" } };
  const agent = {
    model: callingInTurn([{ ...ASK, args: { ...ASK.args, ...args } }], [later]),
    askUser: true,
  };
  const { service } = openServer(databaseFile(), agent, { clock: () => now });
  const { id: runId } = await startRun(service, "paint");
  const questions = (await reach(service, runId, "input_required")).requests.filter(isQuestion);
  const [first] = questions;
  expect(first?.expiresAt).toBe(now + 5 * 60_000);
  now += 5 * 60_000;
  await follow(
    service,
    runId,
    ({ kind, data }) => kind === "question_asked" && data.text === "And the size?",
  );
  const values = { answer: "blue" };
  const late = await mine(service).requests.answer(
    runId,
    { requestId: first?.id ?? "", answer: { type: "fields", values } },
    "page",
  );
  expect(late).toMatchObject({
    ok: true,
    how: "told",
    request: { status: "declined", decidedBy: "deadline" },
  });
  const told = await follow(service, runId, ({ kind }) => kind === "message_received");
  expect(told.at(-1)?.data).toMatchObject({ text: 'A late answer to your question "Which colour?": blue' });
});

test("a server that was killed while it waited goes on elsewhere with the answer", async () => {
  const { service, file, agent, kill, runId, question } = await asking();
  await service.close();
  kill();
  const other = openServer(file, agent);
  const values = { answer: "red" };
  await mine(other.service).requests.answer(
    runId,
    { requestId: question.id, answer: { type: "fields", values } },
    "terminal",
  );
  expect((await reach(other.service, runId, "completed")).run.answer).toBe("The person answered: red");
});

test("the interrupts of a LangChain tool are questions, one after the other", async () => {
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
  const { service } = openServer(databaseFile(), {
    model: calling({ name: "book", args: {} }),
    tools: [booking],
  });
  const { id: runId } = await startRun(service, "travel");
  const questions = (await reach(service, runId, "input_required")).requests.filter(isQuestion);
  expect(questions).toMatchObject([{ kind: "interrupt", value: { question: "Which seat?" } }]);
  await mine(service).requests.answer(
    runId,
    { requestId: questions[0]?.id ?? "", answer: { type: "value", value: "12A" } },
    "page",
  );
  await follow(service, runId, ({ kind, data }) => kind === "question_asked" && data.text === "Which meal?");
  const [, second] = (await reach(service, runId, "input_required")).requests.filter(isQuestion);
  const wrong = await mine(service).requests.answer(
    runId,
    { requestId: second?.id ?? "", answer: { type: "fields", values: { meal: "soup" } } },
    "page",
  );
  expect(wrong).toMatchObject({ code: "invalid_answer", message: "'meal' must be one of: fish, rice." });
  await mine(service).requests.answer(
    runId,
    { requestId: second?.id ?? "", answer: { type: "fields", values: { meal: "fish" } } },
    "page",
  );
  const { run } = await reach(service, runId, "completed");
  expect(run.answer).toBe('{"seat":"12A","meal":{"meal":"fish"}}');
});

test("a question of a LangChain tool is open while another call of the reply is at work", async () => {
  let finish = (): void => undefined;
  const working = new Promise<void>((resolve) => (finish = resolve));
  const options = (name: string) => ({ name, description: name, schema: z.object({}) });
  const asks = tool(() => String(interrupt("Which seat?")), options("asks"));
  const works = tool(() => working.then(() => "worked"), options("works"));
  const { service } = openServer(databaseFile(), {
    model: scriptedModel(({ messages }) =>
      messages.some(({ type }) => type === "tool")
        ? { text: messages.map(({ text }) => text).join(" ") }
        : { toolCalls: [asks, works].map(({ name }) => ({ name, args: {} })) },
    ),
    tools: [asks, works],
  });
  const { id: runId } = await startRun(service, "travel");
  await follow(service, runId, ({ kind }) => kind === "question_asked");
  const [open] = (await mine(service).read.view(runId))?.requests.filter(isQuestion) ?? [];
  expect(open).toMatchObject({ status: "pending", kind: "interrupt", value: "Which seat?" });
  finish();
  await mine(service).requests.answer(
    runId,
    { requestId: open?.id ?? "", answer: { type: "value", value: "12A" } },
    "page",
  );
  expect((await reach(service, runId, "completed")).run.answer).toMatch(/12A.*worked|worked.*12A/);
});
