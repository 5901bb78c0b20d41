import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { Webhook } from "standardwebhooks";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type ChannelOptions, channelProblem, makeSender, notifyDesktop } from "../../src/news/channel.ts";
import { newsData, newsMessage } from "../../src/news/message.ts";
import type { News, SendResult } from "../../src/runs/news.ts";
import { startReceiver } from "./receiver.ts";
import { filesIn } from "../support/files-in.ts";

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const TIME = Date.parse("2026-03-02T06:00:00Z");
const never = new AbortController().signal;

const approval: News = {
  id: "run_1_4_approval_requested",
  type: "approval.requested",
  time: TIME,
  runId: "run_1",
  threadId: "thr_1",
  name: "Clean <up> & *report*",
  event: {
    runId: "run_1",
    seq: 4,
    time: TIME,
    agent: [],
    kind: "approval_requested",
    data: {
      approvalId: "i:0",
      tool: "execute",
      summary: "Run curl -H token=hunter2",
      call: { act: "Run", object: "curl -H token=hunter2", kind: "command" },
    },
  },
};
const FACTS = { run_id: "run_1", thread_id: "thr_1", name: "Clean <up> & *report*" };
const SUMMARY = "needs your approval: run a command";

const send = (
  options: ChannelOptions,
  {
    env = {},
    page,
    signal = never,
  }: { env?: Record<string, string>; page?: string; signal?: AbortSignal } = {},
): Promise<SendResult> =>
  makeSender(options, { env, pageOf: () => page, openCommand: (id) => `runs open ${id}` })(approval, signal);

/** A folder for programs, which come first in the search path. */
function programs(): string {
  const folder = filesIn();
  vi.stubEnv("PATH", `${folder}${delimiter}${process.env["PATH"] ?? ""}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  return folder;
}

function program(folder: string, name: string, code: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!${process.execPath}\n${code}`);
  chmodSync(path, 0o755);
  return path;
}

describe("a webhook", () => {
  test("is signed so that the verifier of Standard Webhooks accepts it, and no changed one", async () => {
    const { url, received } = await startReceiver();
    const env = { SECRET };
    const options = { kind: "webhook", url: `${url}/hook?a=1`, secretVariable: "SECRET" } as const;
    expect(await send(options, { env, page: "https://agents.example/runs/run_1" })).toEqual({ ok: true });
    expect(await send(options, { env })).toEqual({ ok: true });
    const [{ path, headers, body } = { path: "", headers: {}, body: "" }, again] = received;
    expect(path).toBe("/hook?a=1");
    const known = headers as Record<string, string>; // of a request with these headers
    expect(new Webhook(SECRET).verify(body, known)).toEqual({
      type: "approval.requested",
      timestamp: "2026-03-02T06:00:00.000Z",
      data: {
        ...FACTS,
        summary: SUMMARY,
        approval_id: "i:0",
        tool: "execute",
        url: "https://agents.example/runs/run_1",
      },
    });
    expect(headers["webhook-id"]).toBe("run_1_4_approval_requested");
    expect(again?.headers["webhook-id"]).toBe(headers["webhook-id"]);
    expect(() => new Webhook(SECRET).verify(body.replace("run_1", "run_2"), known)).toThrow("signature");
    const other = `whsec_${Buffer.alloc(32, 8).toString("base64")}`;
    expect(() => new Webhook(other).verify(body, known)).toThrow("signature");
    expect(JSON.stringify(received)).not.toContain("hunter2");
  });

  test("needs a secret of 24 to 64 bytes, and never repeats it", async () => {
    const options = { kind: "webhook", url: "https://example.com", secretVariable: "SECRET" } as const;
    const of = (bytes: number) => `whsec_${Buffer.alloc(bytes, 1).toString("base64")}`;
    for (const good of [of(24), of(64), of(25).replace(/=+$/, "")]) {
      expect(channelProblem(options, { SECRET: good })).toBeUndefined();
    }
    for (const bad of [
      of(23),
      of(65),
      "whsec_",
      "hunter2hunter2hunter2hunter2hunter2",
      "whsec_hunter2 hunter2!",
    ]) {
      const problem = channelProblem(options, { SECRET: bad });
      expect(problem).toMatch(/^SECRET must be whsec_ followed by 24 to 64 random bytes in base64$/);
    }
    expect(await send(options)).toEqual({ ok: false, problem: "the environment variable SECRET is not set" });
  });
});

