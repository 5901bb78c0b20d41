/** What commands about runs print, called as functions. */
import { expect, test, vi } from "vitest";
import { runEnd } from "../../../src/cli/run.ts";
import { listRuns } from "../../../src/cli/runs.ts";
import type { LocalRuns } from "../../../src/cli/local-runs.ts";
import { colorsFor } from "../../../src/cli/terminal/text.ts";
import type { RunService } from "../../../src/runs/service.ts";
import { agentWith, reportsIn, start, startedIn } from "../../runs/background/support.ts";
import { aView } from "../../server/support.ts";
import { ME, databaseFile, openServer, reach, startRun } from "../../runs/support.ts";

const COLORS = colorsFor({}, {});

async function printed(service: RunService, act: (local: LocalRuns) => Promise<unknown>): Promise<string> {
  const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const runs = service.as({ principal: ME });
  const runsCommand = (...words: readonly string[]): string => `runs ${words.join(" ")}`;
  try {
    // The parts of it that these commands use.
    await act({ runs, operator: service, runsCommand } as unknown as LocalRuns);
    return write.mock.calls.map(([text]) => String(text)).join("");
  } finally {
    write.mockRestore();
  }
}

test("agents in the background are not counted as runs of other people", async () => {
  const agent = agentWith(
    (request) => {
      if (reportsIn(request).length > 0) return { text: "all told" };
      return startedIn(request).length > 0 ? { text: "I wait." } : { toolCalls: [start("child: look")] };
    },
    () => ({ text: "found it" }),
  );
  const { service } = openServer(databaseFile(), agent);
  const { id } = await startRun(service, "the task");
  await reach(service, id, "completed");
  const own = await printed(service, (local) => listRuns(local, {}));
  expect(own).toContain(id);
  expect(own).not.toContain("other users");
  const theirs = await service.as({ principal: "ada" }).control.start({ task: "hers" });
  expect(theirs.ok).toBe(true);
  expect(await printed(service, (local) => listRuns(local, {}))).toContain(
    "1 more run belongs to other users:",
  );
});

test("the last message of a run without an answer is not called one, and numbers are those of the page", () => {
  const usage = { inputTokens: 30_273, outputTokens: 1200, cachedInputTokens: 0 };
  const run = { status: "cancelled", cancelReason: "enough", answer: "I begin.", usage } as const;
  const models = [{ ...usage, calls: 3, model: "m", role: "main" as const, costUsd: 0.3959 }];
  const text = runEnd(aView({ run, models }), COLORS);
  expect(text).toContain("── Last message (incomplete)\n\nI begin.");
  expect(text).not.toContain("── Answer");
  expect(text).toContain("30k tokens in, 1,200 out · $0.40");
  expect(runEnd(aView({ run: { ...run, status: "completed" } }), COLORS)).toContain("── Answer");
});
