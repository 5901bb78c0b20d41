// @module-tag long
// It waits for what is sent in the background, and for what never comes.
import { createServer } from "node:http";
import { expect, it } from "vitest";
import { play } from "../../support/harness-brain.ts";
import { openHome, openWorld } from "../../support/harness.ts";
import { startProgram } from "../../support/harness-process.ts";
import { addressOf } from "../../support/http-address.ts";

interface Traced {
  id: string;
  end_time?: unknown;
  name: string;
  run_type: string;
  tags?: string[];
  extra?: { metadata?: Record<string, unknown> };
}

/** Stands in for LangSmith: keeps every request, and takes traces as plain JSON. */
async function traceServer() {
  const requests: string[] = [];
  const traced: Traced[] = [];
  const ended: Traced[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => void pieces.push(piece));
    request.on("end", () => {
      const body = Buffer.concat(pieces).toString("utf8");
      if (request.url === "/runs/batch") {
        const { post, patch } = JSON.parse(body) as { post: Traced[]; patch: Traced[] }; // LangSmith's form
        traced.push(...post);
        ended.push(...[...post, ...patch].filter(({ end_time }) => end_time !== undefined));
      }
      response.writeHead(200, { "content-type": "application/json" });
      response.end('{"batch_ingest_config":{"use_multipart_endpoint":false}}');
    });
  });
  return { url: await addressOf(server), requests, traced, ended };
}

const think = play({
  whole: [
    {
      toolCalls: [
        { id: "c1", name: "task", args: { description: "the part", subagent_type: "general-purpose" } },
      ],
    },
    { text: "end" },
  ],
  part: [{ toolCalls: [{ id: "c2", name: "ls", args: {} }] }, { text: "done" }],
});

/** Has one run made with these variables besides the usual ones. */
async function traceRun(env: Record<string, string>) {
  const world = await openWorld("stdio", { think, env });
  const client = await world.connect("v2-legacy");
  const { structured } = await client.call("run_deep_agent", { task: "the whole" });
  expect(structured["status"]).toBe("completed");
  return { run: String(structured["run_id"]), close: () => client.close() };
}

it("hears of runs by name, thread and tag when its variables are set", async () => {
  const tracing = await traceServer();
  const { run } = await traceRun({
    LANGSMITH_TRACING: "true",
    LANGSMITH_API_KEY: "key",
    LANGSMITH_ENDPOINT: tracing.url,
  });
  const named = (name: string) => tracing.traced.filter((trace) => trace.name === name);
  await expect.poll(() => named("ChatAnthropic")).toHaveLength(4);
  const [agent] = named("deepagent");
  const [subagent] = named("general-purpose");
  const thread = agent?.extra?.metadata?.["thread_id"];
  expect(thread).toMatch(/^thr_/);
  for (const trace of [agent, subagent, ...named("ChatAnthropic")]) {
    expect(trace?.tags).toContain("deepagent-mcp");
    expect(trace?.extra?.metadata).toMatchObject({ thread_id: thread, run });
  }
});

it("hears nothing when tracing is not switched on", async () => {
  const tracing = await traceServer();
  const { close } = await traceRun({ LANGSMITH_API_KEY: "key", LANGSMITH_ENDPOINT: tracing.url });
  await close();
  expect(tracing.requests).toEqual([]);
});

it("hears how a run ended from a server that ends right after it", async () => {
  const tracing = await traceServer();
  const { close } = await traceRun({
    LANGSMITH_TRACING: "true",
    LANGSMITH_API_KEY: "key",
    LANGSMITH_ENDPOINT: tracing.url,
  });
  await close();
  const root = () => tracing.traced.find(({ name }) => name === "deepagent")?.id;
  await expect.poll(() => tracing.ended.some(({ id }) => id === root())).toBe(true);
});

it("does not keep a terminal waiting when it does not answer", async () => {
  const { env } = await openHome({
    think,
    env: {
      LANGSMITH_TRACING: "true",
      LANGSMITH_API_KEY: "key",
      LANGSMITH_ENDPOINT: await addressOf(createServer(() => {})),
    },
  });
  const child = await startProgram(["run", "the whole"], env);
  expect(await child.exited).toEqual({ code: 0, signal: null });
  expect(child.output).toContain("end");
});
