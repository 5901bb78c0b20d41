import { isQuestion } from "../../../src/runs/run.ts";
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import type { RunService } from "../../../src/runs/service.ts";
import {
  askingForReview,
  endedUnapplied,
  nextReview,
  proposingServer,
  writeFiles,
} from "../../runs/proposing.ts";
import { ME, mine, reach, replaceIn, startRun } from "../../runs/support.ts";
import { type RawResponse, send } from "../../support/clients-raw.ts";
import { ChangeReader } from "../../../src/server/page/proposed.ts";
import { browser, problemsOf } from "./chromium.ts";
import { PROPOSED_AT, proposingRun } from "./proposing-runs.ts";
import { asDocument } from "../../support/screen-html.ts";
import { type Visitor, linkTo, openPages, visit } from "./support.ts";

const EVIL = `"><script src="https://evil.example"></script><img src=x onerror=alert(1)>`;

const decider = async (service: RunService, runId: string): Promise<Visitor> =>
  visit(linkTo(await openPages(service, () => PROPOSED_AT), runId, "decide"));

/** The fields of the form as a browser would send them. */
function fieldsIn(body: string): URLSearchParams {
  const [, form = ""] = /<form[^>]*data-proposed[^>]*>(.*?)<\/form>/s.exec(body) ?? [];
  const fields = new URLSearchParams();
  for (const [input] of form.matchAll(/<input\b[^>]*>/g)) {
    const of = (name: string): string | undefined => new RegExp(`\\b${name}="([^"]*)"`).exec(input)?.[1];
    const isSent = of("type") === "hidden" || of("type") === undefined || /\schecked\b/.test(input);
    if (isSent && of("name") !== undefined) fields.append(of("name") ?? "", of("value") ?? "");
  }
  return fields;
}

/** The stamp of a file, by the end of its shown name. */
function stampOf(body: string, name: string): string {
  const found = [
    ...body.matchAll(/<article[^>]*?data-file="([^"]+)".*?<code class="path" title="([^"]*)"/gs),
  ];
  const stamp = found.find(([, , title = ""]) => title.endsWith(name))?.[1];
  if (stamp === undefined) throw new Error(`The page has no file ${name}`);
  return stamp;
}

const post = (visitor: Visitor, runId: string, fields: URLSearchParams, headers = {}): Promise<RawResponse> =>
  send(`${visitor.origin}/runs/${runId}/change`, {
    headers: {
      ...visitor.headers,
      origin: visitor.origin,
      "content-type": "application/x-www-form-urlencoded",
      ...headers,
    },
    body: fields.toString(),
  }).then(asDocument);

const review = async (visitor: Visitor, runId: string): Promise<string> =>
  (await visitor.get(`/runs/${runId}/review`)).body;

const LINES = Array.from({ length: 40 }, (_, index) => `line ${index + 1}`);
const edited = (...changes: [number, string][]): string => {
  const all = [...LINES];
  for (const [line, text] of changes) all[line - 1] = text;
  return `${all.join("\n")}\n`;
};
const BEFORE = { "a.txt": edited(), "b.md": "b\n", "gone.md": "gone\n" };
const work = (copy: string): void =>
  writeFiles(copy, {
    "a.txt": edited([3, "three"], [30, "thirty"]),
    "b.md": "B\n",
    "gone.md": null,
    "new.md": "new\n",
  });

const asking = async (more: { isRepository?: boolean } = {}) => {
  const run = await askingForReview({ before: BEFORE, work, clock: () => PROPOSED_AT, ...more });
  const visitor = await decider(run.service, run.runId);
  const at = (path: string): string => join(run.workspace, path);
  return { ...run, visitor, at, text: (path: string): string => readFileSync(at(path), "utf8") };
};

