// Rules that people save with approvals, and rules of the configuration and the workspace.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { PersonDecision } from "../../src/tools/request.ts";
import { type Approval, isApproval, isFinal } from "../../src/runs/run.ts";
import type { PrincipalRuns } from "../../src/runs/service.ts";
import { type HomeOptions, openDeps, openHome } from "../support/harness.ts";
import { type Line, play } from "../support/harness-brain.ts";
import { inWorkspace, writeFile } from "./support.ts";

const execute = (command: string, more: object = {}) => ({ name: "execute", args: { command, ...more } });
const fetchPage = (url: string) => ({ name: "web_fetch", args: { url } });
/** Calls one after the other, then the end. */
const steps = (...calls: { name: string; args: object }[]): Line[] => [
  ...calls.map((call) => ({ toolCalls: [call as ReturnType<typeof writeFile>] })),
  { text: "done" },
];

async function openRuns(parts: Record<string, Line[]>, options: Omit<HomeOptions, "think"> = {}) {
  const home = await openHome({ think: play(parts), ...options });
  const service = await openDeps(home).runs();
  return { home, runs: service.as({ principal: "local" }), service };
}

/** Starts a run, answers what it asks until it has ended, and returns the approvals that a person was asked for. */
async function drive(
  runs: PrincipalRuns,
  task: string,
  decide: (approval: Approval) => PersonDecision = () => ({ type: "approve" }),
) {
  const started = await runs.control.start({ task });
  if (!started.ok) throw new Error(started.message);
  const asked: Approval[] = [];
  for (let last = 0; ;) {
    const view = await runs.read.view(started.run.id);
    if (view === undefined) throw new Error("the run is gone");
    const open = view.requests.filter(isApproval).find(({ status }) => status === "pending");
    if (open !== undefined) {
      asked.push(open);
      const outcome = await runs.requests.answer(
        view.run.id,
        { requestId: open.id, answer: decide(open) },
        "page",
      );
      expect(outcome).toMatchObject({ ok: true });
    } else if (isFinal(view.run.status)) {
      expect(view.run).toMatchObject({ status: "completed" });
      return { asked, view, approvals: view.requests.filter(isApproval) };
    } else {
      const signal = AbortSignal.timeout(20_000);
      for await (const event of runs.watch.events(view.run.id, { after: last, signal })) {
        last = event.seq;
        if (["approval_requested", "run_completed", "run_failed"].includes(event.kind)) break;
      }
    }
  }
}

/** Saves the offer with this number; the narrowest is 0. */
const always =
  (number: number) =>
  ({ ruled }: Approval): PersonDecision => ({
    type: "approve_always",
    rules: [...(ruled?.offers?.[number]?.rules ?? [])],
  });

const objects = (approvals: readonly Approval[]) =>
  approvals.map(({ args }) => String(args["file_path"] ?? args["command"] ?? args["url"]));

test("a rule for a folder allows changes there in later runs, and nothing else", async () => {
  const at = (path: string) => writeFile(`/workspace/${path}`, "x\n");
  const { home, runs } = await openRuns(
    {
      first: steps(at("docs/guide/a.md")),
      second: steps(
        at("docs/b.md"),
        at("README.md"),
        at("docs/link/c.md"),
        { name: "delete", args: { file_path: "/workspace/docs/b.md" } },
        at(".git/hooks/pre-commit"),
      ),
    },
    { files: { "docs/old.md": "", "src/a.ts": "" } },
  );
  symlinkSync("../src", join(home.workspace, "docs/link"));
  const first = await drive(runs, "first", always(2));
  expect(first.asked[0]?.ruled?.offers?.map(({ rules }) => rules)).toEqual([
    ["Edit(/docs/guide/a.md)"],
    ["Edit(/docs/guide/**)"],
    ["Edit(/docs/**)"],
  ]);
  const second = await drive(runs, "second");
  expect(objects(second.asked)).toEqual([
    "/workspace/README.md",
    "/workspace/docs/link/c.md",
    "/workspace/docs/b.md",
    "/workspace/.git/hooks/pre-commit",
  ]);
  // Nothing is offered for a link, a deletion, or a file that starts programs.
  expect(second.asked.map(({ ruled }) => ruled?.offers?.length ?? 0)).toEqual([1, 0, 0, 0]);
  expect(second.approvals[0]).toMatchObject({ status: "approved", decidedBy: "rule Edit(/docs/**)" });
  expect(inWorkspace(home, "docs/b.md")).toBeUndefined();
  const [rule] = await runs.rules.list();
  expect(rule).toMatchObject({
    rule: "Edit(/docs/**)",
    isUnsandboxed: false,
    createdBy: "page",
    runId: first.view.run.id,
    approvalId: first.asked[0]?.id,
    uses: 1,
  });
  const events = await runs.read.events(second.view.run.id);
  const decided = events?.filter(({ kind }) => kind === "approval_decided") ?? [];
  expect(decided[0]?.data).toMatchObject({ decision: "approve", by: "rule Edit(/docs/**)" });
});

