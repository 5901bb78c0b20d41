import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROUTES } from "../../../src/server/api/routes.ts";
import { mine, databaseFile, openServer, reach, startRun } from "../../runs/support.ts";
import { askingForReview, endedUnapplied } from "../../runs/proposing.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { fileRuns } from "../page/file-runs.ts";
import { waitingRun } from "../page/support.ts";
import { plainRuns, questionRuns, ruledRuns } from "../support.ts";
import { openApi } from "./support.ts";

const writeNew = (copy: string): void => writeFileSync(join(copy, "a.md"), "new\n");

test("a run is started once for a key, listed, read, renamed, continued, forked and deleted", async () => {
  const service = plainRuns();
  const { mine: me } = await openApi(service);
  const order = { task: "look around", idempotency_key: "k1", goal: ["it is seen"] };
  const first = await me("POST /runs", order);
  expect([first.status, first.answer.how]).toEqual([200, "started"]);
  const { id } = first.answer.run;
  expect((await me("POST /runs", order)).answer).toMatchObject({ how: "existing", run: { id } });
  const conflict = await me("POST /runs", { ...order, task: "something else" });
  expect([conflict.status, conflict.answer.error.code]).toEqual([409, "idempotency_conflict"]);
  await reach(service, id, "completed");

  const run = (await me(`GET /runs/${id}`)).answer;
  expect(run).toMatchObject({ run_id: id, status: "completed", answer: "hello", requests: [] });
  expect(run.goal.criteria).toMatchObject([{ criterion: "it is seen" }]);
  expect(new Date(run.created_at).toISOString()).toBe(run.created_at);
  const { events } = (await me(`GET /runs/${id}/events?after=1&limit=2`)).answer;
  expect(events.map(({ seq }: { seq: number }) => seq)).toEqual([2, 3]);
  expect((await me(`GET /runs/${id}/transcript`)).answer.markdown).toContain("look around");
  expect((await me(`GET /runs/${id}/steps/999`)).status).toBe(404);
  expect((await me(`GET /runs/${id}/steps/x`)).status).toBe(404);
  expect((await me(`GET /runs/${id}/points`)).answer).toEqual({ points: [] });

  expect((await me(`POST /runs/${id}/name`, { name: "A look" })).answer).toEqual({});
  const told = await me(`POST /runs/${id}/messages`, { text: "wait" });
  expect([told.status, told.answer.error.code]).toEqual([409, "ended"]);
  expect((await me(`POST /runs/${id}/cancel`, {})).answer).toEqual({ already_ended: true });
  const next = await me(`POST /runs/${id}/continue`, { task: "and now" });
  expect(next.answer.run.thread_id).toBe(run.thread_id);
  await reach(service, next.answer.run.id, "completed");
  const again = await me(`POST /runs/${next.answer.run.id}/continue`, {});
  expect((await me(`GET /runs/${again.answer.run.id}`)).answer.task).toBe("and now");
  const lost = await me(`POST /runs/${id}/continue`, { task: "from there", point: "thr_other@1" });
  expect([lost.status, lost.answer.error.code]).toEqual([422, "point_not_found"]);
  const gone = await me(`POST /runs/${id}/continue`, { task: "from there", point: `${run.thread_id}@1` });
  expect([gone.status, gone.answer.error.code]).toEqual([422, "point_not_found"]);

  await reach(service, again.answer.run.id, "completed");
  const page = (await me("GET /runs?limit=2")).answer;
  expect(page.runs).toHaveLength(2);
  expect(page.counts.completed).toBe(3);
  const rest = (await me(`GET /runs?limit=2&before=${page.next}`)).answer;
  expect(rest).toMatchObject({ runs: [{ run_id: id, name: "A look", agents: { open: 0 } }] });
  expect("next" in rest).toBe(false);
  expect((await me("GET /runs?status=failed")).answer.runs).toEqual([]);
  expect((await me("GET /runs?text=and%20now")).answer.runs).toHaveLength(2);
  expect((await me(`DELETE /runs/${id}`)).answer).toEqual({});
  expect((await me(`GET /runs/${id}`)).status).toBe(404);
});

test("a conversation begins again at one of its points", async () => {
  const { service, runId } = await fileRuns();
  const { mine: me } = await openApi(service);
  const { points } = (await me(`GET /runs/${runId}/points`)).answer;
  expect(points.length).toBeGreaterThan(1);
  const fork = await me(`POST /runs/${runId}/continue`, { task: "another way", point: points[1].id });
  const run = (await me(`GET /runs/${fork.answer.run.id}`)).answer;
  expect(run.forked_from).toBe(points[1].id);
});

