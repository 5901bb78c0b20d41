/** Configures the server for a client: asks, shows the files to write, writes them, and checks the result. */
import { resolve } from "node:path";
import { loadConfig } from "../config/load.ts";
import { type HostFacts, expandHome, folderProblem } from "../config/paths.ts";
import { commandLine } from "../config/program.ts";
import { didYouMean } from "../core/options.ts";
import { type CommandArguments, type ExitCode, textOf } from "./command.ts";
import { clientsHere, sandboxHere } from "./first-look.ts";
import type { Approvals, Sandbox } from "./init-questions.ts";
import {
  APPROVALS,
  APPROVALS_QUESTION,
  SANDBOX,
  choose,
  clientQuestion,
  modelNameProblem,
  sandboxQuestion,
} from "./init-questions.ts";
import { CLIENT_NAMES, findClient } from "./clients/catalogue.ts";
import { runInstall } from "./install.ts";
import { say } from "./output.ts";
import {
  KEY_PLACES,
  type Key,
  Refusal,
  addressOf,
  atTerminal,
  findKey,
  hasTerminal,
  keepKey,
  modelOf,
  orRefusal,
  variableOf,
  workspaceOf,
} from "./setup.ts";
import type { Asker } from "./terminal/asker.ts";

interface Plan {
  client: string;
  workspace: string;
  model: string;
  key: Key | undefined;
  approvals: Approvals;
  sandbox: Sandbox;
}

export async function runInit(args: CommandArguments): Promise<ExitCode> {
  const isTold = args.flags["yes"] === true;
  return orRefusal(async () => {
    if (!isTold && !hasTerminal())
      throw new Refusal(
        "There is no terminal to ask in. Use flags: --client NAME --workspace DIR --model VALUE --key WHERE --approvals WHAT --sandbox HOW, and --yes; see init --help.",
      );
    const plan = isTold
      ? await shownPlan(args, undefined)
      : await atTerminal((asker) => shownPlan(args, asker));
    if (plan === undefined) throw new Refusal("Nothing was written.", 1);
    // The key first: a configuration without its key would be half of it.
    await keepKey(plan.key, args.host);
    const code = await runInstall(installArguments(plan, args, { yes: true }));
    if (code === 0 && !isTold) {
      const question = "\nWatch a demo run now? It needs no key (y/N) › ";
      const isWanted = await atTerminal(
        async (asker) => (await asker.key(question, true)).toLowerCase() === "y",
      ).catch(() => false);
      if (isWanted)
        await (await import("./demo.ts")).runDemo({ flags: {}, positionals: [], host: args.host });
      else say(`To watch it later: ${commandLine(args.host, ["demo"])}`);
    }
    return code;
  });
}

/** The plan, after it was shown and a person agreed; `undefined`: it is not to be written. */
async function shownPlan(args: CommandArguments, asker: Asker | undefined): Promise<Plan | undefined> {
  const plan = await makePlan(args, asker);
  asker?.print("");
  const code = await runInstall(installArguments(plan, args, { print: true }));
  if (code !== 0) return undefined;
  if (plan.key?.place === "keychain" && plan.key.value !== undefined)
    say(`\n${plan.key.name} will be stored in the keychain of this system.`);
  const isAgreed = asker === undefined || (await confirmed("\nEnter to write it, q to cancel › ", asker));
  return isAgreed ? plan : undefined;
}

/** Asks for everything that the flags leave open. Throws `Refusal`, or the error that ended a question. */
async function makePlan({ flags, host }: CommandArguments, asker: Asker | undefined): Promise<Plan> {
  const place = parseChoice("--key", flags["key"], KEY_PLACES);
  const approvals = parseChoice("--approvals", flags["approvals"], tableKeys(APPROVALS));
  const sandbox = parseChoice("--sandbox", flags["sandbox"], tableKeys(SANDBOX));
  const client = textOf(flags["client"]) ?? (await chooseClient(host, asker));
  const found = findClient(client, { host });
  if (found === undefined)
    throw new Refusal(
      `Unknown client "${client}".${didYouMean(client, CLIENT_NAMES)} init --help lists the known ones.`,
    );
  const given = textOf(flags["workspace"]);
  const folder = given ?? (await workspaceOf(host, asker, "2 of 5  "));
  const workspace = resolve(host.cwd, expandHome(folder, host.home));
  const problem = folderProblem(workspace);
  if (problem !== undefined) throw new Refusal(`The workspace ${problem}.`);
  const model = textOf(flags["model"]) ?? (await modelOf(host, asker, "3 of 5  "));
  const nameProblem = modelNameProblem(model, host.env);
  if (nameProblem !== undefined) throw new Refusal(nameProblem);
  const key = await findKey(model, { host, asker, client: found, workspace, place });
  return {
    client,
    workspace,
    model,
    key,
    approvals: approvals ?? (asker ? await choose(APPROVALS_QUESTION, asker) : "usual"),
    sandbox: sandbox ?? (asker ? await askSandbox(workspace, host, asker) : "auto"),
  };
}

async function chooseClient(host: HostFacts, asker: Asker | undefined): Promise<string> {
  const clients = clientsHere(host);
  if (asker !== undefined) return choose(clientQuestion(clients), asker);
  const [only, ...others] = clients.filter(({ isInstalled }) => isInstalled);
  if (only !== undefined && others.length === 0) return only.name;
  throw new Refusal("Choose a client with --client NAME; init --help lists the known ones.");
}

async function askSandbox(workspace: string, host: HostFacts, asker: Asker): Promise<Sandbox> {
  const loaded = loadConfig({ flags: { workspace }, ...host });
  const found = loaded.ok
    ? await sandboxHere(loaded.config)
    : { ok: false, text: loaded.problems[0] ?? "the settings have problems" };
  return choose(sandboxQuestion(found, host), asker);
}

function installArguments(
  { client, workspace, model, key, approvals, sandbox }: Plan,
  { host }: CommandArguments,
  more: Record<string, boolean>,
): CommandArguments {
  const found = findClient(client, { host });
  const variables = found === undefined ? [] : [...variableOf(key, found), ...addressOf(model, found, host)];
  const env = variables.map(([name, value]) => (value === undefined ? name : `${name}=${value}`));
  const flags = { workspace, model, env, ...APPROVALS[approvals], ...SANDBOX[sandbox], ...more };
  return { host, positionals: [client], flags };
}

async function confirmed(prompt: string, asker: Asker): Promise<boolean> {
  for (;;) {
    const key = (await asker.key(prompt, true)).toLowerCase();
    if (key === "\r" || key === "\n") return true;
    if (key === "q") return false;
  }
}

function parseChoice<Name extends string>(flag: string, given: unknown, names: readonly Name[]) {
  if (given === undefined) return undefined;
  const found = names.find((name) => name === given);
  if (found === undefined) throw new Refusal(`${flag} is one of ${names.join(", ")}.`);
  return found;
}

const tableKeys = <Name extends string>(table: Readonly<Record<Name, unknown>>): Name[] =>
  Object.keys(table) as Name[]; // of an object that has no others
