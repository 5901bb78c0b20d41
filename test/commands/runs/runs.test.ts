import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, onTestFinished, test } from "vitest";
import { visit } from "../../server/page/support.ts";
import { program } from "../../support/harness-stdio.ts";
import { startWireServer } from "../../support/wire-server.ts";
import { runBin } from "../built-bin.ts";
import { delegate } from "../terminal/scene.ts";
import { listed, terminalHome, waitingRun, type TerminalHome } from "../terminal-home.ts";

test("an empty data directory has no runs", async () => {
  const home = terminalHome();
  expect(await home.bin("runs", "list")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("no runs"),
  });
  expect(await listed(home)).toEqual([]);
});

test("list has the newest first, and show tells what an open approval would do", async () => {
  const home = terminalHome();
  const first = await waitingRun(home);
  const second = await waitingRun(home);
  expect((await listed(home)).map(({ run_id }) => run_id)).toEqual([second, first]);
  const short = await home.bin("runs", "list", "--limit", "1");
  expect(short.stdout).toContain(second);
  expect(short.stdout).not.toContain(first);
  expect(short.stdout).toContain("\n1 more run: --limit N lists up to 1000\n");
  expect((await home.bin("runs", "list", "--limit", "2")).stdout).not.toContain("more run");
  const { stdout } = await home.bin("runs", "show", second);
  expect(stdout).toContain("list every TODO");
  expect(stdout).toMatch(/\? Approval \S+:0\nThe main agent wants to create /);
  expect(stdout).toMatch(/^ +1 \+ # Report/m);
  const json = JSON.parse((await home.bin("runs", "show", second, "--json")).stdout) as object;
  expect(json).toMatchObject({
    run_id: second,
    status: "input_required",
    approvals: [{ status: "pending" }],
  });
});

test("list says of a run that a limit stopped that it did", async () => {
  const home = terminalHome();
  await home.bin("run", "list every TODO", "--yes", "-q", "--limits-model-calls", "2");
  const { stdout } = await home.bin("runs", "list");
  expect(stdout).toMatch(/^run_\S+ +.* stopped at a limit {2}list every TODO$/m);
  expect(stdout).not.toContain("completed");
});

test("list says how many runs others have, and the operator views those of all", async () => {
  const home = terminalHome();
  const theirs = await waitingRun(home, "alice@example.org");
  const none = await home.bin("runs", "list");
  expect(none.stdout).toMatch(
    /^You have no runs here\. 1 more run belongs to other users \(1 waiting for an answer\):\n .* runs list --all-principals /,
  );
  const mine = await waitingRun(home);
  const some = await home.bin("runs", "list");
  expect(some.stdout).toMatch(new RegExp(`^${mine} [^]*\\n1 more run belongs to other users \\(1 waiting`));
  expect(some.stdout).not.toContain(theirs);
  const all = await home.bin("runs", "list", "--all-principals");
  expect(all.stdout.split("\n")).toEqual([
    expect.stringMatching(new RegExp(`^${mine} .* local `)),
    expect.stringMatching(new RegExp(`^${theirs} .* alice@example\\.org `)),
    "",
  ]);
  const lines = (await home.bin("runs", "list", "--all-principals", "--json")).stdout.trimEnd().split("\n");
  expect(lines.map((line) => (JSON.parse(line) as { principal: string }).principal)).toEqual([
    "local",
    "alice@example.org",
  ]);
  for (const words of [["show"], ["answer", "--approve"], ["cancel"], ["tell", "Hurry."], ["watch"]]) {
    const [action = "", ...rest] = words;
    const refused = await home.bin("runs", action, theirs, ...rest);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(`The run ${theirs} belongs to alice@example.org, who uses a token.`);
    expect(refused.stderr).toContain(`runs show ${theirs} --all-principals`);
  }
  const shown = await home.bin("runs", "show", theirs.slice(0, 10), "--all-principals");
  expect(shown.stdout).toContain("? Approval");
  expect(await home.bin("runs", "cancel", theirs, "--all-principals")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--all-principals is for runs list and runs show."),
  });
});

test("a run is named by the beginning of its id, or as the last one", async () => {
  const home = terminalHome();
  const first = await waitingRun(home);
  const second = await waitingRun(home);
  const shown = async (word: string) => {
    const { stdout, stderr } = await home.bin("runs", "show", word, "--json");
    return stdout === "" ? stderr : (JSON.parse(stdout) as { run_id: string }).run_id;
  };
  expect(await shown("last")).toBe(second);
  expect(await shown(first.slice(0, 8))).toBe(first);
  expect(await shown(second.slice("run_".length, 8))).toBe(second);
  for (const word of ["run_", "run", first.slice(3, 7), "", `${first}x`]) {
    expect(await shown(word)).toContain("No run has the id");
  }
  expect((await home.bin("run", "--resume", "last", "--yes")).code).toBe(0);
  expect((await listed(home)).map(({ status }) => status)).toEqual(["completed", "input_required"]);
});

