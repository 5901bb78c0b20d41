// @module-tag long
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openWorld, type World } from "../support/harness.ts";
import { answersOf, play } from "../support/harness-brain.ts";
import type { WireAnswer } from "../support/wire-server-protocol.ts";
import { APPROVE, person, repeat, runIdOf } from "./support.ts";

type Call = NonNullable<WireAnswer["toolCalls"]>[number];

const READS = [
  { name: "ls", args: { path: "/workspace/data" } },
  { name: "glob", args: { pattern: "**/*.db", path: "/workspace" } },
  { name: "read_file", args: { file_path: "/workspace/data/deepagent.db" } },
  { name: "read_file", args: { file_path: "/workspace/workspace/../data/state.key" } },
  { name: "grep", args: { pattern: "the key of a provider", path: "/workspace" } },
  { name: "read_file", args: { file_path: "/workspace/config.json" } },
];

/** The product on a workspace that has the data directory and the configuration file in it. */
async function openHomeAsWorkspace(calls: readonly Call[]): Promise<World> {
  // The harness makes both folders in one, which is given as the workspace once it is known.
  const env = { DEEPAGENT_APPROVALS_EXECUTE: "unsandboxed" };
  const think = play({ Look: [{ toolCalls: [...calls] }, repeat] });
  const world = await openWorld("stdio", { env, think });
  const root = join(world.dataDir, "..");
  const config = join(root, "config.json");
  writeFileSync(
    config,
    JSON.stringify({ mcpServers: { other: { command: "/none", env: { KEY: "the key of a provider" } } } }),
  );
  Object.assign(world.env, { DEEPAGENT_WORKSPACE: root, DEEPAGENT_CONFIG: config });
  return world;
}

const told = ({ brain }: World): string =>
  brain.thoughts.flatMap((thought) => answersOf(thought).map(({ text }) => text)).join("\n");

test("neither the agent nor a client reads the data directory and the configuration below the workspace", async () => {
  const world = await openHomeAsWorkspace(READS);
  const client = await world.connect("v2-modern");
  const result = await client.call("run_deep_agent", { task: "Look" });
  expect(result.structured["status"]).toBe("completed");
  expect(told(world)).not.toMatch(/deepagent\.db-|checkpoints\.db|SQLite format|the key of a provider"/);
  expect(told(world)).toMatch(/not found/i);
  for (const path of ["data/deepagent.db", "data/state.key", "config.json", "data"]) {
    const uri = `deepagent://files/workspace/${path}`;
    await expect(client.readResource(uri), path).rejects.toThrow();
    await expect(
      client.readResource(`deepagent://runs/${runIdOf(result)}/files/workspace/${path}`),
    ).rejects.toThrow();
    expect(await client.call("read_agent_file", { path: `/workspace/${path}` })).toMatchObject({
      isError: true,
    });
  }
  const completed = await client.complete("deepagent://files/{+path}", "path", "workspace/");
  expect(JSON.stringify(completed)).not.toMatch(/data|config/);
});

test("an agent cannot change them", async () => {
  const change = (file_path: string) => ({ name: "write_file", args: { file_path, content: "planted" } });
  const remove = { name: "delete_file", args: { file_path: "/workspace/data" } };
  const world = await openHomeAsWorkspace([change("/workspace/data/planted.txt"), remove]);
  const { answer } = person({ data: APPROVE });
  const client = await world.connect("v2-modern", answer);
  const { structured } = await client.call("run_deep_agent", { task: "Look" });
  expect(structured["status"]).toBe("completed");
  expect(() => readFileSync(join(world.dataDir, "planted.txt"))).toThrow("ENOENT");
  expect(readFileSync(join(world.dataDir, "deepagent.db"), "latin1")).toContain("SQLite format");
});

test("a command in the sandbox finds an empty folder in their place", { tags: "bwrap" }, async () => {
  const command =
    "ls -A data; cat config.json; mv data moved; cp -r . /tmp/all; ls -A /tmp/all/data; echo end";
  const world = await openHomeAsWorkspace([{ name: "execute", args: { command } }]);
  const client = await world.connect("v2-modern");
  const { structured } = await client.call("run_deep_agent", { task: "Look" });
  expect(structured["status"]).toBe("completed");
  expect(told(world)).toContain("end\n");
  expect(told(world)).not.toMatch(/\.db|state\.key|provider/);
  expect(readFileSync(join(world.dataDir, "deepagent.db"), "latin1")).toContain("SQLite format");
});