test("a decision counts for what was shown, and once", async () => {
  const { service, notes, runId } = await waitingRun("a", "b", "c");
  const { mine: me, as } = await openApi(service);
  const { requests, total } = (await me("GET /requests")).answer;
  expect(total).toBe(3);
  const [a, b, c] = requests;
  expect(a).toMatchObject({
    run_id: runId,
    task: "note <b>this</b>",
    kind: "approval",
    tool: "note",
    arguments: { text: "a" },
    status: "pending",
    decisions: expect.arrayContaining(["approve", "edit", "reject"]),
  });
  // The same content has the same name, in the list of all and in that of its run.
  expect((await me(`GET /runs/${runId}`)).answer.requests[0].shown).toBe(a.shown);
  expect(new Set(requests.map(({ shown }: { shown: string }) => shown)).size).toBe(3);
  const at = (request: { id: string }) => `POST /runs/${runId}/requests/${encodeURIComponent(request.id)}`;
  const approve = { type: "approve" };
  const stale = await me(at(a), { shown: b.shown, answer: approve });
  expect([stale.status, stale.answer.error.code]).toEqual([409, "changed"]);
  const wrong = { type: "edit", arguments: { text: "a text that is too long for this tool" } };
  const { problem } = (await me(`${at(a)}/check`, { shown: a.shown, answer: wrong })).answer;
  expect(problem).toContain("text");
  expect((await me(`${at(a)}/check`, { shown: a.shown, answer: approve })).answer).toEqual({});
  expect((await me(at(a), { shown: a.shown, answer: wrong })).answer.error.code).toBe("invalid_answer");
  expect((await mine(service).read.view(runId))?.requests[0]?.status).toBe("pending");

  const done = await as("only-approves")(at(a), { shown: a.shown, answer: approve });
  expect(done.answer).toMatchObject({ how: "stored", request: { status: "approved", decided_by: "api" } });
  expect((await me(at(a), { shown: a.shown, answer: approve })).answer.how).toBe("repeated");
  const late = await me(at(a), { shown: a.shown, answer: { type: "reject" } });
  expect([late.status, late.answer.error.code]).toEqual([409, "already_answered"]);
  const decided = await me(`${at(a)}/check`, { shown: a.shown, answer: { type: "reject" } });
  expect(decided.answer.problem).toContain("already been decided");

  const edit = { type: "edit", arguments: { text: "B" } };
  const edited = await me(at(b), { shown: b.shown, answer: edit });
  expect(edited.answer.request).toMatchObject({ status: "edited", answer: edit });
  await me(at(c), { shown: c.shown, answer: { type: "reject", message: "no" } });
  await reach(service, runId, "completed");
  expect(notes.toSorted()).toEqual(["B", "a"]);
  expect((await me("GET /requests")).answer).toEqual({ requests: [], total: 0 });
});

test("a rule is saved with an approval, listed and deleted", async () => {
  const { service } = ruledRuns("docs/a.md", "docs/a.md");
  const { id } = await startRun(service, "note it");
  await reach(service, id, "input_required");
  const { mine: me } = await openApi(service);
  const [request] = (await me("GET /requests")).answer.requests;
  expect(request.rules).toContainEqual(["Edit(/docs/a.md)"]);
  const at = `POST /runs/${id}/requests/${encodeURIComponent(request.id)}`;
  const always = (rules: string[]) =>
    me(at, { shown: request.shown, answer: { type: "approve_always", rules } });
  expect((await always(["Bash(*)"])).answer.error.code).toBe("invalid_answer");
  expect((await always(["Edit(/docs/a.md)"])).answer.how).toBe("stored");
  await reach(service, id, "completed");
  const [rule] = (await me("GET /rules")).answer.rules;
  expect(rule).toMatchObject({ rule: "Edit(/docs/a.md)", uses: 1, run_id: id, created_by: "api" });
  expect((await me(`DELETE /rules/${rule.id}`)).status).toBe(200);
  expect((await me(`DELETE /rules/${rule.id}`)).status).toBe(404);
});

test("a question is answered by its fields, or declined", async () => {
  const { service } = questionRuns({
    kind: "ask",
    text: "Which colour?",
    fields: [{ name: "colour", type: "choice", options: ["red", "blue"], required: true }],
  });
  const { id } = await startRun(service, "ask me");
  await reach(service, id, "input_required");
  const { mine: me } = await openApi(service);
  const [asked] = (await me("GET /requests")).answer.requests;
  expect(asked).toMatchObject({
    kind: "ask",
    text: "Which colour?",
    asked: { fields: [{ name: "colour" }] },
  });
  const at = `POST /runs/${id}/requests/${encodeURIComponent(asked.id)}`;
  const say = (colour: string) =>
    me(at, { shown: asked.shown, answer: { type: "fields", values: { colour } } });
  expect((await say("green")).answer.error.code).toBe("invalid_answer");
  expect((await say("blue")).answer.request).toMatchObject({ status: "answered", decided_by: "api" });
  const { run } = await reach(service, id, "completed");
  expect(run.answer).toContain("blue");
});

