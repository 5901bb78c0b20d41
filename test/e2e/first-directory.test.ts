import { mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { connect, openHome, openStdio, type Home } from "../support/harness.ts";
import { type Line, play } from "../support/harness-brain.ts";
import { APPROVE, inWorkspace, person, repeat, untilStatus } from "./support.ts";
import { openConnection } from "../../src/storage/sqlite/driver.ts";

/** In the data directory: what the first version with effects wrote, killed while an approval waited. */
const NOTED = "run_wNuYj7aJf8gqLewQYlqr9TYW";
const WAITING = "run_MFk65i5adYrTMRahcpakqO4H";
const FILES = ["deepagent.db", "checkpoints.db"];

/** The same directory, as if its workspace had been this one. */
function unpackInto({ dataDir, workspace }: Home): void {
  mkdirSync(dataDir, { mode: 0o700 });
  for (const file of FILES) {
    const packed = readFileSync(new URL(`first-directory/${file}.gz`, import.meta.url));
    writeFileSync(join(dataDir, file), gunzipSync(packed));
  }
  const database = openConnection(join(dataDir, "deepagent.db"));
  const environment = JSON.stringify({ workspace: realpathSync(workspace), kind: "model" });
  database.prepare("UPDATE runs SET environment = ?").run(environment);
  database.close();
}

const SAID: Line = () => ({ status: 400, message: "this was said before" });

test("a data directory of the first version is backed up and migrated, and all of it goes on", async () => {
  const home = await openHome({
    think: play({
      "Write one file": [SAID, { text: "written" }],
      "Note it": [
        SAID,
        SAID,
        SAID,
        { toolCalls: [{ name: "read_file", args: { file_path: "/big.md", limit: 1 } }] },
        repeat,
      ],
    }),
  });
  unpackInto(home);
  const { answer, forms } = person({ "new.md": APPROVE });
  const client = await connect(await openStdio(home), "v2-modern", answer);

  const repeated = { task: "Write one file", idempotency_key: "k" };
  const { structured } = await client.call("run_deep_agent", repeated);
  expect(structured["run_id"]).toBe(WAITING);
  expect(await untilStatus(client, WAITING, "completed")).toMatchObject({ answer: "written" });
  expect([inWorkspace(home, "new.md"), forms.length]).toEqual(["new\n", 1]);

  const noted = (await client.call("check_deep_agent", { run_id: NOTED })).structured;
  expect(noted).toMatchObject({ answer: "noted", files_changed: ["/big.md", "/memories/once.md"] });
  expect((await client.call("search_memories", { query: "mammoth" })).text).toContain("once.md");
  const { contents } = await client.readResource(`deepagent://runs/${NOTED}/events`);
  expect(String(contents[0]?.["text"])).toContain('"run_completed"');

  const more = { task: "And more", thread_id: noted["thread_id"] };
  const next = String((await client.call("run_deep_agent", more)).structured["run_id"]);
  expect((await untilStatus(client, next, "completed"))["answer"]).toContain("xxxxx");

  const backups = readdirSync(home.dataDir).filter((name) => name.endsWith(".backup"));
  expect(backups.toSorted()).toEqual([
    "checkpoints.db.checkpoints-v1.backup",
    "deepagent.db.runs-v2.backup",
    "deepagent.db.store-v1.backup",
  ]);
  for (const name of [...FILES, ...backups]) {
    const database = openConnection(join(home.dataDir, name), { readonly: true });
    expect(database.pragma("integrity_check", { simple: true })).toBe("ok");
    database.close();
  }
});