test("all is chosen at first, and applied with one button", async () => {
  const { service, runId, visitor, at, text } = await asking();
  const body = await review(visitor, runId);
  expect(body).toContain("The folder is unchanged.");
  expect(body).toContain("Apply all 4 files");
  const fields = fieldsIn(body);
  fields.set("act", "apply");
  expect((await post(visitor, runId, fields)).status).toBe(303);
  await reach(service, runId, "completed");
  expect(text("a.txt")).toBe(edited([3, "three"], [30, "thirty"]));
  expect([text("b.md"), text("new.md"), existsSync(at("gone.md"))]).toEqual(["B\n", "new\n", false]);
  expect(await review(visitor, runId)).toMatch(/Answered on the page, .*: apply 4 files/);
});

test("single places are applied, a file is refused with a reason, and the rest stays", async () => {
  const { service, runId, visitor, at, text, question } = await asking();
  const body = await review(visitor, runId);
  const [a, b] = [stampOf(body, "a.txt"), stampOf(body, "b.md")];
  const fields = fieldsIn(body);
  fields.delete(`p.${a}`);
  fields.append(`p.${a}`, "1");
  fields.delete(`p.${stampOf(body, "gone.md")}`);
  fields.append(`x.${b}`, "1");
  fields.append(`m.${b}`, "Lower case,\r\nplease.");
  fields.append("message", "Try again.");
  fields.set("act", "apply");
  expect((await post(visitor, runId, fields)).status).toBe(303);
  await reach(service, runId, "completed");
  expect(text("a.txt")).toBe(edited([30, "thirty"]));
  expect([text("b.md"), text("new.md"), existsSync(at("gone.md"))]).toEqual(["b\n", "new\n", true]);
  const answered = (await mine(service).read.view(runId))?.requests
    .filter(isQuestion)
    .find(({ id }) => id === question.id);
  expect(answered?.answer).toMatchObject({
    type: "review",
    choice: {
      apply: { "a.txt": [1], "new.md": "all" },
      refused: { "b.md": "Lower case,\nplease." },
      message: "Try again.",
    },
  });
  const after = await review(visitor, runId);
  expect(after).toContain("You rejected this before: “Lower case, please.”");
  expect(after).toContain("skipped before");
  expect((await post(visitor, runId, fields)).body).toContain(
    "This question has already been answered (page).",
  );
});

test("a renamed file is one file with both paths, and is applied as one", async () => {
  const { service, runId, workspace } = await askingForReview({
    before: { "src/old.txt": edited(), "exact.md": "exact\n" },
    work: (copy) =>
      writeFiles(copy, {
        "src/old.txt": null,
        "lib/new.txt": edited([3, "three"]),
        "exact.md": null,
        "docs/exact.md": "exact\n",
      }),
  });
  const visitor = await decider(service, runId);
  const body = await review(visitor, runId);
  expect(body).toContain("Apply all 2 files");
  expect(body).toMatch(/<small[^>]*>Renamed from src\/old\.txt<\/small/);
  expect(body).toMatch(/<span class="from small dim"\s*>from\s+<code class="path" title="src\/old\.txt"/);
  expect(body).toContain("Only its path changes.");
  const fields = fieldsIn(body);
  fields.set("act", "apply");
  expect((await post(visitor, runId, fields)).status).toBe(303);
  await reach(service, runId, "completed");
  expect(readFileSync(join(workspace, "lib/new.txt"), "utf8")).toBe(edited([3, "three"]));
  expect(readFileSync(join(workspace, "docs/exact.md"), "utf8")).toBe("exact\n");
  expect(existsSync(join(workspace, "src"))).toBe(false);
});

test("the rest is refused, each file for the same reason", async () => {
  const { service, runId, visitor, question } = await asking();
  const fields = fieldsIn(await review(visitor, runId));
  for (const name of new Set(fields.keys())) if (name.startsWith("p.")) fields.delete(name);
  fields.set("act", "refuse");
  fields.set("restMessage", "Not now.");
  expect((await post(visitor, runId, fields)).status).toBe(303);
  const { answer } = (await nextAnswered(service, runId, question.id)) ?? {};
  const refused = Object.fromEntries(
    ["a.txt", "b.md", "gone.md", "new.md"].map((path) => [path, "Not now."]),
  );
  expect(answer).toMatchObject({ choice: { apply: {}, refused } });
});

