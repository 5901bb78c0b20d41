import { dirname } from "node:path";
import { expect, test } from "vitest";
import { type ConfigInput, ConfigSchema } from "../../../src/config/schema.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { openRuns } from "../../../src/app/open-runs.ts";
import { cleanUpWith, databaseFile, mine } from "../../runs/support.ts";
import { connect, depsFor } from "../../server/support.ts";
import type { SampledReply } from "../../support/clients.ts";

type ConfigInputPart = Partial<ConfigInput>;

function open(lendable: boolean, settings: ConfigInputPart = {}) {
  const folder = dirname(databaseFile());
  const config = ConfigSchema.parse({ dataDir: folder, workspace: folder, model: "client", ...settings });
  const runs = openRuns({ config, env: {}, logger: silentLogger, lendable });
  cleanUpWith(async () => (await runs).close());
  return { config, runs };
}

const says = (text: string): SampledReply => ({
  role: "assistant",
  model: "lent-1",
  content: { type: "text", text },
});

test("a server whose model is `client` works with that of its client", async () => {
  const { config, runs } = open(true);
  const service = await runs;
  const client = await connect(depsFor(service, { config }), {
    kind: "v2-legacy",
    model: ({ tools }) => says(`I have ${tools === undefined ? "nothing" : "tools"}`),
  });
  const { structured } = await client.call("run_deep_agent", { task: "say something" });
  expect(structured).toMatchObject({ status: "completed", answer: "I have tools" });
});

test("the profile `deepcowork` offers its seven file tools, and no others", async () => {
  const { config, runs } = open(true, { profile: "deepcowork" });
  const service = await runs;
  const client = await connect(depsFor(service, { config }), {
    kind: "v2-legacy",
    model: ({ tools = [] }) => says(tools.map(({ name }) => name).join(" ")),
  });
  const { structured } = await client.call("run_deep_agent", { task: "say something" });
  const names = String(structured?.["answer"]).split(" ");
  expect(names).toEqual(
    expect.arrayContaining(["ls", "read_file", "write_file", "edit_file", "glob", "grep"]),
  );
  expect(names).not.toContain("delete");
  expect(names).not.toContain("job");
});

test("where no client can lend one, the model `client` is refused before a run is started", async () => {
  const service = await open(false).runs;
  const started = await mine(service).control.start({ task: "x" });
  expect(started).toMatchObject({ ok: false, code: "model_not_configured" });
  expect(started.ok ? "" : started.message).toContain("none is connected here");
});
