// @module-tag long
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connect, openHome, openStdio } from "../support/harness.ts";
import { play, wronglyAnswered } from "../support/harness-brain.ts";
import { deferred } from "../support/harness-deferred.ts";
import { APPROVE, delegate, inWorkspace, person, runIdOf, untilStatus, writeFile } from "./support.ts";

const SHORT_WINDOW = { DEEPAGENT_DELIVERY_WINDOW: "0.2" };

/** Starts a run, kills its server while the model of a subagent keeps it waiting, and finds it in the next. */
async function survives(): Promise<void> {
  let silent = true;
  const asked = deferred();
  const home = await openHome({
    env: SHORT_WINDOW,
    think: play({
      "Note and report": [
        { toolCalls: [writeFile("/memories/once.md", "first\n")] },
        { toolCalls: [delegate("look around")] },
        { text: "reported" },
      ],
      "look around": [
        () => {
          asked.resolve();
          return silent ? { fault: "hang" } : { text: "nothing special" };
        },
      ],
    }),
  });
  const first = await openStdio(home);
  const before = await connect(first, "v2-legacy");
  const runId = runIdOf(await before.call("run_deep_agent", { task: "Note and report" }));
  await asked.promise;
  process.kill(first.pid(), "SIGKILL");
  silent = false;

  const after = await connect(await openStdio(home), "v2-modern");
  const ended = await untilStatus(after, runId, "completed");
  expect(ended).toMatchObject({
    answer: "reported",
    agents: [{ status: "completed" }],
    files_changed: ["/memories/once.md"],
  });
  const begun = home.brain.thoughts.filter(
    ({ task, step }) => task.includes("Note and report") && step === 0,
  );
  expect(begun).toHaveLength(1);
  expect(wronglyAnswered(home.brain)).toEqual([]);
  expect(home.brain.refusals).toEqual([]);
}

/** Kills the server of a run that waits for a person, and lets a person decide in the next one. */
async function staysOpen(): Promise<void> {
  const home = await openHome({
    think: play({
      "Write one file": [{ toolCalls: [writeFile("/workspace/new.md", "new\n")] }, { text: "written" }],
    }),
  });
  const first = await openStdio(home);
  const before = await connect(first, "v1");
  const waiting = await before.call("run_deep_agent", { task: "Write one file" });
  expect(waiting.structured).toMatchObject({ status: "input_required" });
  process.kill(first.pid(), "SIGKILL");

  const { answer, forms } = person({ "new.md": APPROVE });
  const after = await connect(await openStdio(home), "v2-modern", answer);
  expect(await untilStatus(after, runIdOf(waiting), "completed")).toMatchObject({ answer: "written" });
  expect(forms).toHaveLength(1);
  expect(inWorkspace(home, "new.md")).toBe("new\n");
}

/** Kills the server of a run that follows instruction files, one of which changes before the next server goes on. */
async function keepsInstructions(): Promise<void> {
  let isSilent = true;
  const asked = deferred();
  const home = await openHome({
    env: SHORT_WINDOW,
    files: { "AGENTS.md": "MARK one.", "sub/AGENTS.md": "MARK below.", "sub/a.txt": "a\n" },
    think: play({
      "Read the file": [
        { toolCalls: [{ name: "read_file", args: { file_path: "/workspace/sub/a.txt" } }] },
        () => {
          asked.resolve();
          return isSilent ? { fault: "hang" } : { text: "read" };
        },
        { text: "read again" },
      ],
    }),
  });
  const first = await openStdio(home);
  const started = await (await connect(first, "v2-legacy")).call("run_deep_agent", { task: "Read the file" });
  await asked.promise;
  process.kill(first.pid(), "SIGKILL");
  isSilent = false;
  writeFileSync(join(home.workspace, "AGENTS.md"), "MARK two.");

  const after = await connect(await openStdio(home), "v2-modern");
  const { thread_id } = await untilStatus(after, runIdOf(started), "completed");
  const [before, killed, resumed] = home.brain.thoughts.map(({ request: { messages } }) => {
    const [system, ...others] = messages.map((message) =>
      [message, ...message.toolResults].map(({ text }) => text).join(),
    );
    return {
      blocks: system?.match(/<project_instructions>[^]*?<\/project_instructions>/g),
      others: others.join(),
    };
  });
  expect(before?.blocks).toEqual([expect.stringContaining("MARK one.")]);
  expect([killed?.blocks, resumed?.blocks]).toEqual([before?.blocks, before?.blocks]);
  expect(resumed?.others.match(/MARK below\./g)).toHaveLength(1);
  expect(resumed?.others).toBe(killed?.others);

  // The next run of the conversation reads the files again.
  const next = await after.call("run_deep_agent", { task: "And again", thread_id });
  await untilStatus(after, runIdOf(next), "completed");
  const system = home.brain.thoughts.at(-1)?.request.messages[0]?.text ?? "";
  expect([system.includes("MARK two."), system.includes("MARK one.")]).toEqual([true, false]);
}

// All at once: most of the time is spent waiting for the lease of a killed server to run out.
test("a run outlives the server that was killed, no finished call runs again, an open approval stays open, and its instructions stay the same", async () => {
  await Promise.all([survives(), staysOpen(), keepsInstructions()]);
});

test("a run is checked, decided and cancelled from another process", async () => {
  const home = await openHome({
    think: play({
      "Write one file": [{ toolCalls: [writeFile("/workspace/one.md", "1\n")] }, { text: "written" }],
      "Write another file": [{ toolCalls: [writeFile("/workspace/two.md", "2\n")] }, { text: "written" }],
    }),
  });
  const worker = await connect(await openStdio(home), "v1");
  const one = runIdOf(await worker.call("run_deep_agent", { task: "Write one file" }));
  const two = runIdOf(await worker.call("run_deep_agent", { task: "Write another file" }));
  const { answer } = person({ "one.md": APPROVE });
  const other = await connect(await openStdio(home), "v2-modern", answer);
  expect(await untilStatus(other, one, "completed")).toMatchObject({ answer: "written" });
  expect(inWorkspace(home, "one.md")).toBe("1\n");
  await other.call("cancel_deep_agent", { run_id: two });
  expect(await untilStatus(worker, two, "cancelled")).toMatchObject({ approvals: [] });
  expect(inWorkspace(home, "two.md")).toBeUndefined();
});
