/** Lists and ends connected clients, links to runs and subscriptions to events, of all principals. */
import { isoTime } from "../core/clock.ts";
import { displayText, duration, oneLine } from "../core/text.ts";
import type { Access, Holds } from "../runs/shares.ts";
import { createAuthenticator, isIssued, tokenVerifier } from "../server/auth/auth.ts";
import { counted } from "../tools/format.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import { withLocalRuns } from "./local-runs.ts";
import { complain, readAction, say, sayRows } from "./output.ts";
import { parsedUrl } from "../core/unknown.ts";

/** Works on the data directory alone: servers that use it see the change. */
export async function runAccess(args: CommandArguments): Promise<ExitCode> {
  const action = readAction("access", args.positionals);
  if (typeof action === "number") return action;
  const { name, words: ids } = action;
  return withLocalRuns(args, false, async (local) => {
    const all = await local.operator.allAccess();
    if (name === "revoke") {
      for (const word of ids) {
        const [one, ...others] = all.filter(({ id }) => id.startsWith(word));
        const runs = one && others.length === 0 ? local.operator.as({ principal: one.principal }) : undefined;
        if (one === undefined || !(await runs?.access.revoke(one.id))) {
          const what = `${oneLine(word, 80)} names no client, link or subscription, or several`;
          return complain(`${what}. ${local.dataCommand("access", "list")} shows all.`);
        }
      }
      return say(`Revoked ${counted(ids.length, "entry", "entries")}.`);
    }
    const { tokens } = local.config.http;
    const { holds } = createAuthenticator({ verifiers: [tokenVerifier(() => tokens)] });
    const rows = await Promise.all(all.map(async (one) => [one, await loadToken(one, holds)] as const));
    if (args.flags["json"] === true) return sayRows(rows.map((row) => toRow(...row)));
    if (rows.length === 0) return say("There are no clients, links or subscriptions.");
    return say(...rows.map((row) => accessLine(...row)));
  });
}

type TokenState = "accepted" | "refused" | "not_checked";

/** Checks the token of an entry against the configuration. Only a server can ask an authorization server about one. */
async function loadToken(access: Access, holds: Holds): Promise<TokenState | undefined> {
  if (access.credential === undefined) return undefined;
  if (isIssued(access.credential)) return "not_checked";
  return (await holds(access)) ? "accepted" : "refused";
}

const toRow = (access: Access, token: TokenState | undefined): object => {
  const { type: event, name: run, credential, url: _url, ...facts } = access;
  const own = access.kind === "client" ? { client: run, scopes: event } : { run, event };
  return { ...facts, hasToken: credential !== undefined, token, ...own, host: hostName(access) };
};

function accessLine(access: Access, token: TokenState | undefined): string {
  const { id, kind, principal, name = "all runs", type, opened, createdAt, usedAt, expiresAt } = access;
  const said = {
    accepted: "with a token of this configuration",
    refused: "ended: this configuration does not accept its token",
    not_checked: "with an OAuth token that is not checked here and may have ended",
  };
  const facts = [
    kind === "link" ? `opened ${opened ?? 0} times` : `${type} to ${hostName(access) ?? "this server"}`,
    ...(createdAt === undefined ? [] : [`made ${isoTime(createdAt)}`]),
    ...(usedAt === undefined ? [] : [`last used ${isoTime(usedAt)}`]),
    `ends in ${duration(expiresAt - Date.now())}`,
    `by ${oneLine(displayText(principal), 60)}`,
    ...(token === undefined ? [] : [said[token]]),
  ];
  return `${id}  ${kind}  ${facts.join(", ")}: ${oneLine(displayText(name), 60)}`;
}

const hostName = ({ kind, url }: Access): string | undefined =>
  kind === "client" ? url : parsedUrl(url ?? "")?.host;