test("a removed rule allows nothing from then on, also in a run at work", async () => {
  const at = (path: string) => writeFile(`/workspace/${path}`, "x\n");
  const { runs } = await openRuns({
    first: steps(at("a/one.md")),
    second: steps(at("a/two.md"), at("b.md"), at("a/three.md")),
  });
  await drive(runs, "first", always(1));
  const { asked } = await drive(runs, "second", ({ args }) => {
    if (args["file_path"] === "/workspace/b.md") removing = removeAll(runs);
    return { type: "approve" };
  });
  await removing;
  expect(objects(asked)).toEqual(["/workspace/b.md", "/workspace/a/three.md"]);
});
let removing: Promise<void> | undefined;
async function removeAll(runs: PrincipalRuns): Promise<void> {
  for (const { id } of await runs.rules.list()) expect(await runs.rules.remove(id)).toBe(true);
}

test("a rule for commands counts for each part of a line, in the same kind of place, for its person", async () => {
  const { runs, service } = await openRuns({
    first: steps(execute("cat a.txt | head -1")),
    second: steps(
      execute("cat b.txt && cat a.txt | head -2"),
      execute("cat a.txt > c.txt"),
      execute("cat $(ls)"),
      execute("cat a.txt; touch d.txt"),
    ),
    others: steps(execute("cat b.txt")),
  });
  const first = await drive(runs, "first", always(1));
  expect(first.asked[0]?.ruled?.offers?.map(({ rules }) => rules)).toEqual([
    ["Bash(cat a.txt)", "Bash(head -1)"],
    ["Bash(cat *)", "Bash(head *)"],
  ]);
  const second = await drive(runs, "second", () => ({ type: "reject" }));
  expect(objects(second.asked)).toEqual(["cat a.txt > c.txt", "cat $(ls)", "cat a.txt; touch d.txt"]);
  expect(second.approvals[0]?.decidedBy).toBe("rule Bash(cat *), Bash(head *)");
  const others = service.as({ principal: "somebody" });
  expect(objects((await drive(others, "others")).asked)).toEqual(["cat b.txt"]);
  expect(await others.rules.list()).toEqual([]);
  const [rule] = await runs.rules.list();
  expect(await others.rules.remove(rule?.id ?? "")).toBe(false);
});

test("only the rules that were offered are saved", async () => {
  const { runs } = await openRuns({ first: steps(writeFile("/workspace/a/b.md", "x")) });
  const started = await runs.control.start({ task: "first" });
  if (!started.ok) throw new Error(started.message);
  const runId = started.run.id;
  await expect.poll(async () => (await runs.read.pending(1)).length).toBe(1);
  const [open] = await runs.read.pending(1);
  for (const rules of [["Edit(**)"], ["Bash(*)"], [], ["Edit(/a/b.md)", "Edit(/a/**)"]]) {
    const given = { requestId: open?.id ?? "", answer: { type: "approve_always" as const, rules } };
    expect(await runs.requests.answer(runId, given, "page")).toMatchObject({
      ok: false,
      code: "invalid_answer",
    });
  }
  expect(await runs.rules.list()).toEqual([]);
  const reading = { principal: "local", scopes: ["run" as const, "read" as const] };
  await runs.control.cancel(runId, "");
  expect(reading.scopes).not.toContain("approve");
});

