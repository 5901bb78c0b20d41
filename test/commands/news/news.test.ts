import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { z } from "zod";
import { startReceiver } from "../../news/receiver.ts";
import { type TerminalHome, listed, terminalHome } from "../terminal-home.ts";

const SECRET = `whsec_${Buffer.alloc(24, 9).toString("base64")}`;

function configured(news: object): TerminalHome {
  const home = terminalHome();
  const file = join(home.workspace, "..", "config.json");
  writeFileSync(file, JSON.stringify({ news }));
  Object.assign(home.env, { DEEPAGENT_CONFIG: file, NEWS_SECRET: SECRET, DEEPAGENT_APPROVALS_WRITE: "none" });
  return home;
}

const Entry = z.object({
  number: z.number(),
  state: z.string(),
  channel: z.string(),
  event: z.string(),
  run_id: z.string(),
  attempts: z.number(),
  problem: z.string().optional(),
});
const entries = async (home: TerminalHome) =>
  (await home.bin("news", "list", "--json")).stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => Entry.parse(JSON.parse(line)));

test("a run in the terminal tells a webhook and a command that it has finished", async () => {
  const receiver = await startReceiver();
  const keep = "require('fs').writeFileSync(process.argv[1], require('fs').readFileSync(0))";
  const home = configured({
    hook: { kind: "webhook", url: receiver.url, secretVariable: "NEWS_SECRET" },
    script: {
      kind: "command",
      command: [process.execPath, "-e", keep, "told.json"],
      events: ["run.finished"],
    },
  });
  expect(await home.bin("run", "list every TODO")).toMatchObject({ code: 0 });
  const [run] = await listed(home);
  const [{ headers, body } = { headers: {}, body: "" }, ...others] = receiver.received;
  expect(others).toEqual([]);
  expect(new Webhook(SECRET).verify(body, headers as Record<string, string>)).toMatchObject({
    type: "run.finished",
    data: { run_id: run?.run_id, name: "list every TODO", summary: "finished" },
  });
  expect(JSON.parse(readFileSync(join(home.workspace, "told.json"), "utf8"))).toEqual(JSON.parse(body));
  expect((await home.bin("news")).stdout).toBe("All messages were delivered.\n");
  expect((await home.bin("doctor", "--offline")).stdout).toMatch(/News +2 channels/);
});

test("what a killed process was about to send, the next one sends", async () => {
  const hang = "require('fs').writeFileSync('begun', ''); setInterval(() => {}, 1000)";
  const home = configured({ script: { kind: "command", command: [process.execPath, "-e", hang] } });
  const child = await home.start("run", "list every TODO");
  const begun = join(home.workspace, "begun");
  await expect.poll(() => existsSync(begun), { timeout: 30_000 }).toBe(true);
  child.kill("SIGKILL");
  await once(child, "exit");
  const [left, ...others] = await entries(home);
  expect(others).toEqual([]);
  expect(left).toMatchObject({ state: "waiting", channel: "script", event: "run.finished", attempts: 1 });
  const number = String(left?.number);

  // Another program is behind the channel now, and a person does not want to wait for the claim to run out.
  mkdirSync(join(home.workspace, "told"));
  const keep = "require('fs').writeFileSync('told/' + process.pid, require('fs').readFileSync(0))";
  const script = { kind: "command", command: [process.execPath, "-e", keep] };
  writeFileSync(home.env["DEEPAGENT_CONFIG"] ?? "", JSON.stringify({ news: { script } }));
  expect((await home.bin("news", "retry", number)).stdout).toBe(
    "1 message will be sent again by a server that has the channel.\n",
  );
  expect(await home.bin("run", "list every TODO again")).toMatchObject({ code: 0 });
  const told = readdirSync(join(home.workspace, "told")).map((name) =>
    z
      .object({ data: z.object({ run_id: z.string() }) })
      .parse(JSON.parse(readFileSync(join(home.workspace, "told", name), "utf8"))),
  );
  expect(told.map(({ data }) => data.run_id).toSorted()).toEqual(
    (await listed(home)).map(({ run_id }) => run_id).toSorted(),
  );
  expect(await entries(home)).toEqual([]);
});

test("news that nobody took are listed, retried and dropped; doctor tells of them", async () => {
  const receiver = await startReceiver();
  receiver.statuses = [410];
  const home = configured({ hook: { kind: "slack", url: `${receiver.url}/services/hunter2` } });
  const run = await home.bin("run", "list every TODO");
  expect(run.stdout + run.stderr).not.toContain("hunter2");
  const [dead] = await entries(home);
  const problem = `${new URL(receiver.url).host} answered 410`;
  expect(dead).toMatchObject({ state: "given_up", channel: "hook", attempts: 1, problem });
  expect((await home.bin("news", "list")).stdout).toMatch(
    /^ +1 {2}given up after 1 +hook {2}run\.finished {2}run_/,
  );
  const doctor = await home.bin("doctor", "--offline");
  expect(doctor.stdout).toMatch(/1 messages? could not be delivered/);
  expect(doctor.stdout).not.toContain("hunter2");
  expect((await home.bin("news", "drop", "--all")).stdout).toBe("Dropped 1 message.\n");
  expect(await entries(home)).toEqual([]);
});

test("bad words are refused with what to do", async () => {
  const home = configured({
    hook: { kind: "webhook", url: "https://example.com", secretVariable: "NO_SUCH" },
  });
  expect(await home.bin("news", "lost")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("did you mean list?"),
  });
  expect(await home.bin("news", "list", "1")).toMatchObject({ code: 2 });
  for (const words of [["retry"], ["drop", "1", "--all"], ["retry", "0"], ["drop", "x"]]) {
    const { code, stderr } = await home.bin("news", ...words);
    expect(code).toBe(2);
    expect(stderr).toContain("needs the numbers of messages, such as 12, or --all");
  }
  const gone = await home.bin("news", "drop", "7");
  expect(gone).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/1 of these messages do not exist\. .*news list/),
  });
  expect((await home.bin("doctor", "--offline")).stdout).toContain(
    "news.hook: the environment variable NO_SUCH is not set",
  );
});

test("channels that are not complete are refused at the start", async () => {
  const refused = async (channel: object): Promise<string> =>
    (await configured({ one: channel }).bin("news")).stderr;
  expect(await refused({ kind: "slack" })).toContain("needs either url or urlVariable");
  expect(await refused({ kind: "slack", url: "http://example.com/x" })).toContain("must be an https address");
  expect(await refused({ kind: "pigeon" })).toContain("news.one");
  expect(await refused({ kind: "desktop", events: ["run.progress"] })).toContain("news.one.events");
});
