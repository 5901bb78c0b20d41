import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runBin } from "../built-bin.ts";
import { listed, terminalHome, waitingRun } from "../terminal-home.ts";

test("--yes works to the end; a pipe gets the answer, and standard error the rest", async () => {
  const home = terminalHome();
  const { code, stdout, stderr } = await home.bin("run", "list every TODO", "--yes");
  expect(code).toBe(0);
  expect(stderr).toMatch(/plan: \d todos/);
  expect(stderr).toContain("✔ approved (--yes): Create /workspace/");
  expect(stderr).toContain("── Files changed");
  expect(stderr).toMatch(/✔ run_\S+ completed · [\d,]+ tokens in/);
  expect(stdout).toContain("TODO: buy tea");
  expect(stdout).not.toMatch(/plan:|── |tokens in|run_/);
  expect(readdirSync(home.workspace)).toHaveLength(2);
});

test("--quiet leaves the answer alone, and says what a limit stopped, with an exit code of its own", async () => {
  const home = terminalHome();
  const whole = await home.bin("run", "list every TODO", "--yes", "--quiet");
  expect([whole.code, whole.stderr]).toEqual([0, ""]);
  expect(whole.stdout).toContain("TODO: buy tea");
  const cut = await home.bin("run", "list every TODO", "--yes", "-q", "--limits-model-calls", "2");
  expect(cut.code).toBe(3);
  expect(cut.stderr.trimStart()).toMatch(/^── Stopped at a limit \(model calls\)\n/);
  expect(cut.stderr).not.toContain("✔");
  expect(cut.stdout).toContain("the limit of 2 model calls");
});

test("where nobody can be asked, a run stops for a decision, and goes on when it is taken up again", async () => {
  const home = terminalHome();
  const { code, stderr } = await home.bin("run", "list every TODO");
  const [row] = await listed(home);
  const runId = row?.run_id ?? "";
  expect([code, row?.status]).toEqual([1, "input_required"]);
  expect(stderr).toContain(` runs answer ${runId} --data-dir `);
  expect(readdirSync(home.workspace)).toEqual(["notes.md"]);
  const resumed = await home.bin("run", "--resume", runId, "--yes");
  expect(resumed.code).toBe(0);
  expect(await listed(home)).toMatchObject([{ run_id: runId, status: "completed" }]);
  expect(readdirSync(home.workspace)).toHaveLength(2);
});

test("--goal has the answer judged; a person accepts what the judge cannot settle", async () => {
  const home = terminalHome();
  const goal = ["--goal", "Every TODO is listed", "--goal", "Nothing else is"];
  const { code, stderr } = await home.bin("run", "list every TODO", "--yes", ...goal);
  expect(code).toBe(1);
  expect(stderr).toContain("── Goal: 0 of 2 criteria met (round 1 of 5)");
  expect(stderr).toContain("? uncertain: Every TODO is listed\n  The offline model follows fixed rules");
  expect((await home.bin("runs", "answer", "last", "--field", "decision=accept")).code).toBe(0);
  const ended = await home.bin("run", "--resume", "last");
  expect(ended.code).toBe(0);
  expect(ended.stderr).toContain("── Goal accepted by a person");
  expect(ended.stdout).toContain("TODO: buy tea");
  const refused = await home.bin("run", "list every TODO", "--goal", "");
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain("Criterion 1 of the goal is empty");
});

test("--json writes every event once and the run last, and nothing else", async () => {
  const home = terminalHome();
  const { code, stdout } = await home.bin("run", "list every TODO", "--yes", "--json");
  const lines = stdout.trimEnd().split("\n");
  const values = lines.map((line) => JSON.parse(line) as { type: string; seq?: number; kind?: string });
  const events = values.slice(0, -1);
  expect(code).toBe(0);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index + 1));
  expect(events.at(-1)?.kind).toBe("run_completed");
  expect(values.at(-1)).toMatchObject({ type: "run", status: "completed" });
});

test.each([["-"], []])("the task is read from standard input for %j", async (...words) => {
  const home = terminalHome();
  const { code, stdout } = await runBin(["run", ...words, "--yes", "--json"], {
    cwd: home.workspace,
    env: home.env,
    input: "list every TODO\nin this folder\n",
  });
  expect(code).toBe(0);
  expect(JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "")).toMatchObject({
    task: "list every TODO\nin this folder\n",
    status: "completed",
  });
});

test("a run that ended is shown as it ended, and is not worked on again", async () => {
  const home = terminalHome();
  const runId = await waitingRun(home);
  await home.bin("runs", "cancel", runId, "--message", "wrong \u001b[31mfolder");
  const { code, stdout, stderr } = await home.bin("run", "--resume", runId, "--yes");
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toContain("wrong \\u001b[31mfolder");
  expect(readdirSync(home.workspace)).toEqual(["notes.md"]);
});

test.each([
  [["run"], 2, "Give a task"],
  [["run", " "], 2, "Give a task"],
  [["run", "a", "--resume", "b"], 2, "Give a task"],
  [["run", "two", "words"], 2, "Quote arguments that contain spaces"],
  [["run", "--resume", "run_x"], 1, 'No run has the id "run_x"'],
  [["run", "a", "--thread", "thr_x"], 1, "thr_x"],
])("%j ends with %i and says why", async (args, exit, message) => {
  const home = terminalHome();
  const { code, stdout, stderr } = await home.bin(...args);
  expect({ code, stdout }).toEqual({ code: exit, stdout: "" });
  expect(stderr).toContain(message);
  expect(stderr).not.toMatch(/^\s+at /m);
  if (exit === 2) expect(existsSync(join(home.env["DEEPAGENT_DATA_DIR"] ?? "", "deepagent.db"))).toBe(false);
});
