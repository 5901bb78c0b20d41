import { dirname } from "node:path";
import { expect, test } from "vitest";
import { ConfigSchema } from "../../../src/config/schema.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { openRuns } from "../../../src/commands/compose.ts";
import { cleanUpWith, databaseFile, ME } from "../../runs/support.ts";
import { connect, depsFor } from "../../server/support.ts";

function open(lendable: boolean) {
  const folder = dirname(databaseFile());
  const config = ConfigSchema.parse({ dataDir: folder, workspace: folder, model: "client" });
  const runs = openRuns({ config, env: {}, logger: silentLogger, lendable });
  cleanUpWith(async () => (await runs).close());
  return { config, runs };
}

test("a server whose model is `client` works with that of its client", async () => {
  const { config, runs } = open(true);
  const service = await runs;
  const client = await connect(
    depsFor(async () => service, { config }),
    {
      kind: "v2-legacy",
      model: ({ tools }) => ({
        role: "assistant",
        model: "lent-1",
        content: { type: "text", text: `I have ${tools === undefined ? "nothing" : "tools"}` },
      }),
    },
  );
  const { structured } = await client.call("run_deep_agent", { task: "say something" });
  expect(structured).toMatchObject({ status: "completed", answer: "I have tools" });
});

test("where no client can lend one, the model `client` is refused before a run is started", async () => {
  const service = await open(false).runs;
  const started = await service.start(ME, { task: "x" });
  expect(started).toMatchObject({ ok: false, code: "model_not_configured" });
  expect(started.ok ? "" : started.message).toContain("there is none here");
});