test("a proposed change is read, and applied as it was shown", async () => {
  const { service, runId, workspace } = await askingForReview({
    before: { "a.md": "old\n" },
    work: writeNew,
  });
  const { mine: me } = await openApi(service);
  const proposed = (await me(`GET /runs/${runId}/changes`)).answer;
  expect(proposed.files).toMatchObject([{ path: "a.md", change: "edited", added: 1, removed: 1 }]);
  expect((await me(`GET /runs/${runId}/changes?whole=a.md`)).answer.files).toHaveLength(1);
  const [review] = (await me("GET /requests")).answer.requests;
  const at = `POST /runs/${runId}/requests/${encodeURIComponent(review.id)}`;
  const apply = (version: string) =>
    me(at, {
      shown: review.shown,
      answer: { type: "review", choice: { apply: { "a.md": "all" }, shown: { "a.md": version } } },
    });
  expect((await apply(proposed.files[0].version)).answer.how).toBe("stored");
  await reach(service, runId, "completed");
  expect(readFileSync(join(workspace, "a.md"), "utf8")).toBe("new\n");
});

test("a change of a finished run is applied, unless it is another one by now", async () => {
  const { service, runId, workspace } = await endedUnapplied({
    before: { "a.md": "old\n" },
    work: writeNew,
  });
  const { mine: me } = await openApi(service);
  const [file] = (await me(`GET /runs/${runId}/changes`)).answer.files;
  const apply = (version: string) =>
    me(`POST /runs/${runId}/changes`, { choice: { apply: { "a.md": "all" }, shown: { "a.md": version } } });
  expect((await apply("another")).status).toBeGreaterThanOrEqual(409);
  expect(readFileSync(join(workspace, "a.md"), "utf8")).toBe("old\n");
  expect((await apply(file.version)).answer.record).toMatchObject({ applied: ["a.md"], unapplied: 0 });
  expect(readFileSync(join(workspace, "a.md"), "utf8")).toBe("new\n");
});

test("files are listed and read by lines, and memories are saved, found and deleted", async () => {
  const { service, runId } = await fileRuns();
  const { mine: me } = await openApi(service);
  const roots = (await me("GET /files")).answer.entries;
  expect(roots).toContainEqual(expect.objectContaining({ path: "/workspace/", is_dir: true }));
  const { entries } = (await me("GET /files?path=/workspace/")).answer;
  expect(entries).toContainEqual(expect.objectContaining({ path: "/workspace/README.md", is_dir: false }));
  const page = (await me("GET /files/content?path=/workspace/src/alarms.js&offset=1&limit=2")).answer;
  expect(page).toMatchObject({ content: "const other = 2;\nconst other = 2;\n", next_offset: 3 });
  expect((await me("GET /files/content?path=/workspace/none.js")).status).toBe(404);
  const folder = await me("GET /files/content?path=/workspace/src");
  expect([folder.status, folder.answer.error.code]).toEqual([422, "is_directory"]);
  const own = (await me(`GET /runs/${runId}/files/content?path=/notes/findings.json`)).answer;
  expect(own.content).toContain("lost");
  expect((await me("GET /files/content?path=/notes/findings.json")).status).toBe(404);

  const at = "/memories/people.md";
  const { version } = (await me(`GET /files/content?path=${at}`)).answer;
  const save = (content: string, known: string) =>
    me("POST /memories", { path: at, content, version: known });
  expect((await save("Ada and Bob\n", version)).answer).toEqual({});
  const stale = await save("Only Bob\n", version);
  expect([stale.status, stale.answer.error.code]).toEqual([409, "not_saved"]);
  expect((await me(`GET /files/content?path=${at}`)).answer.content).toBe("Ada and Bob\n");
  const outside = await me("POST /memories", { path: "/workspace/README.md", content: "x", version: "" });
  expect(outside.answer.error.message).toBe("Only memories can be changed here.");
  const found = (await me("GET /search?q=alarm")).answer;
  expect(found.runs).toMatchObject([{ run_id: runId }]);
  expect(found.files.map(({ path }: { path: string }) => path)).toContain("/workspace/src/alarms.js");
  expect(found.memories).toMatchObject([{ path: "/memories/people.md" }]);
  expect((await me(`DELETE /memories?path=${at}`)).answer).toEqual({});
  expect((await me(`GET /files/content?path=${at}`)).status).toBe(404);
});

