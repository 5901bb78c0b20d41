import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openDatabase } from "../../../src/storage/sqlite/database.ts";
import { type TerminalHome, listed, terminalHome } from "../terminal-home.ts";

const MINUTE = 60_000;

interface Shown {
  schedule_id: string;
  name: string;
  next: string[];
  runs: { run_id: string; status: string; due_at?: string }[];
  skips: { from: string; to: string; reason: string }[];
}

const shown = async (home: TerminalHome, name: string): Promise<Shown> =>
  JSON.parse((await home.bin("schedule", "show", name, "--json")).stdout) as Shown;

test("a schedule is added, listed, shown, paused and removed, by its name or the beginning of its id", async () => {
  const home = terminalHome();
  expect((await home.bin("schedule", "list")).stdout).toMatch(
    /^There are no schedules here\. .*schedule add --help/,
  );
  const flags = "--name notes --time-zone Europe/Berlin --catch-up all --catch-up-limit 3".split(" ");
  const added = await home.bin("schedule", "add", "0 7 * * mon-fri", "Read the notes", ...flags);
  expect(added).toMatchObject({ code: 0, stderr: "" });
  expect(added.stdout).toMatch(
    /^Added schedule notes \(sch_.{8}\): at 07:00, Monday to Friday \(Europe\/Berlin\)\.\nNext times:\n( {2}(Mon|Tue|Wed|Thu|Fri) \d.* 07:00\n){3}Runs start while a server works in this folder/,
  );
  expect(added.stdout).toContain(`serve --http --workspace ${home.workspace} --model offline`);
  const { schedule_id: id, next } = await shown(home, "notes");
  expect(next).toHaveLength(3);
  const line = (await home.bin("schedule", "list")).stdout;
  expect(line).toMatch(new RegExp(`^${id}  .* 07:00 +no run yet  notes: at 07:00, Monday to Friday \\(`));
  expect((await home.bin("schedule", "pause", id.slice(4, 12))).stdout).toBe("Schedule notes is paused.\n");
  expect((await home.bin("schedule", "show", id)).stdout).toMatch(
    /Missed runs are started one after the other\. At most 3\. Runs do not overlap\.\nIt is paused\.\nNo run yet\.\n$/,
  );
  expect((await home.bin("schedule", "resume", "notes")).stdout).toMatch(
    /^Schedule notes continues\. Next: .* 07:00\.\n$/,
  );
  const edited = await home.bin("schedule", "edit", "notes", "--cron", "30 8 * * *", "--overlap");
  expect(edited.stdout).toMatch(
    /^Changed schedule notes: at 08:30 every day \(Europe\/Berlin\)\.\nNext times:\n( {2}.* 08:30\n){3}$/,
  );
  await home.bin("schedule", "edit", "notes", "--task", "Read all", "--no-overlap");
  const whole = JSON.parse((await home.bin("schedule", "show", "notes", "--json")).stdout) as object;
  expect(whole).toMatchObject({ task: "Read all", expression: "30 8 * * *", overlap: false });
  expect((await home.bin("schedule", "remove", "notes")).stdout).toContain("is removed");
  const gone = await home.bin("schedule", "show", "notes");
  expect(gone).toMatchObject({ code: 1, stdout: "" });
  expect(gone.stderr).toMatch(
    /^deepagent-mcp: No schedule is called "notes"\. .*schedule list.* shows them\.\n$/,
  );
});

