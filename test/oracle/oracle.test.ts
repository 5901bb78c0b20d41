// @module-tag long
// Thirty tasks are solved over the wire, several times.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { PrincipalRuns } from "../../src/runs/service.ts";
import { runIdOf, untilStatus } from "../e2e/support.ts";
import { openDeps, openHome, openWorld } from "../support/harness.ts";
import { WIRE_KEY, type WireReply, type WireRequest } from "../support/wire-server.ts";
import { isFault, isWireError } from "../support/wire-server-protocol.ts";
import { answerOf, type End, followRun, markOf, type OracleTask } from "./oracle.ts";
import { AGENT_TASKS } from "./tasks-agents.ts";
import { FILE_TASKS } from "./tasks-files.ts";

const TASKS: readonly OracleTask[] = [...FILE_TASKS, ...AGENT_TASKS];
const BROKEN = "with every fourth stream broken";

/** What happens to every fourth request of a task, in the place of `answer`. */
type Weather = (answer: WireReply, count: number) => WireReply;
const WEATHERS: Readonly<Record<string, Weather>> = {
  undisturbed: (answer) => answer,
  [BROKEN]: (answer) => (isFault(answer) || isWireError(answer) ? answer : { fault: "cut", answer }),
  "with every fourth request overloaded": (_answer, count) => {
    const error = { status: 529, message: "Overloaded", type: "overloaded_error" };
    return count % 8 === 3 ? error : { fault: "report", error };
  },
};

/** A model that answers as the ideal one, but for the weather; each task counts its own requests. */
function thinking(weather: Weather): (thought: { request: WireRequest }) => WireReply {
  const counts = new Map<OracleTask, number>();
  return ({ request }) => {
    const all = JSON.stringify(request.messages);
    const task = TASKS.find(({ name }) => all.includes(markOf(name)));
    if (!task) return { status: 400, message: "a request without a task" };
    const count = counts.get(task) ?? TASKS.indexOf(task) % 4;
    counts.set(task, count + 1);
    try {
      const answer = answerOf(task, request);
      return count % 4 === 3 ? weather(answer, count) : answer;
    } catch (error) {
      return { status: 400, message: `${task.name}: ${String(error)}` };
    }
  };
}

/** Does a task as its person would, and says what is wrong in the end. */
async function attempt(
  service: PrincipalRuns,
  task: OracleTask,
  workspace: string,
): Promise<string | undefined> {
  const views: End["views"][number][] = [];
  try {
    for (const asked of task.asked) {
      const isNew = typeof asked !== "string";
      const threadId = isNew ? undefined : views.at(-1)?.run.threadId;
      const text = `${markOf(task.name)} ${isNew ? asked.anew : asked}`;
      const started = await service.start("local", { task: text, ...(threadId ? { threadId } : {}) });
      if (!started.ok) throw new Error(started.message);
      const view = await followRun(service, started.run.id, task);
      views.push(view);
      const { status, failure } = view.run;
      if (status !== "completed") throw new Error(`${status}: ${failure?.message}`);
    }
    const last = views.at(-1)!.run;
    const tree = await service.runFiles("local", last.id);
    await task.check({
      answer: last.answer ?? "",
      views,
      file: (name) => {
        const path = join(workspace, task.name, name);
        return existsSync(path) ? readFileSync(path, "utf8") : undefined;
      },
      read: async (path) => {
        const page = await tree?.read(path);
        return page && "content" in page ? String(page.content) : undefined;
      },
    });
    return undefined;
  } catch (error) {
    return `${task.name}: ${String(error)}`;
  }
}

const files = Object.fromEntries(
  TASKS.flatMap(({ name, files = {} }) =>
    Object.entries(files).map(([file, text]) => [`${name}/${file}`, text]),
  ),
);

const isSolved = async (model: string, weather: string): Promise<void> => {
  const home = await openHome({ think: thinking(WEATHERS[weather]!), files });
  const OPENAI_BASE_URL = `${home.env["ANTHROPIC_BASE_URL"]}/v1`;
  const env = { ...home.env, DEEPAGENT_MODEL: model, OPENAI_API_KEY: WIRE_KEY, OPENAI_BASE_URL };
  const service = await openDeps({ ...home, env }).runs();
  const problems = await Promise.all(TASKS.map((task) => attempt(service, task, home.workspace)));
  expect(TASKS).toHaveLength(30);
  expect(problems.filter((problem) => problem !== undefined)).toEqual([]);
  expect(home.brain.refusals).toEqual([]);
};

const SOLVES = "an ideal model in the place of %s solves all 30 tasks %s";
test.each([["anthropic:claude-test", "undisturbed"]])(SOLVES, isSolved);
test.each([
  ["openai:gpt-4.1", BROKEN],
  ["anthropic:claude-test", BROKEN],
  ["anthropic:claude-test", "with every fourth request overloaded"],
])(SOLVES, { tags: "long" }, isSolved);

/** What those tasks come to for which nobody needs to be asked. */
const ANSWERS: Readonly<Record<string, string>> = {
  "three-facts": "The sum is 251.",
  pages: "the key is under the mat",
  trail: "the treasure is tea",
  delegate: "north: snow east: rain south: sun",
  "two-rounds": "Found gold",
  compaction: "The product is 120.",
};

test("a client over stdio is given the answers, with every fourth stream broken", async () => {
  const world = await openWorld("stdio", { think: thinking(WEATHERS[BROKEN]!), files });
  const client = await world.connect("v2-modern");
  const ask = async (name: string): Promise<string> => {
    const asked = TASKS.find((task) => task.name === name)?.asked[0] as string; // none of them begins anew
    const { structured } = await client.call("run_deep_agent", { task: `${markOf(name)} ${asked}` });
    const { answer } = await untilStatus(client, runIdOf({ structured }), "completed");
    return String(answer);
  };
  const names = Object.keys(ANSWERS);
  const answers = await Promise.all(names.map(ask));
  expect(Object.fromEntries(names.map((name, n) => [name, answers[n]]))).toEqual(ANSWERS);
});