test("schedules are created, changed, paused, resumed, started and deleted", async () => {
  const { service } = openServer(
    databaseFile(),
    { model: scriptedModel(() => ({ text: "done" })) },
    { concurrentRuns: 0, choices: () => ({ models: [{ spec: "a:main" }], limits: { tokens: 1000 } }) },
  );
  const { mine: me } = await openApi(service, { settings: { folder: "x" } });
  const plan = { task: "Read the news", expression: "0 7 * * 1-5", time_zone: "UTC", name: "news" };
  const { schedule } = (await me("POST /schedules", { ...plan, catch_up: "all", limits: { tokens: 10 } }))
    .answer;
  expect(schedule).toMatchObject({ ...plan, catch_up: "all", catch_up_limit: 10, limits: { tokens: 10 } });
  const taken = await me("POST /schedules", plan);
  expect([taken.status, taken.answer.error.code]).toEqual([409, "name_taken"]);
  const wrong = await me("POST /schedules", { ...plan, name: "b", expression: "99 7 * * *" });
  expect([wrong.status, wrong.answer.error.code]).toEqual([422, "invalid"]);
  const at = `/schedules/${schedule.id}`;
  const changed = (await me(`POST ${at}`, { overlap: true, limits: {} })).answer.schedule;
  expect(changed).toMatchObject({ ...plan, overlap: true });
  expect("limits" in changed).toBe(false);
  expect((await me(`POST ${at}/pause`, {})).answer.schedule.paused_at).toMatch(/Z$/);
  expect("paused_at" in (await me(`POST ${at}/resume`, {})).answer.schedule).toBe(false);
  const { run } = (await me(`POST ${at}/start`, {})).answer;
  const [listed] = (await me("GET /schedules")).answer.schedules;
  expect(listed).toMatchObject({ id: schedule.id, runs: [{ run_id: run.id, schedule_id: schedule.id }] });
  expect((await me(`DELETE ${at}`)).answer).toEqual({});
  expect((await me("GET /schedules")).answer).toEqual({ schedules: [] });
  expect((await me("GET /settings")).answer).toMatchObject({
    models: [{ spec: "a:main" }],
    limits: { tokens: 1000 },
    folders: [],
  });
  expect((await me("GET /servers")).answer).toEqual({ servers: [] });
  expect((await me("POST /servers/ask", {})).answer).toEqual({ servers: [] });
  expect((await me("POST /servers/x/login", {})).answer.error.code).toBe("no_login");
  expect((await me("GET /session")).answer.principal).toMatch(/\S/);
});

test("a run at work gets messages, and is cancelled with a reason", async () => {
  const { service, runId } = await waitingRun("a");
  const { mine: me } = await openApi(service);
  const told = { text: "be quick", idempotency_key: "m1" };
  expect((await me(`POST /runs/${runId}/messages`, told)).answer).toEqual({ repeated: false });
  expect((await me(`POST /runs/${runId}/messages`, told)).answer).toEqual({ repeated: true });
  expect((await me(`POST /runs/${runId}/messages`, { text: "you", agent: "run_none" })).status).toBe(404);
  expect((await me(`DELETE /runs/${runId}`)).answer.error.code).toBe("open");
  expect((await me(`POST /runs/${runId}/cancel`, { reason: "enough" })).answer).toEqual({
    already_ended: false,
  });
  expect((await me(`GET /runs/${runId}`)).answer).toMatchObject({
    status: "cancelled",
    cancel_reason: "enough",
  });
});

test("the API describes itself, and the documentation has every route", async () => {
  const { mine: me } = await openApi(plainRuns());
  const { answer } = await me("GET ");
  expect(answer.openapi).toBe("3.1.0");
  const described = Object.entries(answer.paths).flatMap(([path, methods]) =>
    Object.keys(methods as object).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const wanted = ROUTES.map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
  expect(described.toSorted()).toEqual(wanted.toSorted());
  const text = JSON.stringify(answer);
  const refs = [...text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(([, name = ""]) => name);
  expect([...new Set(refs)].filter((name) => !(name in answer.components.schemas))).toEqual([]);
  expect(text).not.toContain("$defs");
  const page = readFileSync("docs/api.md", "utf8");
  for (const { method, path, does } of ROUTES) {
    expect(page).toContain(`### ${method} /api${path.replaceAll(/:(\w+)/g, "{$1}")}\n\n${does}`);
  }
});
