import { describe, expect, test } from "vitest";
import { MATRIX, openWorld } from "../support/harness.ts";
import { play } from "../support/harness-brain.ts";
import type { Form } from "../support/clients.ts";
import { pages, startSite } from "../web/site.ts";
import { repeat, runIdOf, untilStatus } from "./support.ts";

describe.each(MATRIX)("$kind over $transport", ({ transport, kind }) => {
  const tags = transport === "stdio" ? ["long"] : [];

  test("a person approves a host once, in the form of their client", { tags }, async () => {
    const port = await startSite(
      pages({ "/a": "<title>A</title><p>spring tides</p>", "/b": "<title>B</title><p>neap tides</p>" }),
    );
    const fetching = (path: string) => ({
      toolCalls: [{ name: "web_fetch", args: { url: `http://127.0.0.1:${port}${path}` } }],
    });
    const world = await openWorld(transport, {
      env: { DEEPAGENT_WEB_HOSTS: `127.0.0.1:${port}` },
      think: play({ "Read about tides": [fetching("/a"), fetching("/b"), repeat] }),
    });
    const forms: Form[] = [];
    const client = await world.connect(kind, (form: Form) => {
      forms.push(form);
      return { action: "accept", content: { decision: "approve_same" } };
    });
    const runId = runIdOf(await client.call("run_deep_agent", { task: "Read about tides" }));
    const report = await untilStatus(client, runId, "completed");
    expect(report["answer"]).toContain("neap tides");
    expect(forms).toHaveLength(1);
    expect(forms[0]?.message).toContain(`Read 127.0.0.1:${port}`);
    expect(forms[0]?.message).toContain(`http://127.0.0.1:${port}/a`);
    expect(JSON.stringify(forms[0])).toContain(`reading any page of 127.0.0.1:${port}`);
  });
});

test("switched off, the model hears nothing of the web", async () => {
  const world = await openWorld("memory", {
    env: { DEEPAGENT_WEB_MODE: "off", TAVILY_API_KEY: "tvly-1" },
    think: play({ Hello: [{ text: "hello" }] }),
  });
  const client = await world.connect("v2-modern");
  await client.call("run_deep_agent", { task: "Hello" });
  expect(JSON.stringify(world.brain.thoughts[0]?.request.body)).not.toMatch(/web_|internet|tvly/i);
});
