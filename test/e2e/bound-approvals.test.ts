import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { MATRIX, openWorld } from "../support/harness.ts";
import { play } from "../support/harness-brain.ts";
import type { Form } from "../support/clients.ts";
import { APPROVE, inWorkspace, repeat, runIdOf, untilStatus } from "./support.ts";

describe.each(MATRIX)("$kind over $transport", ({ transport, kind }) => {
  const tags = transport === "stdio" ? ["long"] : [];

  test("an approved edit of a file that changed under the form is asked about again", { tags }, async () => {
    const change = {
      file_path: "/workspace/limits.txt",
      old_string: "timeout = 5",
      new_string: "timeout = 9",
    };
    const world = await openWorld(transport, {
      files: { "limits.txt": "timeout = 5\nretries = 1\n" },
      think: play({ "Raise the limit": [{ toolCalls: [{ name: "edit_file", args: change }] }, repeat] }),
    });
    const messages: string[] = [];
    const client = await world.connect(kind, (form: Form) => {
      messages.push(form.message);
      if (messages.length === 1) {
        writeFileSync(join(world.workspace, "limits.txt"), "timeout = 5\nretries = 1000\n");
      } else {
        expect(inWorkspace(world, "limits.txt")).toBe("timeout = 5\nretries = 1000\n");
      }
      return APPROVE;
    });
    const runId = runIdOf(await client.call("run_deep_agent", { task: "Raise the limit" }));
    const report = await untilStatus(client, runId, "completed");
    expect(messages).toHaveLength(2);
    expect(messages[0]).toContain("retries = 1\n");
    expect(messages[1]).toContain("retries = 1000");
    expect(messages[1]).toContain("Asked again");
    expect(inWorkspace(world, "limits.txt")).toBe("timeout = 9\nretries = 1000\n");
    expect(report["answer"]).toContain("Successfully replaced 1 occurrence(s)");
  });

  const tagsOfProgram = kind === "v2-modern" ? tags : ["long"];
  test("a program that is asked about again takes effect once", { tags: tagsOfProgram }, async () => {
    const source = `
      console.log('{"jsonrpc":"2.0","id":1,"result":{}}');
      await tools.write_file({ file_path: "/workspace/log.txt", content: "begun" });
      return tools.edit_file({ file_path: "/workspace/limits.txt", old_string: "timeout = 5", new_string: "timeout = 9" });`;
    const world = await openWorld(transport, {
      files: { "limits.txt": "timeout = 5\nretries = 1\n" },
      env: { DEEPAGENT_PROGRAMS: "true" },
      think: play({
        "Raise the limit": [{ toolCalls: [{ name: "run_program", args: { source } }] }, repeat],
      }),
    });
    const messages: string[] = [];
    const client = await world.connect(kind, (form: Form) => {
      messages.push(form.message);
      if (messages.length === 2) {
        writeFileSync(join(world.workspace, "limits.txt"), "timeout = 5\nretries = 1000\n");
        writeFileSync(join(world.workspace, "log.txt"), "changed by hand");
      }
      return APPROVE;
    });
    const runId = runIdOf(await client.call("run_deep_agent", { task: "Raise the limit" }));
    const report = await untilStatus(client, runId, "completed");
    expect(messages).toHaveLength(3);
    expect(messages[0]).toContain("log.txt");
    expect(messages[1]).toContain("retries = 1\n");
    expect(messages[2]).toContain("retries = 1000");
    expect(messages[2]).toContain("Asked again");
    expect(inWorkspace(world, "limits.txt")).toBe("timeout = 9\nretries = 1000\n");
    // The program was started three times, and wrote this file once.
    expect(inWorkspace(world, "log.txt")).toBe("changed by hand");
    expect(report["answer"]).toContain("Successfully replaced 1 occurrence(s)");
  });
});