test("a list has local times and full ids in a pipe", async () => {
  const home = terminalHome();
  const runId = await waitingRun(home);
  const { stdout } = await runBin(["runs", "list"], {
    cwd: home.workspace,
    env: { ...home.env, TZ: "Pacific/Kiritimati" },
  });
  const there = new Date(Date.now() + 14 * 3_600_000).toISOString().slice(0, 10);
  expect(stdout).toContain(`${runId}  ${there} `);
});

test.each([["runs", "list"], ["run", "list every TODO", "--yes"], ["--help"]])(
  "%s %s ends quietly without a reader",
  async (...words) => {
    const home = terminalHome();
    await waitingRun(home);
    const child = await home.start(...words);
    child.stdout.destroy();
    let stderr = "";
    child.stderr.on("data", (chunk) => (stderr += String(chunk)));
    const [, signal] = await once(child, "close");
    expect(signal).toBeNull();
    expect(stderr).not.toMatch(/EPIPE|^ +at /m);
    expect((await home.bin("runs", "list")).stdout).not.toContain("  working  ");
  },
);

test("an answer is stored, and the run goes on with it", async () => {
  const home = terminalHome();
  const runId = await waitingRun(home);
  expect((await home.bin("runs", "answer", runId, "--approve-same")).stdout).toMatch(
    / approved: Create \/workspace\//,
  );
  const shown = (await home.bin("runs", "show", runId)).stdout;
  expect(shown).toMatch(/Approved for this run \(terminal\): any later write to \/workspace\//);
  expect((await home.bin("runs", "list")).stdout).toContain("  waiting  ");
  expect(await listed(home)).toMatchObject([{ run_id: runId, status: "waiting" }]);
  expect(readdirSync(home.workspace)).toEqual(["notes.md"]);
  expect((await home.bin("run", "--resume", runId)).code).toBe(0);
  expect(readdirSync(home.workspace)).toHaveLength(2);
});

test("a rule is saved with an answer if it was offered, and the next run needs no approval", async () => {
  const home = terminalHome();
  const runId = await waitingRun(home);
  const shown = (await home.bin("runs", "show", runId)).stdout;
  const [, rule = ""] = /^1 {2}(Edit\(.*\))$/m.exec(shown) ?? [];
  expect(shown).toContain("Always allow with one of these rules:");
  const always = (given: string) => home.bin("runs", "answer", runId, "--always", given);
  const other = await always("Bash(*)");
  expect([other.code, other.stderr]).toEqual([1, expect.stringContaining(`not offered. Possible: ${rule}`)]);
  expect((await home.bin("runs", "answer", runId, "--always", rule, "--approve")).code).toBe(2);
  expect((await always(rule)).stdout).toMatch(/ approved: Create \/workspace\//);
  expect((await home.bin("rules", "list")).stdout).toContain(rule);
  await home.bin("run", "--resume", runId);
  expect(readdirSync(home.workspace)).toHaveLength(2);
});

test("an edit is checked before it is stored, and is what is run", async () => {
  const home = terminalHome();
  const runId = await waitingRun(home);
  const bad = await home.bin("runs", "answer", runId, "--edit", '{"nonsense":1}');
  expect([bad.code, bad.stderr]).toEqual([1, expect.stringContaining("Invalid arguments for write_file")]);
  const args = { file_path: "/workspace/mine.md", content: "mine" };
  const both = await home.bin("runs", "answer", runId, "--approve", "--approve-same");
  expect(both.code).toBe(2);
  const good = await home.bin("runs", "answer", runId, "--edit", JSON.stringify(args));
  expect(good).toMatchObject({ code: 0, stdout: expect.stringContaining("edited") });
  await home.bin("run", "--resume", runId);
  expect(readFileSync(join(home.workspace, "mine.md"), "utf8")).toBe("mine");
});

test("a rejection passes the message on, and cannot be taken back", async () => {
  const home = terminalHome();
  const runId = await waitingRun(home);
  await home.bin("runs", "answer", runId, "--reject", "--message", "not here");
  const again = await home.bin("runs", "answer", runId, "--approve");
  expect(again.code).toBe(1);
  expect(again.stderr).toContain("has nothing waiting for approval");
  await home.bin("run", "--resume", runId);
  expect(readdirSync(home.workspace)).toEqual(["notes.md"]);
});

test("watch shows a run that has ended, as lines or as JSON", async () => {
  const home = terminalHome();
  await home.bin("run", "list every TODO", "--yes");
  const [row] = await listed(home);
  const { code, stdout, stderr } = await home.bin("runs", "watch", row?.run_id ?? "");
  expect([code, stderr]).toEqual([0, expect.stringContaining("completed")]);
  expect(stdout).toContain("TODO: buy tea");
  const lines = (await home.bin("runs", "watch", row?.run_id ?? "", "--json")).stdout.trimEnd().split("\n");
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ type: "run", status: "completed" });
});

