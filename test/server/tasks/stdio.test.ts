import { CreateTaskResultV2Schema, GetTaskResultV2Schema } from "@modelcontextprotocol/ext-tasks/core/v2";
import { expect, test } from "vitest";
import { openHome } from "../../support/harness.ts";
import { play } from "../../support/harness-brain.ts";
import { startProgram } from "../../support/harness-process.ts";
import { envelope, FORMS, TASKS } from "./raw.ts";

test("over stdio a task outlives its server and is cancelled through the next one", async () => {
  const write = { id: "w1", name: "write_file", args: { file_path: "/workspace/a.txt", content: "a" } };
  const { env } = await openHome({ think: play({ write: [{ toolCalls: [write] }] }) });
  let id = 0;
  const open = async () => {
    const child = await startProgram([], env);
    return {
      child,
      rpc: async (method: string, params: object) => {
        id += 1;
        const mine = id;
        const _meta = envelope({ ...FORMS, extensions: TASKS });
        child.send({ id: mine, method, params: { ...params, _meta } });
        return (await child.receive((message) => message["id"] === mine))["result"];
      },
    };
  };
  const first = await open();
  const call = { name: "run_deep_agent", arguments: { task: "write a file" } };
  const { taskId } = CreateTaskResultV2Schema.parse(await first.rpc("tools/call", call));
  const task = async (server: typeof first) =>
    GetTaskResultV2Schema.parse(await server.rpc("tasks/get", { taskId }));
  await expect.poll(() => task(first)).toMatchObject({ status: "input_required" });
  first.child.process.stdin.end();
  await first.child.exited;
  const second = await open();
  expect(await task(second)).toMatchObject({ status: "input_required" });
  await second.rpc("tasks/cancel", { taskId });
  expect(await task(second)).toMatchObject({ status: "cancelled" });
});
