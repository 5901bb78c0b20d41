import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { bundled } from "../support/bundled.ts";
import { postgresSuite } from "../storage/postgres-suite.ts";
import { filesIn } from "../support/files-in.ts";
import type { JournalServer, Stored } from "./journal-server.ts";

/** Kills for each storage: a point of the run each, from its beginning to its end. */
const KILLS = Number(process.env["DEEPAGENT_JOURNAL_KILLS"] ?? 12);

/** Runs the server; `undefined` if it was killed. */
async function serve(options: JournalServer): Promise<Stored | undefined> {
  const program = await bundled("test/crash/journal-server.ts");
  const child = spawn(process.execPath, [program, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [printed, [code, signal]] = await Promise.all([text(child.stdout), once(child, "close")]);
  if (signal === "SIGKILL") return undefined;
  expect(code).toBe(0);
  return JSON.parse(printed) as Stored;
}

const callsOf = (
  { events }: Stored,
  kind: "tool_started" | "tool_finished" | `subagent_${"started" | "finished"}`,
) =>
  events
    .flatMap((event) =>
      event.kind === kind
        ? [JSON.stringify([event.agent.map(({ callId }) => callId), event.data.callId])]
        : [],
    )
    .toSorted();

/** Checks that the journal has everything that the threads have. */
function expectWhole(stored: Stored): void {
  const { status, events, replies, usage } = stored;
  const called = events.flatMap((event) => (event.kind === "model_called" ? [event.data] : []));
  const texts = called.flatMap((data) => data.text.match(/said \d+\.\d+\./g) ?? []);
  expect(status).toBe("completed");
  expect(replies.length).toBeGreaterThanOrEqual(9);
  expect(replies.filter((reply) => !texts.includes(reply))).toEqual([]);
  const sum = (of: "inputTokens" | "outputTokens") =>
    called.reduce((total, data) => total + data.usage[of], 0);
  expect([usage.inputTokens, usage.outputTokens]).toEqual([sum("inputTokens"), sum("outputTokens")]);
  expect(callsOf(stored, "tool_finished")).toEqual(callsOf(stored, "tool_started"));
  expect(callsOf(stored, "subagent_finished")).toEqual(callsOf(stored, "subagent_started"));
  expect(callsOf(stored, "subagent_started")).toHaveLength(4);
  expect(events.flatMap((event) => (event.kind === "goal_judged" ? [event.data.round] : []))).toEqual([1, 2]);
  expect(events.filter(({ kind }) => kind === "goal_ended")).toMatchObject([{ data: { outcome: "met" } }]);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
}

async function killAtPoints(place: () => JournalServer["place"]): Promise<void> {
  const calm = await serve({ place: place() });
  if (calm === undefined) throw new Error("The server was killed.");
  expectWhole(calm);
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const killed = place();
    // Odd and even points alternate: those before and those after a write.
    const killAt = 1 + Math.floor(((kill - 0.5) * calm.points) / KILLS);
    expect(await serve({ place: killed, killAt })).toBeUndefined();
    const stored = await serve({ place: killed });
    if (stored === undefined) throw new Error("The server was killed.");
    expectWhole(stored);
  }
}

test(
  "the journal in SQLite lacks nothing that the threads have, wherever the server is killed",
  { tags: "long", timeout: 600_000 },
  () => killAtPoints(() => filesIn()),
);

const postgres = postgresSuite();

test(
  "the journal in Postgres lacks nothing that the threads have, wherever the server is killed",
  { tags: ["long", "postgres"], timeout: 600_000 },
  () => killAtPoints(() => ({ url: postgres.url(), schema: postgres.newSchema() })),
);