const nextAnswered = async (service: RunService, runId: string, id: string) =>
  (await mine(service).read.view(runId))?.requests.filter(isQuestion).find((asked) => asked.id === id);

describe("a folder that moves while somebody reads", () => {
  test("makes the form stale: nothing is applied, the other choices stay, and the conflict is shown", async () => {
    const { service, runId, visitor, at, text } = await asking();
    const body = await review(visitor, runId);
    const fields = fieldsIn(body);
    fields.delete(`p.${stampOf(body, "new.md")}`);
    fields.set("act", "apply");
    writeFileSync(at("b.md"), "mine\n");
    const refused = await post(visitor, runId, fields);
    expect(refused.status).toBe(422);
    expect(refused.body).toContain("1 file that you selected changed since this page showed it: b.md.");
    expect(text("a.txt")).toBe(edited());
    expect(refused.body).toContain("Conflict: changed in the folder");
    const again = fieldsIn(refused.body);
    expect(again.has(`p.${stampOf(refused.body, "new.md")}`)).toBe(false);
    expect(again.getAll(`p.${stampOf(refused.body, "a.txt")}`)).toEqual(["0", "1"]);
    expect(again.get(`c.${stampOf(refused.body, "b.md")}`)).toBe("keep");
    again.set("act", "apply");
    expect((await post(visitor, runId, again)).status).toBe(303);
    await reach(service, runId, "completed");
    expect([text("a.txt"), text("b.md")]).toEqual([edited([3, "three"], [30, "thirty"]), "mine\n"]);
  });

  test("is said with the next review, if it moved before the answer was carried out", async () => {
    const { service, runId, visitor, at, question } = await asking();
    writeFileSync(at("b.md"), "mine\n");
    const choice = { apply: { "b.md": "all" as const } };
    await mine(service).requests.answer(
      runId,
      { requestId: question.id, answer: { type: "review", choice } },
      "test",
    );
    await nextReview(service, runId, question.id);
    const body = await review(visitor, runId);
    expect(body).toMatch(
      /<b>Nothing was applied:<\/b>\s+b\.md changed since it was shown\. Review the change again\./,
    );
  });

  test("takes the proposed lines only if a person says so", async () => {
    const { service, runId, visitor, at, text } = await asking();
    writeFileSync(at("a.txt"), edited([3, "drei"]));
    const body = await review(visitor, runId);
    expect(body).toMatch(/Changed in the folder since it was copied:\s+lines 1–6\./);
    expect(body).toContain("The rest of the file fits.");
    const a = stampOf(body, "a.txt");
    const fields = fieldsIn(body);
    expect([fields.get(`c.${a}`), fields.getAll(`p.${a}`)]).toEqual(["keep", []]);
    fields.set(`c.${a}`, "take");
    fields.set("act", "apply");
    expect((await post(visitor, runId, fields)).status).toBe(303);
    await reach(service, runId, "completed");
    expect(text("a.txt")).toBe(edited([3, "three"]));
  });

  test("leaves a file to the agent", async () => {
    const { service, runId, visitor, at, question } = await asking();
    writeFileSync(at("a.txt"), edited([3, "drei"]));
    const body = await review(visitor, runId);
    const fields = fieldsIn(body);
    fields.set(`c.${stampOf(body, "a.txt")}`, "fit");
    fields.set("act", "apply");
    await post(visitor, runId, fields);
    const { answer } = (await nextAnswered(service, runId, question.id)) ?? {};
    expect(answer).toMatchObject({ choice: { fit: ["a.txt"] } });
    const next = await nextReview(service, runId, question.id);
    expect(next).toMatchObject({ kind: "review" });
  });
});

test("a branch is made where the workspace is a repository", async () => {
  const { service, runId, visitor, text, workspace } = await asking({ isRepository: true });
  const body = await review(visitor, runId);
  expect(body).toContain("including uncommitted changes");
  const fields = fieldsIn(body);
  fields.set("act", "branch");
  fields.set("branch", "");
  expect((await post(visitor, runId, fields)).body).toContain("Enter a name for the branch.");
  fields.set("branch", "agent/all");
  expect((await post(visitor, runId, fields)).status).toBe(303);
  await reach(service, runId, "completed");
  expect(text("b.md")).toBe("b\n");
  expect(execFileSync("git", ["show", "agent/all:b.md"], { cwd: workspace, encoding: "utf8" })).toBe("B\n");
});