describe("a receiver", () => {
  const slack = (url: string) => ({ kind: "slack", url }) as const;

  test("that fails, redirects or is gone gets no second message at once", async () => {
    const receiver = await startReceiver();
    const host = new URL(receiver.url).host;
    receiver.statuses = [500, 307, 410, 429, 299];
    receiver.headers = { location: `${receiver.url}/elsewhere`, "retry-after": "120" };
    const afterMs = 120_000;
    expect(await send(slack(receiver.url))).toEqual({ ok: false, problem: `${host} answered 500`, afterMs });
    expect(await send(slack(receiver.url))).toEqual({ ok: false, problem: `${host} answered 307`, afterMs });
    const gone = { ok: false, problem: `${host} answered 410`, isFinal: true, afterMs };
    expect(await send(slack(receiver.url))).toEqual(gone);
    expect(await send(slack(receiver.url))).toEqual({ ok: false, problem: `${host} answered 429`, afterMs });
    // Its endless body is not read.
    expect(await send(slack(receiver.url))).toEqual({ ok: true });
    expect(receiver.received).toHaveLength(5);
  });

  test("that cannot be reached is named without the path of its address, which may be a secret", async () => {
    const result = await send(slack("http://127.0.0.1:1/services/hunter2"));
    expect(result).toEqual({ ok: false, problem: "127.0.0.1:1 refuses connections.", isUnreachable: true });
  });

  test("that never answers is left when the attempt is broken off", async () => {
    const receiver = await startReceiver();
    receiver.statuses = [0];
    const controller = new AbortController();
    const sent = send(slack(receiver.url), { signal: controller.signal });
    await expect.poll(() => receiver.received.length).toBe(1);
    controller.abort();
    await expect(sent).rejects.toThrow();
  });

  test("has an address that is encrypted, also if a variable has it", () => {
    const options = { kind: "slack", urlVariable: "HOOK" } as const;
    const of = (HOOK: string) => channelProblem(options, { HOOK });
    expect(of("https://hooks.slack.com/services/hunter2")).toBeUndefined();
    for (const bad of [
      "http://hooks.slack.com/",
      "file:///etc/passwd",
      "hunter2",
      "https://me:hunter2@host/",
    ]) {
      expect(of(bad)).toBe("HOOK must have an https address");
    }
  });
});

test("Slack gets its form, in which names make no mentions or links", async () => {
  const receiver = await startReceiver();
  const page = "https://agents.example/runs/run_1";
  const env = { HOOK: `${receiver.url}/services/T/B/x` };
  expect(await send({ kind: "slack", urlVariable: "HOOK" }, { env, page })).toEqual({ ok: true });
  expect(receiver.received[0]?.path).toBe("/services/T/B/x");
  expect(JSON.parse(receiver.received[0]?.body ?? "")).toEqual({
    text: `*Clean &lt;up&gt; &amp; ∗report∗* ${SUMMARY}\n<${page}|Open the run>`,
  });
});

test("ntfy gets its form, with the topic of the address and a token", async () => {
  const receiver = await startReceiver();
  const options = { kind: "ntfy", url: `${receiver.url}/my-topic`, tokenVariable: "TOKEN" } as const;
  expect(await send(options, { env: { TOKEN: "tk_1" }, page: "https://a.example/" })).toEqual({ ok: true });
  const [one] = receiver.received;
  expect(one).toMatchObject({ path: "/", headers: { authorization: "Bearer tk_1" } });
  expect(JSON.parse(one?.body ?? "")).toEqual({
    topic: "my-topic",
    title: FACTS.name,
    message: SUMMARY,
    click: "https://a.example/",
  });
});

