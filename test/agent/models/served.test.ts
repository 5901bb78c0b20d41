import { join } from "node:path";
import { expect, it } from "vitest";
import { answersOf, play } from "../../support/harness-brain.ts";
import { openWorld } from "../../support/harness.ts";
import { findings, met } from "../../support/judge.ts";
import { wireServer, type WireReply } from "../../support/wire-server.ts";
import { filesIn } from "../../support/files-in.ts";

/** A second provider, which the server knows by its environment. */
async function openAi(reply: () => WireReply) {
  const server = await wireServer(reply);
  const { OPENAI_API_KEY = "", OPENAI_BASE_URL = "" } = server.env("openai");
  return { server, env: { OPENAI_API_KEY, OPENAI_BASE_URL } };
}

const configFile = (config: object): string =>
  join(filesIn({ "config.json": JSON.stringify(config) }), "config.json");

const reviewer = { name: "reviewer", description: "Reviews.", systemPrompt: "You review." };
const review = { name: "task", args: { description: "look", subagent_type: "reviewer" } };

it("a subagent uses its own model, and the journal has the tokens of each", async () => {
  const { server, env } = await openAi(() => ({ text: "reviewed" }));
  const config = configFile({ subagents: [{ ...reviewer, model: "openai:gpt-4.1" }] });
  const world = await openWorld("stdio", {
    env: { ...env, DEEPAGENT_CONFIG: config },
    think: play({
      whole: [
        { toolCalls: [{ id: "c1", ...review }] },
        (thought) => ({ text: answersOf(thought)[0]?.text ?? "" }),
      ],
    }),
  });
  const client = await world.connect("v2-legacy");
  const { text, structured } = await client.call("run_deep_agent", { task: "the whole" });
  expect(text).toContain("reviewed");
  expect(server.requests.map(({ body }) => body["model"])).toEqual(["gpt-4.1"]);
  const { contents } = await client.readResource(`deepagent://runs/${String(structured["run_id"])}/events`);
  const journal = String(contents[0]?.["text"]);
  const called = journal.split("\n").filter((line) => line.includes('"model_called"'));
  expect(called.filter((line) => line.includes('"claude-test"'))).toHaveLength(2);
  const [own] = called.filter((line) => line.includes('"gpt-4.1"'));
  expect(own).toMatch(/"inputTokens":[1-9]/);
  expect(own).toMatch(/"outputTokens":[1-9]/);
});

it("a goal is judged with the model of judgeModel, and without its key no run starts", async () => {
  const { server, env } = await openAi(() => ({ text: JSON.stringify(findings(met).toolCalls?.[0]?.args) }));
  const think = play({ write: [{ text: "It is written." }] });
  const world = await openWorld("stdio", {
    env: { ...env, DEEPAGENT_JUDGE_MODEL: "openai:gpt-4.1" },
    think,
  });
  const client = await world.connect("v2-legacy");
  const { structured } = await client.call("run_deep_agent", { task: "write", goal: ["It is written"] });
  expect(structured["goal"]).toMatchObject({ outcome: "Goal met" });
  expect(server.requests.map(({ body }) => body["model"])).toEqual(["gpt-4.1"]);
  const keyless = await openWorld("stdio", { env: { DEEPAGENT_JUDGE_MODEL: "openai:gpt-4.1" }, think });
  const refused = await (await keyless.connect("v2-legacy")).call("run_deep_agent", { task: "write" });
  expect(refused.text).toContain("No run was started. The judge of goals: Model 'openai:gpt-4.1' needs");
});

it("goes on with a fallback model, and says so in the journal", async () => {
  const { env } = await openAi(() => ({ text: "the spare one answered" }));
  const world = await openWorld("stdio", {
    env: { ...env, DEEPAGENT_FALLBACK_MODELS: "groq:no-key-for-this,openai:gpt-4.1" },
    think: () => ({ status: 404, type: "not_found_error", message: "no such model" }),
  });
  const client = await world.connect("v2-legacy");
  const { text, structured } = await client.call("run_deep_agent", { task: "go" });
  expect(text).toContain("the spare one answered");
  const events = await client.readResource(`deepagent://runs/${String(structured["run_id"])}/events`);
  expect(JSON.stringify(events)).toContain(
    "The model claude-test could not answer (model_not_found, HTTP 404). The agent continues with gpt-4.1.",
  );
});

it("starts no run for a subagent whose model cannot be used", async () => {
  const config = configFile({ subagents: [{ ...reviewer, model: "openai:gpt-4.1" }] });
  const world = await openWorld("stdio", { env: { DEEPAGENT_CONFIG: config }, think: () => ({ text: "x" }) });
  const client = await world.connect("v2-legacy");
  const { text, isError } = await client.call("run_deep_agent", { task: "go" });
  expect(isError).toBe(true);
  expect(text).toContain("No run was started. Subagent 'reviewer': Model 'openai:gpt-4.1' needs");
});