describe("after the end of the run", () => {
  test("the screens say what is left, and the same form applies it", async () => {
    const { service, runId, workspace } = await endedUnapplied({
      before: BEFORE,
      work,
      clock: () => PROPOSED_AT,
    });
    const visitor = await decider(service, runId);
    const answer = (await visitor.get(`/runs/${runId}/answer`)).body;
    expect(answer).toContain("4 files are proposed and not applied");
    expect(answer).toContain("4 files that it proposed and nobody applied");
    const body = await review(visitor, runId);
    expect(body).toContain("The run has ended. You can still apply it.");
    expect(body).not.toContain("Ask the agent to merge");
    const fields = fieldsIn(body);
    fields.set("act", "apply");
    expect((await post(visitor, runId, fields)).body).toContain("Select the files to apply.");
    fields.set(`p.${stampOf(body, "b.md")}`, "all");
    const applied = await post(visitor, runId, fields);
    expect(applied.status).toBe(200);
    expect(applied.body).toContain("Applied 1 file. 3 files left.");
    expect(readFileSync(join(workspace, "b.md"), "utf8")).toBe("B\n");
    expect((await visitor.get(`/runs/${runId}/answer`)).body).toContain(
      "3 files are proposed and not applied",
    );
    expect((await post(visitor, runId, fields)).status).toBe(422);
  });

  test("a copy that is on another machine is said", async () => {
    const { service, runId, copyOf } = await endedUnapplied({ before: BEFORE, work });
    const visitor = await decider(service, runId);
    const { threadId } = (await mine(service).read.view(runId))?.run ?? { threadId: "" };
    rmSync(dirname(copyOf(threadId)), { recursive: true });
    const elsewhere = await review(visitor, runId);
    expect(elsewhere).toContain("The copy is not on this machine");
    expect(elsewhere).not.toContain("already has every change");
  });

  test("a run that works in the same copy is named, and nothing can be sent", async () => {
    let round = 0;
    const { service, runId } = await endedUnapplied({
      before: BEFORE,
      work: (copy) => writeFiles(copy, { "b.md": `B${(round += 1)}\n` }),
    });
    const threadId = (await mine(service).read.view(runId))?.run.threadId ?? "";
    const next = await startRun(service, "more", { threadId });
    await reach(service, next.id, "input_required");
    const visitor = await decider(service, runId);
    const body = await review(visitor, runId);
    expect(body).toContain(`href="/runs/${next.id}/review"`);
    expect(body).not.toContain("data-proposed");
  });
});

test("while the run works, the screen shows what it proposes so far", async () => {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  let begun = (): void => undefined;
  const isBegun = new Promise<void>((resolve) => (begun = resolve));
  const { service } = proposingServer({
    before: BEFORE,
    work: async (copy) => {
      work(copy);
      begun();
      await held;
    },
  });
  const { id: runId } = await startRun(service, "change");
  await isBegun;
  const body = await review(await decider(service, runId), runId);
  expect(body).toContain("The agent is still working. It will ask for a review when it is done.");
  expect(body).toContain('Proposed change<span class="count">4</span>');
  expect(body).not.toContain("data-proposed");
  release();
  await reach(service, runId, "input_required");
});

test("the change of a run at work is not compared again at each of its events", async () => {
  const { service } = proposingServer({ before: BEFORE, work });
  const { id: runId } = await startRun(service, "change");
  const { run } = await reach(service, runId, "input_required");
  let [now, reads] = [PROPOSED_AT, 0];
  replaceIn(service, "changes", ({ proposed }) => ({
    proposed: (...args) => {
      reads += 1;
      return proposed(...args);
    },
  }));
  const reader = new ChangeReader(() => now);
  const read = (status: "working" | "input_required") => reader.read(mine(service), { ...run, status });
  expect((await read("working"))?.files).toHaveLength(4);
  await read("working");
  expect(reads).toBe(1);
  now += 60_000;
  await read("working");
  await read("input_required");
  expect(reads).toBe(3);
});

