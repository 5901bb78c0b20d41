import { isApproval } from "../../../src/runs/run.ts";
import { request as httpRequest } from "node:http";
import { describe, expect, test, vi } from "vitest";
import { ME, mine, databaseFile, openServer, reach, replaceIn, startRun } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import type { Delta, Tree } from "../../../src/server/views/tree.ts";
import { changedBy, htmlOf, sent } from "../../support/screen-html.ts";
import { plainRuns } from "../support.ts";
import { NOW, seededRuns } from "./seeded-runs.ts";
import { type Visitor, linkTo, openPages, visit, waitingRun } from "./support.ts";

interface Update {
  /** Says what a page shows that got it. */
  mark: string;
  title: string;
  waiting: number;
  html: string;
}

type Sent = Pick<Update, "title" | "waiting"> & { tree?: Tree[]; delta?: Delta };

/** Reads the updates of a screen until the stream ends, or `onUpdate` says that it has seen enough. */
function updates(
  { origin, headers: own }: Visitor,
  path: string,
  onUpdate: (all: readonly Update[]) => unknown = () => undefined,
): Promise<{ seen: Update[]; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { ...own, accept: "text/event-stream" };
    const request = httpRequest(origin + path, { headers }, (response) => {
      let text = "";
      const all = () => {
        let shown = sent.get(new URL(path, origin).searchParams.get("mark") ?? "") ?? [];
        return [...text.matchAll(/^id: (.*)\nevent: (?:snapshot|delta)\ndata: (.*)\n\n/gm)].map(
          ([, mark = "", data = ""]): Update => {
            const { tree, delta, ...about } = JSON.parse(data) as Sent;
            shown = tree ?? (delta ? changedBy(shown, delta) : shown);
            sent.set(mark, shown);
            return { mark, ...about, html: htmlOf(shown) };
          },
        );
      };
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
        if (onUpdate(all()) === true) response.destroy();
      });
      response.once("close", () => resolve({ seen: all(), text }));
    });
    request.once("error", reject).end();
  });
}

test("follow the run from where it is to its end", async () => {
  const { service, runId, view } = await waitingRun("a");
  const visitor = await visit(linkTo(await openPages(service), runId, "watch"));
  const { seen, text } = await updates(visitor, visitor.path, ({ length }) => {
    const approvalId = view.requests.filter(isApproval)[0]?.id ?? "";
    if (length === 1)
      void mine(service).requests.answer(
        runId,
        { requestId: approvalId, answer: { type: "approve" } },
        "test",
      );
  });
  expect(seen[0]).toMatchObject({ waiting: 1, html: expect.stringContaining("data-approval") });
  expect(seen.at(-1)).toMatchObject({ waiting: 0, html: expect.stringContaining("Completed") });
  expect(text).toMatch(/event: end\ndata: {}\n\n$/);
});

test("end when the server closes", async () => {
  const { service, runId } = await waitingRun("a");
  const pages = await openPages(service);
  const visitor = await visit(linkTo(pages, runId, "watch"));
  const { seen, text } = await updates(visitor, visitor.path, ({ length }) => {
    if (length === 1) void pages.close();
  });
  expect(seen).toHaveLength(1);
  expect(text).not.toContain("event: end");
});

test("of a run that has ended are one, and the page shows the answer", async () => {
  const service = plainRuns("the <answer>");
  const { id } = await startRun(service, "go");
  await reach(service, id, "completed");
  const visitor = await visit(linkTo(await openPages(service), id, "watch"));
  const { body } = await visitor.get(visitor.path);
  expect(body).toContain("the &#60;answer&#62;");
  expect((await updates(visitor, visitor.path)).seen).toHaveLength(1);
});

test("tell how a run moves up in line, on its own screen and on that of all", async () => {
  const model = scriptedModel(() => ({ text: "done", delayMs: 600_000 }));
  const { service } = openServer(databaseFile(), { model }, { concurrentRuns: 1 });
  const first = await startRun(service, "the first");
  await expect.poll(async () => (await mine(service).read.view(first.id))?.place).toBeUndefined();
  const [second, third] = [await startRun(service, "the second"), await startRun(service, "the third")];
  const visitor = await visit((await openPages(service)).link({ principal: ME, purpose: "watch" }));
  const following = new Set<string>();
  const placesOn = async (path: string, place: RegExp, last: string): Promise<string[]> => {
    const shown = ({ html }: Update): string => place.exec(html)?.slice(1, 3).join(" of ") ?? "";
    const { seen } = await updates(visitor, path, (all) => {
      following.add(path);
      return all.some((update) => shown(update) === last);
    });
    return [...new Set(seen.map(shown))];
  };
  const watched = Promise.all([
    placesOn(`/runs/${third.id}/work`, /<dt>Queued<\/dt>\s*<dd>(\d+) of (\d+)/, "1 of 1"),
    placesOn("/", /the third[^]*?number (\d+) of (\d+)/, "1 of 1"),
  ]);
  await expect.poll(() => following.size).toBe(2);
  await mine(service).control.cancel(second.id, "test");
  expect(await watched).toEqual([
    ["2 of 2", "1 of 1"],
    ["2 of 2", "1 of 1"],
  ]);
});