test("watch waits with a run that nobody works on, until it ends", async () => {
  const home = terminalHome();
  const runId = await waitingRun(home);
  const child = await home.start("runs", "watch", runId, "--json");
  const exited = once(child, "exit");
  const told: Array<{ type: string; kind?: string; seq?: number; status?: string }> = [];
  for await (const line of createInterface({ input: child.stdout })) {
    told.push(JSON.parse(line) as (typeof told)[number]);
    if (told.at(-1)?.kind === "approval_requested") await home.bin("runs", "cancel", runId);
  }
  expect(await exited).toEqual([1, null]);
  const events = told.filter(({ type }) => type === "event");
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  expect(events.at(-1)?.kind).toBe("run_cancelled");
  expect(told.at(-1)).toMatchObject({ type: "run", status: "cancelled" });
});

test.each([
  [
    ["runs"],
    "runs needs an action: list, show, watch, answer, review, apply, discard, cancel, tell, prune, open, points",
  ],
  [["runs", "lst"], "did you mean list?"],
  [["runs", "toString"], 'no action "toString"'],
  [["runs", "show"], "needs the id of a run"],
  [["runs", "list", "extra"], 'Unexpected argument "extra"'],
  [["runs", "list", "--limit", "many"], "--limit must be a whole number"],
])("%j is refused with exit code 2", async (args, message) => {
  const { code, stdout, stderr } = await terminalHome().bin(...args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(message);
});

test("a run that is not over can be told something", async () => {
  const home = terminalHome();
  const runId = await waitingRun(home);
  expect(await home.bin("runs", "tell", runId, "Keep it short.")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("reads it at its next step"),
  });
  expect((await home.bin("runs", "cancel", runId)).code).toBe(0);
  const ended = await home.bin("run", "--resume", runId);
  expect(ended.stderr).toMatch(
    /has ended \(cancelled\)\. To continue its conversation:\n.* run --thread thr_\S+ .*"TASK"/,
  );
  const late = await home.bin("runs", "tell", runId, "One more thing.");
  expect([late.code, late.stderr]).toEqual([1, expect.stringContaining("ended (cancelled)")]);
  const nobody = await home.bin("runs", "tell", "run_none", "Hello.");
  expect([nobody.code, nobody.stderr]).toEqual([1, expect.stringContaining("No run has the id")]);
});

test("show draws a cancelled run with the subagents that were cancelled with it", async () => {
  const write = { name: "write_file", args: { file_path: "/workspace/a.md", content: "a" } };
  const server = await startWireServer(({ tools }) =>
    tools.includes("task") ? delegate(["Write a note"]) : { toolCalls: [write] },
  );
  onTestFinished(() => server.close());
  const home = terminalHome();
  const env = { ...home.env, ...server.env("openai"), DEEPAGENT_MODEL: "openai:gpt-5" };
  const asked = await runBin(["run", "Go"], { cwd: home.workspace, env, program: await program() });
  expect(asked.stderr).toContain("is waiting for approval");
  expect((await home.bin("runs", "cancel", "last")).code).toBe(0);
  const { code, stdout } = await home.bin("runs", "show", "last");
  expect([code, stdout]).toEqual([0, expect.stringContaining("└─ ■ Write a note")]);
});

test("old runs are forgotten as configured, and none without a limit", async () => {
  const home = terminalHome();
  const runId = await waitingRun(home);
  expect(await home.bin("runs", "prune")).toMatchObject({ code: 2 });
  const { stdout } = await home.bin("runs", "prune", "--retention-days", "1");
  expect(stdout).toBe("Deleted 0 runs and 0 threads.\n");
  const limits = ["--retention-days", "7", "--retention-megabytes", "1"];
  const dry = await home.bin("runs", "prune", "--dry-run", ...limits);
  expect(dry.stdout.split("\n")).toEqual([
    "Would delete 0 runs that ended more than 7 days ago.",
    expect.stringMatching(/^0\.\d MB stored, including memories, within the limit of 1\.0 MB\.$/),
    "Unfinished runs (1) and memories are kept. Nothing was changed.",
    "",
  ]);
  expect((await home.bin("runs", "prune", "--orphans")).stdout).toBe(stdout);
  expect((await listed(home)).map(({ run_id }) => run_id)).toEqual([runId]);
});

