import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openWorld } from "../../support/harness.ts";
import { filesIn } from "../../support/files-in.ts";

/** What a person preloads to have spans: here a tracer that writes their names to a file. */
const preload = (api: string, file: string): string => `
import { appendFileSync } from "node:fs";
import { createRequire } from "node:module";
const { trace } = createRequire(import.meta.url)(${JSON.stringify(api)});
const span = (name) => {
  appendFileSync(${JSON.stringify(file)}, name + "\\n");
  return new Proxy({ isRecording: () => true, spanContext: () => ({ traceId: "", spanId: "", traceFlags: 0 }) }, { get: (known, key) => known[key] ?? (() => {}) });
};
const forceFlush = async () => appendFileSync(${JSON.stringify(file)}, "flushed\\n");
trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan: span }), forceFlush });
`;

it("the served program makes spans for a tracer that was preloaded", async () => {
  const folder = filesIn();
  const [script, spans] = [join(folder, "preload.mjs"), join(folder, "spans.txt")];
  writeFileSync(script, preload(createRequire(import.meta.url).resolve("@opentelemetry/api"), spans));
  const world = await openWorld("stdio", {
    think: () => ({ text: "done" }),
    env: { NODE_OPTIONS: `--import="${script}"` },
  });
  const client = await world.connect("v2-legacy");
  await client.call("run_deep_agent", { task: "go" });
  expect(readFileSync(spans, "utf8").trim().split("\n")).toEqual([
    "invoke_agent deepagent",
    "chat claude-test",
  ]);
  await client.close();
  await expect.poll(() => readFileSync(spans, "utf8")).toMatch(/\nflushed\n$/);
});
