import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { entry } from "../server/auth/support.ts";
import { connect, openHome } from "../support/harness.ts";
import { play } from "../support/harness-brain.ts";
import { httpConnector, serveHttp } from "../support/harness-http-process.ts";
import { APPROVE, inWorkspace, person, repeat, writeFile } from "./support.ts";

test("principals and threads have folders of their own, for files and for commands", async () => {
  const list = { name: "execute", args: { command: "cat mine.md" } };
  const look = { toolCalls: [{ name: "ls", args: { path: "/workspace" } }, list] };
  const mine = { toolCalls: [writeFile("/workspace/mine.md", "of this thread")] };
  const home = await openHome({
    think: play({ "Write mine": [mine, { text: "done" }, look, repeat], "Look around": [look, repeat] }),
    env: { DEEPAGENT_WORKSPACE_FOLDER: "{principal}/{thread}" },
  });
  const config = join(home.dataDir, "..", "config.json");
  const tokens = ["alice", "Bob"].map((principal) => entry(`${principal}-token`, principal));
  writeFileSync(config, JSON.stringify({ http: { tokens }, approvals: { write: "none" } }));
  const { url } = await serveHttp({ env: { ...home.env, DEEPAGENT_CONFIG: config } });
  // Commands are asked about where there is no sandbox for them.
  const { answer } = person({ "": APPROVE });
  const alice = await connect(httpConnector(url, "alice-token"), "v2-modern", answer);
  const { structured } = await alice.call("run_deep_agent", { task: "Write mine" });
  expect(structured["status"]).toBe("completed");
  const thread = String(structured["thread_id"]);
  expect(inWorkspace(home, `alice/${thread}/mine.md`)).toBe("of this thread");

  const again = await alice.call("run_deep_agent", { task: "Look around", thread_id: thread });
  expect(again.text).toContain("/workspace/mine.md");
  expect(again.text).toContain("of this thread");
  const bob = await connect(httpConnector(url, "Bob-token"), "v2-modern", answer);
  const other = await bob.call("run_deep_agent", { task: "Look around" });
  expect(other.structured["status"]).toBe("completed");
  expect(other.text).not.toContain("/workspace/mine.md");
  expect(other.text).not.toContain("of this thread");
});
