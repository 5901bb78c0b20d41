import { isApproval } from "../../src/runs/run.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunEvent } from "../../src/runs/events.ts";
import { follow, mine } from "../runs/support.ts";
import { APPROVE, type Asked } from "../server/raw-client.ts";
import { FORMS, overMemory } from "../server/tasks/raw.ts";
import { wronglyAnswered } from "../support/harness-brain.ts";
import { type Home, openDeps } from "../support/harness.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { restoreDump } from "./earlier-data/dump.ts";
import { type Facts, openStory, unpackData } from "./earlier-data/folder.ts";
import { IN_POSTGRES, LENDS, LENT_REPLIES, storyOf, type StoryName } from "./earlier-data/stories.ts";
import { inWorkspace } from "./support.ts";

type Opened = Awaited<ReturnType<typeof serve>>;

const answersTo = (keys: readonly string[], answer: object) =>
  Object.fromEntries(keys.map((key) => [key, answer]));

/** Serves the data of a story with the present program. */
async function serve(name: StoryName, home: Home, { runId, keys, state }: Facts) {
  const deps = openDeps(home);
  const rpc = await overMemory(deps);
  const runs = await deps.runs();
  /** Ids of the approvals that the earlier program asked for. */
  const approvals = keys.map((key) => key.split("@")[0]);
  return {
    runId,
    keys,
    approvals,
    rpc,
    runs,
    read: (file: string) => inWorkspace(home, file),
    /** Repeats the call that ended with the last questions, until nothing is asked. Gives the new questions. */
    repeat: async (answer: object, capabilities: object): Promise<object[]> => {
      const asked: object[] = [];
      const call = { name: "run_deep_agent", arguments: { task: storyOf(name).task } };
      let carried = { inputResponses: answersTo(keys, answer), requestState: state };
      for (;;) {
        const { result, error } = await rpc("tools/call", { ...call, ...carried }, capabilities);
        expect([error, result?.["isError"]]).toEqual([undefined, undefined]);
        if (result?.["resultType"] !== "input_required") return asked;
        const { inputRequests, requestState } = result as unknown as Asked;
        asked.push(...Object.values(inputRequests).map(({ params }) => params));
        carried = { inputResponses: answersTo(Object.keys(inputRequests), answer), requestState };
      }
    },
    /** The run when it has ended, or when one more approval is asked for: with all that happens once. */
    end: async () => {
      let asked = 0;
      const isUnexpected = ({ kind }: RunEvent): boolean =>
        kind === "approval_requested" && (asked += 1) > approvals.length;
      const events = await follow(runs, runId, isUnexpected);
      const view = await mine(runs).read.view(runId);
      expect(wronglyAnswered(home.brain)).toEqual([]);
      expect(home.brain.refusals).toEqual([]);
      return {
        status: view?.run.status,
        answer: view?.run.answer,
        approvals: view?.requests.filter(isApproval).map(({ id, status }) => [id, status]),
        calls: events.flatMap(callIn),
        ends: events.filter(({ kind }) => /^run_(completed|failed|cancelled)$/.test(kind)).length,
        // Each agent had its first reply before, and asks its model once more.
        steps: home.brain.thoughts.map(({ step }) => step),
      };
    },
  };
}

function callIn(event: RunEvent): string[] {
  if (event.kind === "tool_started") return [`${event.data.tool} started`];
  return event.kind === "tool_finished" ? [`${event.data.tool} ${event.data.status}`] : [];
}

const ONE_END = { status: "completed", ends: 1 };

async function open(name: StoryName): Promise<Opened> {
  const { home, facts } = await openStory(name);
  unpackData(name, home);
  return serve(name, home, facts);
}

async function bySignedState({ repeat, end, approvals, read }: Opened): Promise<void> {
  expect(await repeat(APPROVE, FORMS)).toEqual([]);
  expect(await end()).toEqual({
    answer: "Successfully wrote to '/workspace/new.md'",
    approvals: [[approvals[0], "approved"]],
    calls: ["write_file started", "write_file success"],
    ...ONE_END,
    steps: [1],
  });
  expect(read("new.md")).toBe("new\n");
}

