/** Names the people who log in to this server with password and one-time code. */
import { text } from "node:stream/consumers";
import { isoTime } from "../core/clock.ts";
import { parsedUrl } from "../core/unknown.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import { withLocalRuns } from "./local-runs.ts";
import { complain, say, unknownAction } from "./output.ts";
import { askKey, atTerminal } from "./setup.ts";

const ACTIONS = ["list", "add", "reset", "remove", "logout"];
const LEAST_PASSWORD = 10;

/** Works on the storage alone: servers that use it see the change at the next request. */
export async function runOwner(args: CommandArguments): Promise<ExitCode> {
  const [action = "list", name = "", ...others] = args.positionals;
  if (!ACTIONS.includes(action)) return unknownAction("owner", action, ACTIONS);
  if (others.length > 0)
    return complain("Other users can see arguments: owner add asks for the password.", 2);
  if (action !== "list" && !/^[A-Za-z0-9._@+-]{1,128}$/.test(name))
    return complain(`owner ${action} needs a name of letters, digits and . _ @ + -, at most 128.`, 2);
  return withLocalRuns(args, false, async ({ operator: { logins }, dataCommand }) => {
    const owners = await logins.rows.read<{ name: string; created_at: number }>("owners");
    if (action === "list") {
      const lines = owners.map((owner) => `${owner.name}  added ${isoTime(owner.created_at)}`);
      const none = `Nobody can log in yet. Add a person: ${dataCommand("owner", "add", "NAME")}`;
      return say(...(lines.length === 0 ? [none] : lines));
    }
    const isKnown = owners.some((owner) => owner.name === name);
    if (isKnown !== (action !== "add"))
      return complain(`${name} is ${isKnown ? "already" : "not"} on the list.`);
    const password = action === "add" || action === "reset" ? await readPassword() : undefined;
    if (password !== undefined && password.length < LEAST_PASSWORD)
      return complain(`The password needs at least ${LEAST_PASSWORD} characters. Nothing was changed.`);
    await logins.logOut(name);
    if (action !== "logout") await logins.rows.change("remove owner", { name });
    if (password === undefined) return say(`${name} is logged out everywhere.`);
    const address = (await logins.add(name, password)) ?? "";
    const key = parsedUrl(address)?.searchParams.get("secret");
    const lines = [
      "Add the key or the address to an authenticator app. They are shown only now:",
      `  ${key}`,
    ];
    return say(`${name} can log in with the password and a one-time code.`, ...lines, `  ${address}`);
  });
}

const readPassword = async (): Promise<string> =>
  process.stdin.isTTY
    ? ((await atTerminal((asker) => askKey("Password", "to change nothing", asker)).catch(() => "")) ?? "")
    : (await text(process.stdin)).trimEnd();
