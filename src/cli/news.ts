/** Actions on messages about runs that no receiver has accepted yet. */
import { duration, oneLine, showControl } from "../core/text.ts";
import type { WaitingNews } from "../runs/news.ts";
import { counted } from "../tools/format.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import { type LocalRuns, withLocalRuns } from "./local-runs.ts";
import { complain, readAction, say, sayRows } from "./output.ts";
import { SHORT_ID } from "./runs.ts";
import { fit, outputStyle } from "./terminal/text.ts";

/** Works on the data directory alone: servers that use it see the change. */
export async function runNews(args: CommandArguments): Promise<ExitCode> {
  const action = readAction("news", args.positionals);
  if (typeof action === "number") return action;
  const { name, words } = action;
  if (name === "list") return withLocalRuns(args, false, (local) => list(local, args));
  const wrong = words.find((word) => !/^[1-9]\d{0,14}$/.test(word));
  if (wrong !== undefined || (words.length === 0) !== (args.flags["all"] === true)) {
    const missing = "the numbers of messages, such as 12, or --all for those that were given up";
    return complain(`news ${name} needs ${missing}.`, 2);
  }
  const numbers = words.length === 0 ? undefined : words.map(Number);
  return withLocalRuns(args, false, async (local) => {
    const { outbox } = local.operator;
    const count = await (name === "retry" ? outbox.retry(numbers) : outbox.drop(numbers));
    const wanted = new Set(numbers).size;
    if (count < wanted)
      return complain(
        `${wanted - count} of these messages do not exist. ${local.dataCommand("news", "list")} shows all.`,
      );
    const what = counted(count, "message");
    if (name === "drop") return say(`Dropped ${what}.`);
    return say(`${what} will be sent again by a server that has the channel.`);
  });
}

async function list({ operator, dataCommand }: LocalRuns, { flags }: CommandArguments): Promise<ExitCode> {
  const found = await operator.outbox.list(500);
  if (flags["json"] === true)
    return sayRows(
      found.map(({ target: channel, type: event, dueAt: nextAttemptAt, name: _run, ...one }) => {
        return {
          ...one,
          state: nextAttemptAt === undefined ? "given_up" : "waiting",
          channel,
          event,
          nextAttemptAt,
        };
      }),
    );
  if (found.length === 0) return say("All messages were delivered.");
  const { colors, rowWidth: width } = outputStyle();
  for (const one of found) {
    const { number, target, type, runId, problem = "" } = one;
    const head = `${String(number).padStart(4)}  ${newsState(one).padEnd(24)}  ${target}  ${type}`;
    say(fit(`${head}  ${runId.slice(0, SHORT_ID)}  ${oneLine(showControl(problem), 200)}`.trimEnd(), width));
  }
  if (process.stdout.isTTY) {
    say(colors.dim("number, state, channel, event, run, last problem"));
    say(colors.dim(`To send again: ${dataCommand("news", "retry", "NUMBER")}`));
  }
  return 0;
}

function newsState({ attempts, dueAt, createdAt }: WaitingNews): string {
  const now = Date.now();
  if (dueAt === undefined) return `given up after ${attempts}`;
  if (attempts === 0) return `waiting for ${duration(now - createdAt)}`;
  return `attempt ${attempts + 1} ${dueAt <= now ? "due" : `in ${duration(dueAt - now)}`}`;
}