async function byTaskKey({ rpc, runId: taskId, keys, end, approvals, read }: Opened): Promise<void> {
  await rpc("tasks/update", { taskId, inputResponses: answersTo(keys, APPROVE) });
  expect((await rpc("tasks/get", { taskId })).result).not.toHaveProperty("inputRequests");
  expect(await end()).toEqual({
    answer: expect.stringContaining("Successfully wrote to '/workspace/deep.md'") as string,
    approvals: [[approvals[0], "approved"]],
    calls: ["task started", "write_file started", "write_file success", "task success"],
    ...ONE_END,
    steps: [1, 1],
  });
  expect(read("deep.md")).toBe("deep\n");
}

test("an open approval is answered by its signed state", async () => bySignedState(await open("approval")));

test("a second question about one call is answered by its id", async () => {
  const { rpc, runId, approvals, end, read } = await open("second-question");
  const [first, second] = approvals;
  expect(second).toMatch(/-2:0$/);
  const answer = { run_id: runId, approval_id: second, decision: "approve" };
  const { result } = await rpc("tools/call", { name: "answer_deep_agent", arguments: answer });
  expect(result).not.toHaveProperty("isError");
  expect(await end()).toEqual({
    answer: "Successfully replaced 1 occurrence(s) in '/workspace/limits.txt'",
    approvals: [
      [first, "approved"],
      [second, "approved"],
    ],
    calls: ["edit_file started", "edit_file success"],
    ...ONE_END,
    steps: [1],
  });
  expect(read("limits.txt")).toBe("timeout = 9\nretries = 1000\n");
});

test("an approval of a subagent is answered by the key of its task", async () =>
  byTaskKey(await open("subagent-approval")));

test("a stored decision is delivered", async () => {
  const { approvals, end, read } = await open("stored-decision");
  expect(await end()).toEqual({
    answer: "Successfully replaced 1 occurrence(s) in '/workspace/lines.txt'",
    approvals: [[approvals[0], "approved"]],
    calls: ["edit_file started", "edit_file success"],
    ...ONE_END,
    steps: [1],
  });
  expect(read("lines.txt")).toBe("line\nend\n");
});

test("a command that had begun is not repeated, and its outcome is reported as unknown", async () => {
  const { approvals, end, read } = await open("begun-effect");
  expect(await end()).toEqual({
    answer: expect.stringContaining("it is unknown whether, or how far, it took effect") as string,
    approvals: [[approvals[0], "approved"]],
    calls: ["execute started", "execute error"],
    ...ONE_END,
    steps: [1],
  });
  expect(read("begun.txt")).toBe("begun\n");
});

test("a call of a lent model is answered by its signed state, and asked for once", async () => {
  const { runs, runId, rpc, repeat, end } = await open("lent-model");
  const waiting = (await mine(runs).read.modelCalls(runId)).map(({ request }) => request as object);
  // If the prompt or a tool has changed since, the run has to ask again, with another request.
  const asked = [...waiting, ...(await repeat(LENT_REPLIES[1] ?? {}, LENDS))];
  expect(new Set(asked.map((request) => JSON.stringify(request))).size).toBe(asked.length);
  expect(await end()).toEqual({
    answer: "noted",
    approvals: [],
    calls: ["write_file started", "write_file success"],
    ...ONE_END,
    steps: [],
  });
  const file = { name: "read_agent_file", arguments: { path: "/note.md", run_id: runId } };
  expect((await rpc("tools/call", file)).result).toMatchObject({
    structuredContent: { content: expect.stringContaining("kept") as string },
  });
});

describe("in Postgres", { tags: "postgres" }, () => {
  const endOf = { approval: bySignedState, "subagent-approval": byTaskKey };
  let postgres: PostgresServer;
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(() => postgres.stop());

  test.each(Object.entries(IN_POSTGRES))("%s", async (place, name) => {
    const { home, facts } = await openStory(name, place);
    const url = await restoreDump(place, postgres, home);
    await endOf[name](await serve(name, { ...home, env: { ...home.env, DEEPAGENT_STORAGE: url } }, facts));
  });
});
