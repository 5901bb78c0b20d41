/** Lists and ends links to runs and subscriptions to events, of all principals. */
import { durationText, isoTime } from "../core/clock.ts";
import { displayText, oneLine } from "../core/text.ts";
import type { Access } from "../runs/shares.ts";
import { counted } from "../tools/format.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import { type LocalRuns, withLocalRuns } from "./local-runs.ts";
import { complain, say, unknownAction } from "./output.ts";

const NAMES = ["list", "revoke"];

/** Works on the data directory alone: servers that use it see the change. */
export async function runAccess(args: CommandArguments): Promise<ExitCode> {
  const [name = "list", ...ids] = args.positionals;
  if (!NAMES.includes(name)) return unknownAction("access", name, NAMES);
  if ((name === "list") !== (ids.length === 0))
    return complain(name === "list" ? "access list takes no id." : "access revoke needs an id.", 2);
  return withLocalRuns(args, false, async (local) => {
    const all = await local.operator.allAccess();
    if (name === "revoke") return revoke(local, all, ids);
    if (args.flags["json"] === true) return say(...all.map((one) => JSON.stringify(documentOf(one))));
    return say(...(all.length === 0 ? ["There are no links and no subscriptions."] : all.map(lineOf)));
  });
}

async function revoke({ operator, dataCommand }: LocalRuns, all: Access[], ids: string[]): Promise<ExitCode> {
  for (const word of ids) {
    const [one, ...others] = all.filter(({ id }) => id.startsWith(word));
    const runs = one && others.length === 0 ? operator.as({ principal: one.principal }) : undefined;
    if (one === undefined || !(await runs?.access.revoke(one.id))) {
      const what = `${oneLine(word, 80)} names no link or subscription, or several`;
      return complain(`${what}. ${dataCommand("access", "list")} shows all.`);
    }
  }
  return say(`Revoked ${counted(ids.length, "entry", "entries")}.`);
}

const documentOf = (access: Access) => ({
  id: access.id,
  kind: access.kind,
  principal: access.principal,
  has_token: access.credential !== undefined,
  run_id: access.runId,
  run: access.name,
  event: access.type,
  host: hostOf(access),
  created_at: access.createdAt === undefined ? undefined : isoTime(access.createdAt),
  expires_at: isoTime(access.expiresAt),
  opened: access.opened,
});

function lineOf(access: Access): string {
  const { id, kind, principal, name = "all runs", type, opened, createdAt, expiresAt } = access;
  const facts = [
    kind === "link" ? `opened ${opened ?? 0} times` : `${type} to ${hostOf(access)}`,
    ...(createdAt === undefined ? [] : [`made ${isoTime(createdAt)}`]),
    `ends in ${durationText(expiresAt - Date.now())}`,
    `by ${oneLine(displayText(principal), 60)}`,
  ];
  return `${id}  ${kind}  ${facts.join(", ")}: ${oneLine(displayText(name), 60)}`;
}

const hostOf = ({ url }: Access): string | undefined =>
  url !== undefined && URL.canParse(url) ? new URL(url).host : undefined;