test("rules of the configuration allow, ask and forbid; a workspace only asks and forbids", async () => {
  const at = (path: string) => writeFile(`/workspace/${path}`, "x\n");
  const { home, runs } = await openRuns(
    {
      first: steps(
        at("docs/a.md"),
        at("docs/secret.md"),
        at("docs/x.lock"),
        at("src/b.ts"),
        execute("echo hello && echo again"),
        execute("echo hello > e.txt"),
        at("docs/private/p.md"),
        execute("rm -rf x"),
        execute("rm y && echo $(date)"),
      ),
    },
    {
      files: {
        ".claude/settings.json": JSON.stringify({
          permissions: { allow: ["Edit(src/**)"], deny: ["Bash(rm:*)"], ask: ["Edit(docs/private/**)"] },
        }),
      },
      env: {
        DEEPAGENT_RULES_ALLOW: "Edit(docs/**),Bash(echo:*)",
        DEEPAGENT_RULES_ASK: "Write(/docs/secret.md)",
        DEEPAGENT_RULES_DENY: "Edit(*.lock)",
        DEEPAGENT_RULES_OUTSIDE_SANDBOX: "true",
      },
    },
  );
  const { asked, approvals } = await drive(runs, "first", () => ({ type: "reject" }));
  expect(objects(asked)).toEqual([
    "/workspace/docs/secret.md",
    "/workspace/src/b.ts",
    "echo hello > e.txt",
    "/workspace/docs/private/p.md",
    "rm y && echo $(date)",
  ]);
  expect(approvals.filter(({ status }) => status === "approved").map(({ decidedBy }) => decidedBy)).toEqual([
    "rule Edit(docs/**)",
    "rule Bash(echo:*)",
  ]);
  const told = JSON.stringify(home.brain.thoughts.at(-1)?.request.messages);
  expect(told).toContain("the rule Edit(*.lock) forbids this call");
  expect(told).toContain("the rule Bash(rm:*) forbids this call");
});

/** A web server of this machine, and its address. */
async function openSite(): Promise<string> {
  const site = createServer((_request, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<main><p>A page of the site, with enough words to be its main text.</p></main>");
  });
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void site.close());
  return `127.0.0.1:${(site.address() as AddressInfo).port}`;
}

test("once a page was read, rules allow no call that reaches out, and the question says why", async () => {
  const host = await openSite();
  const parts = {
    first: steps(fetchPage(`http://${host}/a`), fetchPage(`http://${host}/b`)),
    second: steps(
      fetchPage(`http://${host}/c`),
      writeFile("/workspace/d/e.md", "x"),
      writeFile("/workspace/d/f.md", "x"),
    ),
  };
  const web = { DEEPAGENT_WEB_HOSTS: host };
  const { runs } = await openRuns(parts, { env: web });
  const first = await drive(runs, "first", (approval) =>
    approval.ruled?.offers?.length ? always(0)(approval) : { type: "approve" },
  );
  expect(objects(first.asked)).toEqual([`http://${host}/a`, `http://${host}/b`]);
  expect(first.asked[0]?.ruled?.offers?.map(({ rules }) => rules)).toEqual([[`WebFetch(domain:${host})`]]);
  expect(first.asked[1]?.ruled).toMatchObject({ heldBack: [`a page of ${host}`] });
  expect(first.asked[1]?.ruled?.offers).toBeUndefined();
  // Changes in the workspace do not reach out.
  const second = await drive(runs, "second", always(1));
  expect(objects(second.asked)).toEqual(["/workspace/d/e.md"]);
  expect(second.approvals.map(({ decidedBy }) => decidedBy)).toEqual([
    `rule WebFetch(domain:${host})`,
    "page",
    "rule Edit(/d/**)",
  ]);
});

test("the operator may let rules count after untrusted texts", async () => {
  const host = await openSite();
  const { runs } = await openRuns(
    { first: steps(fetchPage(`http://${host}/a`), fetchPage(`http://${host}/b`)) },
    {
      env: {
        DEEPAGENT_WEB_HOSTS: host,
        DEEPAGENT_RULES_ALLOW: `WebFetch(domain:${host})`,
        DEEPAGENT_RULES_AFTER_UNTRUSTED: "allow",
      },
    },
  );
  expect((await drive(runs, "first")).asked).toEqual([]);
});

test.each([
  ["RULES_ALLOW", "Bash(eval *)", "rules.allow"],
  ["RULES_DENY", "Bash(rm $x)", "rules.deny"],
  ["RULES_ASK", "Everything", "rules.ask"],
])("no run starts with a rule in %s that cannot be used", async (setting, rule, name) => {
  const { runs } = await openRuns({}, { env: { [`DEEPAGENT_${setting}`]: rule } });
  const started = await runs.control.start({ task: "x" });
  expect(started).toMatchObject({ ok: false, code: "configuration_invalid" });
  expect(started.ok ? "" : started.message).toContain(name);
});
