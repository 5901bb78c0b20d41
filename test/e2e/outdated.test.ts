// @module-tag long
// It starts a server for each component and client.
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connect, openHome, openStdio } from "../support/harness.ts";
import { play } from "../support/harness-brain.ts";
import { serveHttp } from "../support/harness-http-process.ts";
import { APPROVE, inWorkspace, person, runIdOf, untilStatus, writeFile } from "./support.ts";
import { openConnection } from "../../src/storage/sqlite/driver.ts";

const COMPONENTS = [
  ["deepagent.db", "runs"],
  ["deepagent.db", "store"],
  ["checkpoints.db", "checkpoints"],
] as const;

test("a server begins nothing in a database once a newer version has changed a component of it", async () => {
  const home = await openHome({
    think: play({
      "Write one file": [{ toolCalls: [writeFile("/workspace/one.md", "1\n")] }, { text: "written" }],
      "Say something": [{ text: "said" }],
    }),
  });
  const client = await connect(await openStdio(home), "v1");
  const waiting = runIdOf(await client.call("run_deep_agent", { task: "Write one file" }));
  await untilStatus(client, waiting, "input_required");
  const { answer } = person({ "one.md": APPROVE });

  for (const [file, component] of COMPONENTS) {
    const database = openConnection(join(home.dataDir, file));
    onTestFinished(() => void database.close());
    const change = database.prepare("UPDATE schema_versions SET version = version + ? WHERE component = ?");
    change.run(1, component);
    const refused = await client.call("run_deep_agent", { task: "Say something" });
    expect(refused).toMatchObject({ isError: true, text: expect.stringContaining("Restart the server") });
    const deciding = await connect(await openStdio(home), "v1", answer);
    const newer = await deciding.call("check_deep_agent", { run_id: waiting });
    expect(newer).toMatchObject({ isError: true, text: expect.stringContaining("newer version") });
    // What was stored can still be looked at.
    const { structured } = await client.call("check_deep_agent", { run_id: waiting, wait_seconds: 0 });
    expect(structured).toMatchObject({ status: "input_required" });
    await deciding.close();
    change.run(-1, component);
  }

  const again = await connect(await openStdio(home), "v1", answer);
  expect(await untilStatus(again, waiting, "completed")).toMatchObject({ answer: "written" });
  expect(inWorkspace(home, "one.md")).toBe("1\n");
});

test("a server is not ready while the tables are those of a newer version, so that proxies turn to newer servers", async () => {
  const home = await openHome({ think: play({}) });
  const { url } = await serveHttp(home);
  const readiness = async () => (await fetch(new URL("/readyz", url))).status;
  await expect.poll(readiness).toBe(200);
  const database = openConnection(join(home.dataDir, "deepagent.db"));
  onTestFinished(() => void database.close());
  const change = database.prepare(
    "UPDATE schema_versions SET version = version + ? WHERE component = 'runs'",
  );
  change.run(1);
  await expect.poll(readiness).toBe(503);
  change.run(-1);
  await expect.poll(readiness).toBe(200);
});