test("model, limits and goal are chosen for the runs of a schedule, changed and taken back", async () => {
  const home = terminalHome();
  const settings = { DEEPAGENT_MODEL: "openai:gpt-4.1", OPENAI_API_KEY: "x", ANTHROPIC_API_KEY: "x" };
  Object.assign(home.env, settings, { DEEPAGENT_ALLOWED_MODELS: "anthropic:claude-haiku-4-5" });
  const flags =
    "--model anthropic:claude-haiku-4-5 --limits-cost-usd 0.5 --changes propose --name notes --goal".split(
      " ",
    );
  const added = await home.bin("schedule", "add", "@daily", "Read", ...flags, "A report");
  expect(added).toMatchObject({ code: 0, stderr: "" });
  const words =
    "For each run: model anthropic:claude-haiku-4-5, limit $0.50, changes are proposed.\nA judge checks:\n  A report\n";
  expect(added.stdout).toContain(words);
  expect(added.stdout).not.toContain("--model offline");
  expect((await home.bin("schedule", "show", "notes")).stdout).toContain(words);
  const changes = ["--no-model", "--limits-work-time", "90", "--no-goal"];
  const edited = await home.bin("schedule", "edit", "notes", ...changes);
  expect(edited.stdout).toContain("For each run: limit $0.50, 1m 30s of work, changes are proposed.\n");
  const json = JSON.parse((await home.bin("schedule", "show", "notes", "--json")).stdout) as object;
  expect(json).toMatchObject({ limits: { cost_usd: 0.5, work_seconds: 90 } });
  expect(json).not.toHaveProperty("model");
  expect(json).not.toHaveProperty("goal");
  const other = await home.bin("schedule", "edit", "notes", "--model", "anthropic:other");
  expect(other).toMatchObject({ code: 2, stdout: "" });
  expect(other.stderr).toContain(
    "does not allow the model 'anthropic:other'. Choose openai:gpt-4.1 or anthropic:",
  );
  expect((await home.bin("schedule", "run", "notes")).code).toBe(0);
  const run = JSON.parse((await home.bin("runs", "show", "last", "--json")).stdout) as object;
  expect(run).toMatchObject({ limits: { cost_usd: 0.5, work_seconds: 90 } });
});

test.each([
  [["schedule"], /schedule needs an action: add, edit, list/],
  [["schedule", "ad"], /did you mean add\?/],
  [["schedule", "add", "0 7 * * *"], /needs a cron expression and a task, both in quotes/],
  [
    ["schedule", "add", "0", "7", "*", "*", "*", "Task"],
    /Unexpected argument "\*" for schedule add\. Quote arguments that contain spaces\./,
  ],
  [["schedule", "add", "0 25 * * *", "Task"], /"0 25 \* \* \*" is not a cron expression: .*Give five fields/],
  [["schedule", "add", "0 7 * * *", " "], /Give a task/],
  [["schedule", "add", "0 7 * * *", "Task", "--time-zone", "Moon"], /There is no time zone "Moon"/],
  [
    ["schedule", "add", "0 7 * * *", "Task", "--catch-up", "some"],
    /--catch-up must be one of skip, one, all/,
  ],
  [
    ["schedule", "add", "0 7 * * *", "Task", "--catch-up-limit", "0"],
    /The limit must be a whole number from 1 to 100/,
  ],
  [["schedule", "add", "0 7 * * *", "Task", "--cron", "0 8 * * *"], /--cron is for schedule edit only/],
  [["schedule", "add", "0 7 * * *", "Task", "--limits-tokens", "many"], /The limit tokens is not valid/],
  [
    ["schedule", "add", "0 7 * * *", "Task", "--model", "x:y"],
    /does not allow the model 'x:y'\. Choose offline/,
  ],
  [["schedule", "add", "0 7 * * *", "Task", "--changes", "some"], /--changes must be direct or propose/],
  [["schedule", "add", "0 7 * * *", "Task", "--no-goal"], /--no-goal is for schedule edit only/],
  [
    ["schedule", "add", "0 7 * * *", "Task", "--goal", "a", "--goal", "a"],
    /Criterion 2 of the goal is given twice/,
  ],
  [["schedule", "edit"], /schedule edit needs the name of a schedule/],
  [["schedule", "show"], /schedule show needs the name of a schedule/],
  [["schedule", "run", "x", "--all-principals"], /--all-principals is not for schedule run/],
])("%j is refused with one line that says what to do", async (words, told) => {
  const { code, stdout, stderr } = await terminalHome().bin(...words);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(/^deepagent-mcp: [^\n]*\n$/);
  expect(stderr).toMatch(told);
});