test.each(["show", "answer", "open"])("%s says so when there is no such run", async (action) => {
  const { code, stderr } = await terminalHome().bin("runs", action, "run_none");
  expect([code, stderr]).toEqual([1, expect.stringContaining('No run has the id "run_none"')]);
});

test("an answer from the terminal lets a run of a server that is working go on", async () => {
  const home = terminalHome();
  const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode: "legacy" } });
  await client.connect(await serverOf(home));
  onTestFinished(() => client.close());
  const call = async (name: string, args: object) =>
    (await client.callTool({ name, arguments: { ...args } })).structuredContent as {
      run_id: string;
      status: string;
      page?: string;
    };
  const started = await call("run_deep_agent", { task: "list every TODO" });
  expect(started).toMatchObject({ status: "input_required", page: expect.stringMatching(/^http:\/\/127/) });
  // The link that the model has been given shows the run and nothing to decide with.
  const visitor = await visit(started.page ?? "");
  expect((await visitor.get(visitor.path)).body).toContain(` runs open ${started.run_id} --data-dir `);
  await home.bin("runs", "answer", started.run_id, "--approve");
  const ended = await call("check_deep_agent", { run_id: started.run_id, wait_seconds: 20 });
  expect(["working", "completed"]).toContain(ended.status);
  const watched = await home.bin("runs", "watch", started.run_id);
  expect(watched.code).toBe(0);
});

test("the page can be switched off", async () => {
  const home = terminalHome();
  const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode: "legacy" } });
  await client.connect(await serverOf(home, { DEEPAGENT_PAGE: "false" }));
  onTestFinished(() => client.close());
  const result = await client.callTool({ name: "run_deep_agent", arguments: { task: "list every TODO" } });
  expect(result.structuredContent).toMatchObject({ status: "input_required" });
  expect(result.structuredContent).not.toHaveProperty("page");
});

test.each<[string, string[]]>([
  ["stdio", []],
  ["HTTP", ["--http", "--port", "0", "--page"]],
])("open finds the page of a server over %s that no run has needed yet", async (_how, flags) => {
  const home = terminalHome();
  const dataDir = home.env["DEEPAGENT_DATA_DIR"] ?? "";
  if (flags.length > 0) await home.start("serve", ...flags);
  else {
    const client = new Client({ name: "test", version: "1.0.0" });
    await client.connect(await serverOf(home));
    onTestFinished(() => client.close());
  }
  const note = (): string => {
    const found = readdirSync(dataDir).includes("page.json");
    return found ? readFileSync(join(dataDir, "page.json"), "utf8") : "";
  };
  await expect.poll(note, { timeout: 60_000 }).toContain("http://127.0.0.1:");
  const { code, stdout } = await home.bin("open", "--no-browser");
  expect(code).toBe(0);
  expect(note()).toContain(new URL(stdout.split("\n", 1)[0] ?? "").origin);
});

test("open serves a page that decides, until it is told to end", async () => {
  const home = terminalHome();
  const runId = await waitingRun(home);
  const child = await home.start("runs", "open", runId, "--no-browser");
  const exited = once(child, "exit");
  const [link] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  const visitor = await visit(link);
  const fields = { ...(await visitor.form()), decision: "approve" };
  expect((await visitor.post(`${visitor.path}/reply`, fields)).status).toBe(303);
  child.kill("SIGTERM");
  expect(await exited).toEqual([0, null]);
  expect((await home.bin("runs", "answer", runId)).stderr).toContain("has nothing waiting for approval");
});

async function serverOf({ workspace, env }: TerminalHome, more: Record<string, string> = {}) {
  return new StdioClientTransport({
    command: process.execPath,
    args: [await program()],
    cwd: workspace,
    env: { ...env, ...more, DEEPAGENT_LOG_LEVEL: "silent" },
    stderr: "ignore",
  });
}

test("points lists the steps of a conversation, and run begins a new one at a point", async () => {
  const home = terminalHome();
  const runId = await waitingRun(home);
  const { stdout } = await home.bin("runs", "points", runId, "--json");
  const points = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, string>);
  expect(points[0]).toMatchObject({ run_id: runId, summary: expect.stringMatching(/^You: .*TODO/) });
  const point = points[0]?.["thread_id"] ?? "";
  expect((await home.bin("runs", "points", runId)).stdout).toContain(`${point}  `);
  const forked = await home.bin("run", "--thread", point, "list every TODO", "--yes", "--json");
  expect(forked.code).toBe(0);
  expect(forked.stdout).toContain(`"forked_from":"${point}"`);
  const shown = JSON.parse((await home.bin("runs", "show", runId, "--json")).stdout) as object;
  expect(shown).toMatchObject({ status: "input_required" });
  expect((await home.bin("runs", "points", "run_unknown")).code).toBe(1);
});
