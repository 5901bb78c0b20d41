import { commandLine } from "../../config/program.ts";
import { isFinal, type Run } from "../../runs/run.ts";
import type { CommandArguments, ExitCode } from "../command.ts";
import { showLive, type LiveOptions } from "../terminal/live-run.ts";
import { complain, LOCAL, unknownRun, withLocalRuns, type LocalRuns } from "../terminal/local-runs.ts";

/**
 * Starts a run, or takes up one that was left, and works on it in this process. Interrupted, it is parked: a
 * later call, or any server of the same workspace, goes on with it.
 */
export async function runTask(args: CommandArguments): Promise<ExitCode> {
  const { flags, positionals } = args;
  const resume = textOf(flags["resume"]);
  const [task] = positionals;
  if ((task === undefined || task.trim() === "") === (resume === undefined)) {
    return complain(`Say what to do: ${commandLine(args.host, ["run"])} "TASK", or --resume RUN.`, 2);
  }
  return withLocalRuns(args, true, async (local) => {
    const runId = resume ?? (await start(local, task ?? "", textOf(flags["thread"])));
    if (runId === undefined) return 1;
    const view = await local.runs.view(LOCAL, runId);
    if (view === undefined) return unknownRun(local, runId);
    if (local.config.workspace === undefined && !isFinal(view.run.status)) {
      return complain("This folder is too wide to work in. Choose one with --workspace DIR.");
    }
    if (resume !== undefined)
      process.stderr.write(isFinal(view.run.status) ? isOver(view.run, local) : FOLLOWING);
    return showLive(local, runId, { json: flags["json"] === true, approvals: approvalsOf(args) });
  });
}

const FOLLOWING = "A run goes on in the workspace it was started in; elsewhere it is only shown.\n";

const isOver = (run: Run, { runCommand }: LocalRuns): string =>
  `Run ${run.id} is over (${run.status}). Its conversation goes on with\n  ${runCommand(run, "--thread", run.threadId)} "TASK"\n`;

const toldText = (runId: string): string =>
  `Run ${runId} is at work in this thread: it reads this at its next step.\n`;

async function start({ runs }: LocalRuns, task: string, threadId?: string): Promise<string | undefined> {
  const started = await runs.start(LOCAL, { task, ...(threadId === undefined ? {} : { threadId }) });
  if (started.ok) {
    if (started.how === "told") process.stderr.write(toldText(started.run.id));
    return started.run.id;
  }
  complain(started.message);
  return undefined;
}

/** Without a terminal nobody can be asked: the run stops for a decision, and can be taken up again. */
function approvalsOf({ flags }: CommandArguments): LiveOptions["approvals"] {
  if (flags["yes"] === true) return "approve";
  const canAsk = process.stdin.isTTY && process.stdout.isTTY && flags["json"] !== true;
  return canAsk ? "ask" : "stop";
}

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
