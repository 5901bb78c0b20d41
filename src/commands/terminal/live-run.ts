import { displayText } from "../../core/text.ts";
import { isFinal, type RunView } from "../../runs/run.ts";
import { eventDocument, runDocument } from "../../server/resources/run-document.ts";
import { colorsFor } from "../colors.ts";
import type { ExitCode } from "../command.ts";
import { askOpenApprovals } from "./ask-run.ts";
import { followRun } from "./follow-run.ts";
import { complain, LOCAL, unknownRun, type LocalRuns } from "./local-runs.ts";
import { pictureOf, runEnd } from "./run-end.ts";
import { liveScreen, plainScreen, type Screen } from "./screen.ts";
import { terminalAsker } from "./terminal.ts";

export interface LiveOptions {
  /** JSON lines instead of a picture: every event, then the run. */
  json: boolean;
  /** What to do with approvals: put them to the person, approve them, or leave them to someone else. */
  approvals: "ask" | "approve" | "stop" | "wait";
}

/** Shows a run until it ends, stops for a decision nobody here takes, or is interrupted. */
export async function showLive(local: LocalRuns, runId: string, options: LiveOptions): Promise<ExitCode> {
  const { runs, interrupt } = local;
  const colors = colorsFor(process.stdout, process.env);
  const screen = options.json ? undefined : openScreen();
  const write = (value: object): void => void process.stdout.write(`${JSON.stringify(value)}\n`);
  let view: RunView | undefined;
  try {
    view = await followRun({
      runs,
      principal: LOCAL,
      runId,
      signal: interrupt.signal,
      show: (now) => screen?.show(pictureOf(now)),
      ...(options.json ? { onEvent: (event) => write({ type: "event", ...eventDocument(event) }) } : {}),
      decide: (now) => decide(now, local, options, screen),
    });
  } finally {
    screen?.close();
  }
  if (view === undefined) return unknownRun(local, runId);
  if (options.json) write({ type: "run", ...runDocument(view) });
  else process.stdout.write(runEnd(view, colors));
  if (view.run.status === "completed") return 0;
  return isFinal(view.run.status) ? 1 : complain(howToGoOn(view, local));
}

function openScreen(): Screen {
  const isLive = process.stdout.isTTY && process.env["TERM"] !== "dumb";
  const colors = colorsFor(process.stdout, process.env);
  return isLive ? liveScreen(process.stdout, colors) : plainScreen(process.stdout, () => performance.now());
}

async function decide(
  view: RunView,
  { runs, interrupt }: LocalRuns,
  { approvals }: LiveOptions,
  screen: Screen | undefined,
): Promise<"go on" | "stop"> {
  if (approvals === "wait") return "go on";
  if (approvals === "stop") return "stop";
  const colors = colorsFor(process.stdout, process.env);
  if (approvals === "approve") {
    for (const { id, status, preview } of view.approvals) {
      if (status !== "pending") continue;
      screen?.print(`${colors.yellow("✔ approved")} (--yes): ${displayText(preview.summary)}`);
      await runs.decide(LOCAL, view.run.id, id, { type: "approve" }, "terminal --yes");
    }
    return "go on";
  }
  screen?.pause();
  try {
    const asker = terminalAsker(colors, () => interrupt.abort());
    await askOpenApprovals(view, { runs, principal: LOCAL, asker });
    return "go on";
  } catch (error) {
    if (interrupt.signal.aborted) return "stop";
    throw error;
  } finally {
    screen?.resume();
  }
}

function howToGoOn({ run }: RunView, { runsCommand, runCommand }: LocalRuns): string {
  return run.status === "input_required"
    ? `Run ${run.id} waits for a decision. Decide here, or in a browser:\n  ${runsCommand("answer", run.id)}\n  ${runsCommand("open", run.id)}`
    : `Run ${run.id} is not over. Go on with it:\n  ${runCommand(run, "--resume", run.id)}`;
}
