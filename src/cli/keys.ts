/**
 * Keys of models and search providers in the system's keychain: lists their names, stores one, deletes one. Prints no
 * value.
 */
import { buffer } from "node:stream/consumers";
import { KEY_NAMES, variable } from "../agent/models/choose.ts";
import type { HostFacts } from "../config/paths.ts";
import { anyText } from "../backends/encoding.ts";
import { commandLine } from "../config/program.ts";
import { forgetSecret, keepSecret, readSecret } from "../core/keychain.ts";
import { didYouMean } from "../core/options.ts";
import { SEARCH_KEYS } from "../web/search/choose.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import { complain, say } from "./output.ts";
import { askKey, atTerminal } from "./setup.ts";

export async function runKeys({ positionals, host }: CommandArguments): Promise<ExitCode> {
  const [action = "list", name, ...others] = positionals;
  if (others.length > 0 || name?.includes("="))
    return complain(
      "Don't pass a key as an argument, because other users can see it. Run keys set KEY: it asks for the key, or reads it from stdin.",
      2,
    );
  if (action === "list" && name === undefined) return list(host);
  if ((action !== "set" && action !== "forget") || name === undefined)
    return complain("keys has three actions: list, set KEY, and forget KEY.", 2);
  if (!NAMES.includes(name)) {
    const known = NAMES.join(", ");
    // The name is repeated only if it cannot be a key itself.
    if (!/^[A-Z][A-Z_]+$/.test(name)) return complain(`Say whose key it is: ${known}.`, 2);
    const which = didYouMean(name, NAMES) || ` Known: ${known}.`;
    return complain(`No model or search provider has its key in ${name}.${which}`, 2);
  }
  const kept = await readSecret(name, host);
  if (!kept.ok) return complain(withoutKeychain(kept.problem, host));
  if (action === "set") {
    const secret = process.stdin.isTTY
      ? await atTerminal((asker) => askKey(name, "for none", asker)).catch(() => undefined)
      : anyText(await buffer(process.stdin)).trim();
    if (!secret) return complain("There was no key to keep, and nothing was changed.");
    const problem = await keepSecret(name, secret, host);
    if (problem !== undefined) return complain(problem);
    return say(
      `${name} is in the keychain${besideEnvironment(name, host)}.`,
      "A server that runs already finds it when it is started again.",
    );
  }
  const failure = await forgetSecret(name, host);
  if (failure !== undefined) return complain(failure);
  return say(`${name} is not in the keychain${kept.secret === undefined ? "" : " any more"}.`);
}

const NAMES: readonly string[] = [...KEY_NAMES, ...SEARCH_KEYS];

/** Explains the keychain problem, and names the other places for a key. */
const withoutKeychain = (problem: string, host: HostFacts): string =>
  `${problem} Set the key in the environment of the server or in the configuration of a client instead: ${commandLine(host, ["init"])} asks where.`;

async function list(host: HostFacts): Promise<ExitCode> {
  const names: string[] = [];
  // One after the other: a keychain that is locked asks its person once.
  for (const name of NAMES) {
    const kept = await readSecret(name, host);
    if (!kept.ok) return complain(withoutKeychain(kept.problem, host));
    if (kept.secret !== undefined) names.push(name);
  }
  for (const name of names) say(name + besideEnvironment(name, host));
  if (names.length > 0) return 0;
  return say(`The keychain has no key. To keep one there: ${commandLine(host, ["keys", "set", "KEY"])}`);
}

/** A key of the environment comes first. */
const besideEnvironment = (name: string, { env }: HostFacts): string =>
  variable(env, name) === undefined ? "" : "; the environment here has another, which is used instead";
