import { closestName } from "../../core/closest-names.ts";
import type { CommandArguments, ExitCode } from "../command.ts";
import { showLive } from "../terminal/live-run.ts";
import { complain, withLocalRuns, type LocalRuns } from "../terminal/local-runs.ts";
import { answerRun } from "./answer.ts";
import { cancelRun } from "./cancel.ts";
import { listRuns } from "./list.ts";
import { openRun } from "./open.ts";
import { listPoints } from "./points.ts";
import { pruneRuns } from "./prune.ts";
import { showRun } from "./show.ts";
import { tellRun } from "./tell.ts";

/** One thing to do with the runs of the data directory; `words` follow the action. */
type Action = (local: LocalRuns, words: readonly string[], args: CommandArguments) => Promise<ExitCode>;

const ACTIONS: Readonly<Record<string, { words: readonly [least: number, most: number]; act: Action }>> = {
  list: { words: [0, 0], act: (local, _words, { flags }) => listRuns(local, flags) },
  show: { words: [1, 1], act: (local, [run = ""], { flags }) => showRun(local, run, flags) },
  watch: {
    words: [1, 1],
    act: (local, [run = ""], { flags }) =>
      showLive(local, run, { json: flags["json"] === true, approvals: "wait" }),
  },
  answer: { words: [1, 2], act: (local, [run = "", id], { flags }) => answerRun(local, run, id, flags) },
  cancel: { words: [1, 1], act: (local, [run = ""], { flags }) => cancelRun(local, run, flags) },
  tell: { words: [2, 2], act: (local, [run = "", text = ""]) => tellRun(local, run, text) },
  prune: { words: [0, 0], act: (local, _words, { flags }) => pruneRuns(local, flags) },
  open: { words: [1, 1], act: (local, [run = ""], { flags }) => openRun(local, run, flags) },
  points: { words: [1, 1], act: (local, [run = ""], { flags }) => listPoints(local, run, flags) },
};

/** Works on the data directory alone: whether a server runs, and which, makes no difference. */
export async function runRuns(args: CommandArguments): Promise<ExitCode> {
  const [name = "", ...words] = args.positionals;
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined;
  if (action === undefined) {
    const names = Object.keys(ACTIONS);
    const meant = closestName(name, names);
    const what = name === "" ? "runs needs an action" : `runs has no action "${name}"`;
    return complain(
      `${what}${meant === undefined ? `: ${names.join(", ")}` : `; did you mean ${meant}?`}`,
      2,
    );
  }
  const [least, most] = action.words;
  if (words.length < least) {
    return complain(`runs ${name} needs the id of a run${least > 1 ? " and a text" : ""}.`, 2);
  }
  if (words.length > most) return complain(`Unexpected argument "${words[most]}" for runs ${name}.`, 2);
  return withLocalRuns(args, false, (local) => action.act(local, words, args));
}