test("a server starts what is due, what was missed counts once, and the run says who started it", async () => {
  const home = terminalHome();
  const now = Date.now();
  const add = await home.bin("schedule", "add", "* * * * *", "list every TODO", "--name", "todos", "--json");
  const { schedule_id: id } = JSON.parse(add.stdout) as Shown;
  // As if it had been due for ten minutes while no server was there.
  const database = openDatabase(join(home.env["DEEPAGENT_DATA_DIR"] ?? "", "deepagent.db"));
  const dueAt = now - (now % MINUTE) - 10 * MINUTE;
  database.prepare("UPDATE schedules SET due_at = ?").run(dueAt);
  database.close();
  expect((await home.bin("schedule", "list")).stdout).toContain("due since");
  const server = await home.start("work");
  await expect
    .poll(async () => (await shown(home, "todos")).runs.length, { timeout: 30_000 })
    .toBeGreaterThan(0);
  const { runs, skips } = await shown(home, "todos");
  expect(skips.at(-1)).toMatchObject({ from: new Date(dueAt).toISOString(), reason: "too_old" });
  const first = runs.at(-1);
  expect(Date.parse(first?.due_at ?? "")).toBeGreaterThan(Date.parse(skips.at(-1)?.to ?? ""));
  server.kill("SIGTERM");
  await once(server, "exit");
  await home.bin("schedule", "pause", "todos");
  expect(await listed(home)).toContainEqual(
    expect.objectContaining({ run_id: first?.run_id, schedule: "todos" }),
  );
  expect((await home.bin("runs", "list")).stdout).toContain("schedule todos: list every TODO");
  const { stdout } = await home.bin("runs", "show", first?.run_id ?? "");
  expect(stdout).toContain("Started by schedule todos");
  const json = JSON.parse((await home.bin("runs", "show", first?.run_id ?? "", "--json")).stdout) as object;
  expect(json).toMatchObject({ schedule: { schedule_id: id, name: "todos", due_at: first?.due_at } });
  // The run waits for a person: without overlap none is started beside it.
  const again = await home.bin("schedule", "run", "todos");
  expect(again).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringContaining("does not allow runs to overlap"),
  });
});

test("two servers that are killed again and again start each missed time once", async () => {
  const home = terminalHome();
  const missed = 24;
  const add = ["add", "* * * * *", "list every TODO", "--name", "todos", "--overlap"];
  await home.bin("schedule", ...add, "--catch-up", "all", "--catch-up-limit", String(missed));
  const database = openDatabase(join(home.env["DEEPAGENT_DATA_DIR"] ?? "", "deepagent.db"));
  const now = Date.now();
  database.prepare("UPDATE schedules SET due_at = ?").run(now - (now % MINUTE) - (missed - 1) * MINUTE);
  const started = (): number[] => {
    const rows = database.prepare("SELECT occurrence FROM runs WHERE occurrence IS NOT NULL").all();
    return rows.map((row) => (row as { occurrence: number }).occurrence); // as the query names it
  };
  // Each life ends at another moment after the first run of it has begun.
  for (let life = 0; started().length < missed && life < 60; life += 1) {
    const servers = await Promise.all([home.start("work"), home.start("work")]);
    const before = started().length;
    await expect.poll(() => started().length, { timeout: 60_000, interval: 5 }).toBeGreaterThan(before);
    await new Promise((resolve) => setTimeout(resolve, (life * 7) % 40));
    const ends = servers.map((server) => once(server, "exit"));
    for (const server of servers) server.kill("SIGKILL");
    await Promise.all(ends);
  }
  const times = started();
  expect(new Set(times).size).toBe(times.length);
  const minutes = times.map((time) => time / MINUTE).toSorted((one, other) => one - other);
  // None was left out: each follows the one before.
  expect(minutes.slice(1).map((minute, index) => minute - (minutes[index] ?? 0))).toEqual(
    Array.from({ length: minutes.length - 1 }, () => 1),
  );
  expect(times.length).toBeGreaterThanOrEqual(missed);
  database.close();
});