test("a command gets the message as JSON, and may refuse it", async () => {
  const folder = programs();
  const out = join(folder, "out.json");
  const keep = program(
    folder,
    "keep",
    `require("fs").writeFileSync(process.argv[2], require("fs").readFileSync(0));`,
  );
  expect(await send({ kind: "command", command: [keep, out] })).toEqual({ ok: true });
  expect(JSON.parse(readFileSync(out, "utf8"))).toMatchObject({
    type: "approval.requested",
    data: { ...FACTS, summary: SUMMARY },
  });
  const fail = program(folder, "fail", `console.error("no\\nway"); process.exit(3);`);
  expect(await send({ kind: "command", command: [fail] })).toEqual({
    ok: false,
    problem: "the command failed (exit code 3): no way",
  });
  expect(await send({ kind: "command", command: [join(folder, "missing")] })).toEqual({
    ok: false,
    problem: "the command is not installed",
  });
});

describe("the desktop", () => {
  const LINES = `require("fs").writeFileSync(process.env.OUT, JSON.stringify(process.argv.slice(2)));`;
  const shown = async (platform: NodeJS.Platform, name: string, url?: string) => {
    const folder = programs();
    const out = join(folder, "out.json");
    vi.stubEnv("OUT", out);
    program(folder, name, LINES);
    const command = "runs open run_1";
    expect(await notifyDesktop(newsMessage(approval, url), { command, signal: never, platform })).toEqual({
      ok: true,
    });
    return JSON.parse(readFileSync(out, "utf8")) as string[];
  };

  test("shows a message by the program of its system, with the texts as they are", async () => {
    const text = `${SUMMARY}\nruns open run_1`;
    expect(await shown("linux", "notify-send")).toEqual(["--app-name=deepagent-mcp", "--", FACTS.name, text]);
    // The script comes from standard input: nothing after `-` is an option that has code.
    expect(await shown("darwin", "osascript", "https://a.example/")).toEqual([
      "-",
      FACTS.name,
      `${SUMMARY}\nhttps://a.example/`,
    ]);
    expect(await shown("win32", "powershell.exe")).toHaveLength(4);
  });

  test("without its program is a failure that says so", async () => {
    vi.stubEnv("PATH", "/nowhere");
    onTestFinished(() => void vi.unstubAllEnvs());
    const options = { command: "", signal: never, platform: "linux" } as const;
    expect(await notifyDesktop(newsMessage(approval, undefined), options)).toEqual({
      ok: false,
      problem: "notify-send is not installed",
    });
  });
});

test("messages say what is needed, without contents", () => {
  const of = (event: object, type: News["type"]) =>
    newsData({ ...approval, type, event: { ...approval.event, ...event } }, undefined);
  expect(of({ kind: "run_completed", data: { answer: "hunter2" } }, "run.finished")).toEqual({
    ...FACTS,
    summary: "finished",
  });
  expect(
    of({ kind: "run_completed", data: { answer: "", stopReason: "max_cost" } }, "budget.reached"),
  ).toEqual({
    ...FACTS,
    summary: "stopped at a limit (cost)",
    stop_reason: "max_cost",
  });
  expect(
    of({ kind: "run_failed", data: { reason: "model_auth", message: "hunter2" } }, "run.failed"),
  ).toEqual({
    ...FACTS,
    summary: "failed (model_auth)",
    reason: "model_auth",
  });
  const asked = { questionId: "q", kind: "elicitation", server: "git\u202ehub", text: "hunter2" };
  expect(of({ kind: "question_asked", data: asked }, "question.asked")).toEqual({
    ...FACTS,
    summary: "asks you a question of the MCP server git\\u202ehub",
    question_id: "q",
  });
  const event = { ...approval.event, kind: "question_asked", data: asked } as News["event"];
  const several: News = { ...approval, type: "question.asked", event, questions: 3 };
  expect(newsData(several, undefined)).toMatchObject({ summary: "asks you 3 questions", questions: "3" });
  const long = newsMessage({ ...approval, name: `a\nb ${"c".repeat(500)}` }, undefined).title;
  expect(long).toMatch(/^a b c+…$/);
  expect(long.length).toBeLessThanOrEqual(120);
});
