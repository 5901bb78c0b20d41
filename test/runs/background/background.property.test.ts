/** Runs with background subagents on servers that are killed at any moment. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { attempts } from "../../support/effort.ts";
import type { ScriptedReply, ScriptedRequest } from "../../support/scripted-model.ts";
import { ME, connect, databaseFile, note, openServer, startRun } from "../support.ts";
import { agentWith, repliesIn, reportsIn, start, startedIn } from "./support.ts";

const CHILDREN = 3;
const NOTES = 2;

/** Starts the children one after the other, tells each something, waits for the last, and says what was reported. */
function parent(request: ScriptedRequest): ScriptedReply {
  const started = startedIn(request);
  if (started.length < CHILDREN) return { toolCalls: [start(`child ${started.length}`)] };
  const last = started.at(-1) ?? "";
  const step = repliesIn(request) - CHILDREN;
  if (step === 0) {
    return {
      toolCalls: started.map((id) => ({
        name: "update_async_task",
        args: { task_id: id, message: "go on" },
      })),
    };
  }
  if (step === 1) return { toolCalls: [{ name: "check_async_task", args: { task_id: last } }] };
  return { text: reportsIn(request).join("\n") };
}

/** Notes what it is told to, and says so. */
function child(request: ScriptedRequest): ScriptedReply {
  const [task] = request.messages.filter(({ type }) => type === "human");
  const made = repliesIn(request);
  const name = task?.text.slice(-1) ?? "";
  return made < NOTES ? { toolCalls: [note(`${name}.${made}`)] } : { text: `report of ${name}` };
}

/** Waits until `count` more events are stored, or the run has ended. */
async function afterEvents(
  server: ReturnType<typeof openServer>,
  runId: string,
  count: number,
): Promise<void> {
  const { run } = (await server.service.as({ principal: ME }).read.view(runId)) ?? {};
  let seen = 0;
  const stop = AbortSignal.timeout(10_000);
  for await (const _event of server.service
    .as({ principal: ME })
    .watch.events(runId, { after: run?.lastSeq ?? 0, signal: stop })) {
    if (++seen >= count) return;
  }
}

test("every report comes once, every effect at most once, and nothing is left open, however often servers are killed", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ events: fc.integer({ min: 1, max: 9 }), ms: fc.integer({ min: 0, max: 15 }) }), {
        maxLength: 6,
      }),
      fc.integer({ min: 1, max: 4 }),
      async (kills, concurrentRuns) => {
        const file = databaseFile();
        const notes: string[] = [];
        const agent = agentWith(parent, child, { notes });
        const options = { concurrentRuns, crashLimit: 1000 };
        let server = openServer(file, agent, options);
        const run = await startRun(server.service, "the task");
        for (const { events, ms } of kills) {
          await afterEvents(server, run.id, events);
          await new Promise((resolve) => setTimeout(resolve, ms));
          server.kill();
          server = openServer(file, agent, options);
        }
        for await (const _event of server.service
          .as({ principal: ME })
          .watch.events(run.id, { signal: AbortSignal.timeout(20_000) }));
        const view = await server.service.as({ principal: ME }).read.view(run.id);
        expect(view?.run.status).toBe("completed");
        const reports = view?.run.answer?.match(/report of \d/g) ?? [];
        expect(reports.toSorted()).toEqual(["report of 0", "report of 1", "report of 2"]);
        expect(new Set(notes).size).toBe(notes.length);
        expect(view?.subagents.map(({ status }) => status)).toEqual(["completed", "completed", "completed"]);
        const database = connect(file);
        expect(database.prepare("SELECT count(*) AS open FROM runs WHERE ended_at IS NULL").get()).toEqual({
          open: 0,
        });
        expect(database.prepare("SELECT count(*) AS runs FROM runs").get()).toEqual({ runs: 1 + CHILDREN });
        await server.service.close();
      },
    ),
    attempts(12),
  );
});
