import { existsSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { connect, openHome, openStdio } from "../support/harness.ts";
import { play, wronglyAnswered } from "../support/harness-brain.ts";
import { deferred } from "../support/harness-deferred.ts";
import { CLIENT_KINDS } from "../support/clients.ts";
import { APPROVE, delegate, inWorkspace, person, runIdOf, untilStatus, writeFile } from "./support.ts";

/** Long enough for a lease of the killed process to run out. */
const RECOVERY = 60_000;
const SHORT_WINDOW = {
  DEEPAGENT_DELIVERY_WINDOW_WITHOUT_PROGRESS: "0.2",
  DEEPAGENT_DELIVERY_WINDOW_WITH_PROGRESS: "0.2",
};

test.each(CLIENT_KINDS)(
  "%s: a run outlives the server that was killed, and no finished call runs again",
  async (kind) => {
    let silent = true;
    const asked = deferred();
    const home = await openHome({
      env: SHORT_WINDOW,
      think: play({
        "Note and report": [
          {
            toolCalls: [{ name: "write_file", args: { file_path: "/memories/once.md", content: "first\n" } }],
          },
          { toolCalls: [delegate("look around")] },
          { text: "reported" },
        ],
        "look around": [
          // As long as the first process lives, the model keeps it waiting in the middle of a subagent.
          () => {
            asked.resolve();
            return silent ? new Promise(() => undefined) : { text: "nothing special" };
          },
        ],
      }),
    });
    const first = await openStdio(home);
    const before = await connect(first, kind);
    const runId = runIdOf(await before.call("run_deep_agent", { task: "Note and report" }));
    await asked.promise;
    process.kill(first.pid(), "SIGKILL");
    silent = false;

    const after = await connect(await openStdio(home), kind);
    const ended = await untilStatus(after, runId, "completed");
    expect(ended).toMatchObject({
      answer: "reported",
      agents: [{ status: "completed" }],
      files_changed: ["/memories/once.md"],
    });
    expect(
      home.brain.thoughts.filter(({ task, step }) => task === "Note and report" && step === 0),
    ).toHaveLength(1);
    expect(wronglyAnswered(home.brain)).toEqual([]);
  },
  RECOVERY,
);

test(
  "an approval that waited when the server was killed is decided in the next one",
  async () => {
    const home = await openHome({
      think: play({
        "Write one file": [{ toolCalls: [writeFile("/workspace/new.md", "new\n")] }, { text: "written" }],
      }),
    });
    const first = await openStdio(home);
    const before = await connect(first, "v2-modern");
    const waiting = await before.call("run_deep_agent", { task: "Write one file" });
    expect(waiting.structured).toMatchObject({ status: "input_required" });
    process.kill(first.pid(), "SIGKILL");

    const { answer, forms } = person({ "new.md": APPROVE });
    const after = await connect(await openStdio(home), "v2-modern", answer);
    expect(await untilStatus(after, runIdOf(waiting), "completed")).toMatchObject({ answer: "written" });
    expect(forms).toHaveLength(1);
    expect(inWorkspace(home, "new.md")).toBe("new\n");
  },
  RECOVERY,
);

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

test(
  "a server that ends parks its run, and the next one goes on with it",
  async () => {
    let silent = true;
    const asked = deferred();
    const home = await openHome({
      env: SHORT_WINDOW,
      think: play({
        "Think hard": [
          () => {
            asked.resolve();
            return silent ? new Promise(() => undefined) : { text: "thought" };
          },
        ],
      }),
    });
    const first = await openStdio(home);
    const before = await connect(first, "v2-modern");
    const runId = runIdOf(await before.call("run_deep_agent", { task: "Think hard" }));
    await asked.promise;
    const pid = first.pid();
    await before.close();
    await expect.poll(() => existsSync(`/proc/${pid}`), { timeout: 5000 }).toBe(false);
    silent = false;
    const after = await connect(await openStdio(home), "v2-modern");
    onTestFinished(() => after.close());
    expect(await untilStatus(after, runId, "completed")).toMatchObject({ answer: "thought" });
  },
  RECOVERY,
);