describe("of a page that shows what happened so far", () => {
  const HOUR_MS = 3_600_000;
  const follow = (path: string, body: string): string =>
    `${path}?mark=${/data-mark="([^"]+)"/.exec(body)?.[1] ?? ""}`;

  async function finished() {
    let now = 1_700_000_000_000;
    const service = plainRuns("the answer");
    const { id } = await startRun(service, "go");
    await reach(service, id, "completed");
    const visitor = await visit(linkTo(await openPages(service, () => (now += HOUR_MS)), id, "watch"));
    return { visitor, path: `/runs/${id}/work` };
  }

  test("are none, however much later it is", async () => {
    const { visitor, path } = await finished();
    const { seen, text } = await updates(visitor, follow(path, (await visitor.get(path)).body));
    expect([seen, text]).toEqual([[], "event: end\ndata: {}\n\n"]);
  });

  test("are none when it comes back with the mark of its newest update", async () => {
    const { visitor, path } = await finished();
    const [{ mark } = { mark: "" }] = (await updates(visitor, path)).seen;
    const again = await updates(visitor, `${path}?mark=${mark}`);
    expect(again.seen).toEqual([]);
  });

  test.each(["", "x", "1-", "-", "-1-x", "NaN-x", "1e99-x", "9007199254740991-x", "1700000000000-x"])(
    "are one where it says %j",
    async (mark) => {
      const { visitor, path } = await finished();
      expect((await updates(visitor, `${path}?mark=${mark}`)).seen).toHaveLength(1);
    },
  );

  test.each(["/", "/review"])("on %s are what happens next", async (path) => {
    let now = 1_700_000_000_000;
    const { service, runId, view, notes } = await waitingRun("a", "b");
    const pages = await openPages(service, () => (now += 1000));
    const visitor = await visit(pages.link({ principal: ME, purpose: "decide" }));
    const decide = (index: number) =>
      mine(service).requests.answer(
        runId,
        { requestId: view.requests.filter(isApproval)[index]?.id ?? "", answer: { type: "approve" } },
        "test",
      );
    const { body } = await visitor.get(path);
    await decide(0);
    await expect.poll(() => notes).toEqual(["a"]);
    await reach(service, runId, "input_required");
    const { seen } = await updates(visitor, follow(path, body), ({ length }) => {
      if (length === 1) void decide(1);
      return length === 2;
    });
    expect(seen.map(({ waiting }) => waiting)).toEqual([1, 0]);
  });
});

describe("a run's page tells what waits in other runs", () => {
  /** The counts of an open page while another run begins to wait. */
  async function counts(purpose: "all" | "one", end?: true): Promise<number[]> {
    const { service, runId, view } = await waitingRun("a");
    if (end) {
      await mine(service).requests.answer(
        runId,
        { requestId: view.requests.filter(isApproval)[0]?.id ?? "", answer: { type: "approve" } },
        "test",
      );
      await reach(service, runId, "completed");
    }
    const pages = await openPages(service);
    const link = { principal: ME, purpose: "decide" as const };
    const visitor = await visit(pages.link(purpose === "all" ? link : { ...link, run: runId }));
    const path = `/runs/${runId}/work`;
    const mark = /data-mark="([^"]+)"/.exec((await visitor.get(path)).body)?.[1] ?? "";
    const [looks, reads] = [vi.fn<() => void>(), vi.fn<() => void>()];
    replaceIn(service, "read", ({ countPending, view }) => ({
      countPending: () => (looks(), countPending()),
      view: (id) => (reads(), view(id)),
    }));
    const seen = updates(visitor, `${path}?mark=${mark}`, ({ length }) => length === 1);
    if (purpose === "all") {
      await expect.poll(() => looks.mock.calls.length).toBeGreaterThan(2);
      // Counting is all that an open page costs while nothing happens.
      expect(reads).toHaveBeenCalledTimes(1);
      const other = await startRun(service, "another");
      await reach(service, other.id, "input_required");
    }
    return (await seen).seen.map(({ waiting }) => waiting);
  }

  test("while it waits itself", async () => expect(await counts("all")).toEqual([2]));
  test("when it has ended", async () => expect(await counts("all", true)).toEqual([1]));
  test("but not to a browser that may see this run only", async () =>
    expect(await counts("one", true)).toEqual([]));
});

test("a list of runs in several folders names them, and so does the head of a run", async () => {
  const { service, runs } = await seededRuns();
  const pages = await openPages(service, () => NOW, { folderOf: ({ environment }) => environment });
  const visitor = await visit(pages.link({ principal: ME, purpose: "watch" }));
  const tags = async (path: string) =>
    [...(await visitor.get(path)).body.matchAll(/class="s cut block"\s*>\s*<span class="tag">([^<]*)/g)].map(
      ([, name]) => name,
    );
  expect(new Set(await tags("/"))).toEqual(new Set(["tide-alarms", "night-logs"]));
  expect(await tags("/?status=failed")).toEqual([]);
  expect((await visitor.get(`/runs/${runs.failed}/work`)).body).toMatch(
    /<a href="\/">Runs<\/a>[^]*?>night-logs</,
  );
});

test("every screen counts all that waits, and says that more come than it shows", async () => {
  const { service, runId } = await waitingRun(...Array.from({ length: 60 }, (_, index) => `note ${index}`));
  await expect.poll(() => mine(service).read.countPending()).toBe(60);
  const visitor = await visit((await openPages(service)).link({ principal: ME, purpose: "decide" }));
  const changes = `/runs/${runId}/files/none?view=changes`;
  for (const path of ["/", "/review", "/files", `/runs/${runId}/work`, changes]) {
    const { body } = await visitor.get(path);
    expect(body).toContain("<title>(60) ");
    expect(body).toContain('<span class="count amber">60</span>');
  }
  expect((await visitor.get("/")).body).toContain(">52 more</a>");
  expect((await visitor.get("/review")).body).toContain("10 more are shown when these are decided.");
});

test("a browser that may start nothing is not told to start a run there", async () => {
  const pages = await openPages(plainRuns());
  const home = async (purpose: "watch" | "decide") =>
    (await (await visit(pages.link({ principal: "nobody", purpose }))).get("/")).body;
  expect(await home("watch")).toContain("Start one from any MCP client");
  expect(await home("decide")).toContain("Start one here, or from any MCP client");
});