test("all requests list the review with a link, and no form for it", async () => {
  const { service, runId } = await asking();
  const pages = await openPages(service);
  const visitor = await visit(pages.link({ principal: ME, purpose: "decide" }));
  for (const path of ["/", "/review"]) {
    const { body } = await visitor.get(path);
    expect(body, path).toContain("Review the change of 4 files, +4 −4");
    expect(body, path).not.toContain(`action="/runs/${runId}/reply"`);
  }
  expect((await visitor.get("/review")).body).toContain(`href="/runs/${runId}/review"`);
});

describe("rights", () => {
  test("who only looks sees the change and no form, and nothing is taken from them", async () => {
    const { service, runId, visitor, text } = await asking();
    const fields = fieldsIn(await review(visitor, runId));
    fields.set("act", "apply");
    const looker = await visit(linkTo(await openPages(service), runId, "watch"));
    const body = await review(looker, runId);
    expect(body).toContain("three");
    expect(body).toContain(`deepagent-mcp runs open ${runId}`);
    expect(body).not.toMatch(/method="post"|name="p\./);
    expect((await post(looker, runId, fields)).status).toBe(403);
    for (const headers of [{ origin: "https://evil.example" }, { "page-session": "none" }])
      expect((await post(visitor, runId, fields, headers)).status).toBeGreaterThanOrEqual(400);
    const plain = await send(`${visitor.origin}/runs/${runId}/change`, {
      headers: { origin: visitor.origin, "content-type": "application/x-www-form-urlencoded" },
      body: fields.toString(),
    });
    expect(plain.status).toBeGreaterThanOrEqual(400);
    expect(text("b.md")).toBe("b\n");
    expect((await mine(service).read.view(runId))?.run.status).toBe("input_required");
  });

  test("a form that names other files, places or runs applies nothing", async () => {
    const { runId, visitor, text } = await asking();
    const body = await review(visitor, runId);
    const fields = fieldsIn(body);
    fields.set("act", "apply");
    fields.append("p.unknown", "all");
    expect((await post(visitor, runId, fields)).status).toBe(422);
    fields.delete("p.unknown");
    fields.set("question", "none");
    expect((await post(visitor, runId, fields)).body).toContain("This run has no such review.");
    fields.delete("question");
    expect((await post(visitor, runId, fields)).body).toContain("The run has not ended.");
    fields.delete("act");
    expect((await post(visitor, runId, fields)).status).toBe(422);
    expect((await post(visitor, "run_none", fields)).status).toBe(404);
    expect(text("b.md")).toBe("b\n");
  });
});

/** Names and contents that have hurt programs. */
const HOSTILE = {
  [`${EVIL.replaceAll("/", "∕")}.js`]: `${EVIL}\n`,
  "turned\u202egnp.js": "a\u202eb\u200bc\n",
  [`${"long".repeat(50)}/${"name-".repeat(40)}.md`]: `${"x".repeat(5000)}\n`,
  "検潮所の警報/🚢⚓️.md": "潮位が高い 🌊\n",
  "--help": "-x\n",
  "with space & 'quotes'.txt": "a\n",
};

const OLD_NAME = `${"deep/".repeat(20)}<b>${"long".repeat(40)}\u202e.md`;
const HOSTILE_BEFORE = { ".gitignore": "*.log\n", [OLD_NAME]: "moved\n" };
const hostileWork = (copy: string): void => {
  writeFiles(copy, {
    ...HOSTILE,
    [OLD_NAME]: null,
    [`new-${"name".repeat(30)}.md`]: "moved\n",
    ".vscode/tasks.json": "{}\n",
    "run.sh": "#!/bin/sh\n",
    "debug.log": "log\n",
  });
  chmodSync(join(copy, "run.sh"), 0o755);
  writeFileSync(join(copy, "picture.bin"), Buffer.from([0, 255, 1]));
  symlinkSync("../../secret", join(copy, "link"));
};

test("hostile names and contents are text, and are applied under their own names", async () => {
  const { service, runId, workspace } = await askingForReview({
    before: HOSTILE_BEFORE,
    work: hostileWork,
  });
  const visitor = await decider(service, runId);
  const body = await review(visitor, runId);
  expect(body).not.toMatch(/<script src="https:|<img/);
  expect(body).toContain("turned\\u202egnp.js");
  expect(body).toMatch(/Renamed from (deep\/)+&#60;b&#62;(long)+\\u202e\.md</);
  expect(body).toContain("Link to ../../secret");
  expect(body).toContain("Executable");
  expect(body).toContain("Not a text, 3 bytes");
  expect(body).toContain("Can run programs (");
  expect(body).toContain("ignored by Git");
  const fields = fieldsIn(body);
  expect(fields.has(`p.${stampOf(body, "debug.log")}`)).toBe(false);
  fields.set("act", "apply");
  expect((await post(visitor, runId, fields)).status).toBe(303);
  await reach(service, runId, "completed");
  for (const [path, text] of Object.entries(HOSTILE))
    expect(readFileSync(join(workspace, path), "utf8")).toBe(text);
  expect(existsSync(join(workspace, "debug.log"))).toBe(false);
});

/** Reads a file by itself, part by part; gives all that was shown, and the fields behind its end. */
async function readWhole(visitor: Visitor, body: string, stamp: string) {
  let [shown, fields] = ["", new URLSearchParams()];
  let next = body;
  for (let parts = 0; parts < 20; parts += 1) {
    const [, address] =
      new RegExp(`href="([^"]*/change\\?file=${stamp}&#38;part=${parts})"`).exec(next) ?? [];
    if (address === undefined) break;
    next = (await visitor.get(address.replaceAll("&#38;", "&"))).body;
    shown += next;
    fields = fieldsIn(`<form data-proposed>${next}</form>`);
  }
  return { shown, fields };
}

const LONG = `${"a long line of a long text\n".repeat(20_000)}THE END\n`;

describe("a file that is longer than the review shows", () => {
  const asked = () =>
    askingForReview({
      before: { "edited.txt": LONG.replaceAll("long", "short"), "b.md": "b\n" },
      work: (copy) => {
        writeFiles(copy, {
          "new.txt": LONG,
          "edited.txt": LONG,
          "b.md": "B\n",
          "huge.txt": "x".repeat(2_500_000),
        });
        writeFileSync(join(copy, "picture.bin"), Buffer.from([0, 255, 1]));
      },
    });

  test("is not chosen before it was read to its end, and is not taken either", async () => {
    const { service, runId, workspace } = await asked();
    const visitor = await decider(service, runId);
    const body = await review(visitor, runId);
    expect(body).toContain("Apply 1 of 5 files");
    for (const name of ["new.txt", "edited.txt", "huge.txt"]) {
      const fields = fieldsIn(body);
      fields.set(`p.${stampOf(body, name)}`, "all");
      fields.set("act", "apply");
      fields.append("read", "made-up");
      const refused = await post(visitor, runId, fields);
      expect(refused.status, name).toBe(422);
      expect(refused.body).toContain(`${name} is longer than this page shows, so nothing was applied.`);
    }
    const choice = { apply: { "new.txt": "all" as const } };
    const question = (await mine(service).read.view(runId))?.requests.filter(isQuestion).at(-1)?.id ?? "";
    await mine(service).requests.answer(
      runId,
      { requestId: question, answer: { type: "review", choice } },
      "test",
    );
    const again = await nextReview(service, runId, question);
    expect(again).toMatchObject({ note: "new.txt was not shown to its end" });
    expect(existsSync(join(workspace, "new.txt"))).toBe(false);
  });

  test(
    "is applied by whoever read it, and a file that is no text by whoever chose it",
    { tags: ["long"] },
    async () => {
      const { service, runId, workspace } = await asked();
      const visitor = await decider(service, runId);
      const body = await review(visitor, runId);
      const fields = fieldsIn(body);
      for (const name of ["new.txt", "edited.txt", "huge.txt"]) {
        const whole = await readWhole(visitor, body, stampOf(body, name));
        expect(whole.shown).toContain(name === "huge.txt" ? "x".repeat(50_000) : "THE END");
        for (const [field, value] of whole.fields) fields.append(field, value);
      }
      fields.append(`p.${stampOf(body, "picture.bin")}`, "all");
      fields.set("act", "apply");
      expect((await post(visitor, runId, fields)).status).toBe(303);
      await reach(service, runId, "completed");
      for (const name of ["new.txt", "edited.txt"])
        expect(readFileSync(join(workspace, name), "utf8") === LONG, name).toBe(true);
      expect(readFileSync(join(workspace, "huge.txt")).length).toBe(2_500_000);
      expect(existsSync(join(workspace, "picture.bin"))).toBe(true);
    },
  );
});

test("a screen has so many files and lines; others are read by themselves or come with the next review", async () => {
  const many = Object.fromEntries(
    Array.from({ length: 320 }, (_, index) => [`f${String(index).padStart(3, "0")}.txt`, "x\n"]),
  );
  const long = "line\n".repeat(1500);
  const { service, runId, workspace } = await askingForReview({
    before: {},
    work: (copy) => writeFiles(copy, { ...many, "a-long.txt": long, "b-long.txt": long, "c-long.txt": long }),
  });
  const visitor = await decider(service, runId);
  const body = await review(visitor, runId);
  expect(body.match(/<article/g)).toHaveLength(300);
  expect(body).toContain("23 more files will be in the next review.");
  expect(body).toContain("Apply 298 of 323 files");
  const fields = fieldsIn(body);
  const { fields: read } = await readWhole(visitor, body, stampOf(body, "b-long.txt"));
  for (const [name, value] of read) fields.append(name, value);
  fields.set("act", "apply");
  expect((await post(visitor, runId, fields)).status).toBe(303);
  await reach(service, runId, "completed");
  const names = ["a-long.txt", "b-long.txt", "c-long.txt", "f296.txt", "f297.txt"];
  expect(names.map((name) => existsSync(join(workspace, name)))).toEqual([true, true, false, true, false]);
  expect(await review(visitor, runId)).toContain("f319.txt");
});

describe("in Chromium", { tags: "chromium" }, () => {
  const visitPage = browser({ locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce" });

  test("keys and boxes choose places, and the button counts what it will do", async () => {
    const { service, runId, workspace } = await proposingRun();
    const { page, messages } = await visitPage(linkTo(await openPages(service), runId, "decide"));
    const apply = page.locator("[data-act=apply]");
    await apply.getByText("Apply 4 of 6 files").waitFor();
    const send = page.locator("article", { hasText: "src/send.js" });
    await page.locator("article").first().focus();
    for (let step = 0; step < 8; step += 1) await page.keyboard.press("j");
    await page.keyboard.press("Space");
    await send.locator("[data-whole]:indeterminate").waitFor();
    await page.getByText("2 of 3 changes selected").waitFor();
    await page.keyboard.press("x");
    await send.locator(".refusal textarea").fill("Later.");
    await apply.getByText("Apply 3 of 6 files").waitFor();
    await page.getByText("The agent will see your message.").waitFor();
    await send.getByText("Undo").click();
    await apply.getByText("Apply 4 of 6 files").waitFor();
    // "All" chooses no conflict, and nothing that was refused before.
    await page.locator("[data-all]").check();
    await page.locator("[data-all]").uncheck();
    await apply.getByText("Apply nothing now").waitFor();
    await page.locator("[data-all]").check();
    await apply.getByText("Apply 4 of 6 files").waitFor();
    await page.getByLabel("Use the agent’s version").check();
    await apply.getByText("Apply 5 of 6 files").waitFor();
    expect(await problemsOf(page)).toEqual([]);
    await apply.click();
    await page.getByRole("status").getByText("Completed", { exact: true }).waitFor();
    expect(readFileSync(join(workspace, "src/alarms.js"), "utf8")).toContain("await resume();");
    expect(existsSync(join(workspace, "docs/old-outbox.md"))).toBe(false);
    expect(messages).toEqual([]);
  });

  test("a long file is chosen behind its end, which is where it was read", { tags: ["long"] }, async () => {
    const { service, runId, workspace } = await askingForReview({
      before: {},
      work: (copy) =>
        writeFiles(copy, {
          "検潮所/潮位の長い記録.csv": `${"潮位,2026-03-01T00:00,1.25\n".repeat(40_000)}終わり\n`,
          "fix.md": "fix\n",
        }),
    });
    const { page, messages } = await visitPage(linkTo(await openPages(service), runId, "decide"));
    const apply = page.locator("[data-act=apply]");
    await apply.getByText("Apply 1 of 2 files").waitFor();
    await page.getByRole("link", { name: "Read 40001 changed lines" }).click();
    for (let part = 2; part < 30 && !(await page.getByText("終わり").isVisible()); part += 1) {
      expect(await page.getByText("Apply this file").count()).toBe(0);
      await page.getByRole("link", { name: `Read part ${part} of` }).click();
      await page
        .locator(`[data-part] .long-place a[aria-expanded=true], [data-part] .read-end`)
        .nth(part - 2)
        .waitFor();
    }
    await page.getByLabel("Apply this file, which ends here").scrollIntoViewIfNeeded();
    await apply.getByText("Apply all 2 files").waitFor();
    expect(await problemsOf(page)).toEqual([]);
    await apply.click();
    await page.getByRole("status").getByText("Completed", { exact: true }).waitFor();
    expect(readFileSync(join(workspace, "検潮所/潮位の長い記録.csv"), "utf8")).toMatch(/終わり\n$/);
    expect(messages).toEqual([]);
  });

  test("hostile names fit every window", async () => {
    const { service, runId } = await askingForReview({
      before: HOSTILE_BEFORE,
      work: hostileWork,
    });
    const { page, messages } = await visitPage(linkTo(await openPages(service), runId, "decide"));
    await page.locator("article").first().waitFor();
    expect(await problemsOf(page)).toEqual([]);
    expect(messages).toEqual([]);
  });

  test("an update shows a file that moved as new, and keeps what was chosen of the others", async () => {
    const { service, runId, workspace } = await proposingRun();
    const pages = await openPages(service);
    const { page, messages } = await visitPage(pages.link({ principal: ME, purpose: "decide" }));
    await page.waitForURL(pages.address);
    await page.goto(new URL(`/runs/${runId}/review`, pages.address).href);
    const apply = page.locator("[data-act=apply]");
    await apply.getByText("Apply 4 of 6 files").waitFor();
    await page.getByLabel("Apply docs/old-outbox.md").uncheck();
    await page.getByText("Message…").click();
    await page.getByLabel("Message to the agent").fill("Thanks");
    await page.getByText("Message written").waitFor();
    writeFiles(workspace, { "src/outbox.js": "mine\n" });
    // Another run that waits is seen on every page.
    await startRun(service, "Another one");
    await page.getByText("1 file changed while you were here, and is shown as new.").waitFor();
    await apply.getByText("Apply 2 of 6 files").waitFor();
    expect(await page.getByLabel("Message to the agent").inputValue()).toBe("Thanks");
    await page.getByRole("link", { name: "Review it" }).click();
    await page.locator("article:focus", { hasText: "src/outbox.js" }).waitFor();
    expect(messages).toEqual([]);
  });

  test("a form that is stale comes back with the conflict, which nobody has chosen", async () => {
    const { service, runId, workspace } = await proposingRun();
    const { page } = await visitPage(linkTo(await openPages(service), runId, "decide"));
    const apply = page.locator("[data-act=apply]");
    await apply.getByText("Apply 4 of 6 files").waitFor();
    await page.route("**/change", (route) => {
      writeFiles(workspace, { "src/outbox.js": "mine\n" });
      return route.continue();
    });
    await apply.click();
    await page.getByRole("alert").getByText("1 file that you selected changed").waitFor();
    await apply.getByText("Apply 3 of 6 files").waitFor();
  });
});
