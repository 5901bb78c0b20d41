/** The list of all checks: `doctor` makes them all, and a run in the terminal makes those that cost no time. */
import { checkAgentFiles, checkInstructions } from "./agent-files.ts";
import type { Check, Facts } from "./check.ts";
import { checkCommands, checkSandbox } from "./commands.ts";
import { checkAddress, checkIssuer } from "./http.ts";
import {
  checkAnswers,
  checkEmbeddings,
  checkKeys,
  checkModel,
  checkOtherModels,
  checkPrices,
} from "./models.ts";
import { checkChannels, checkDelivered } from "./news.ts";
import {
  checkMounts,
  checkPromptFile,
  checkReadOnly,
  checkRules,
  checkStorage,
  checkWorkspace,
} from "./places.ts";
import { checkTools } from "./servers.ts";
import { checkSearchAnswers, checkSearchKey } from "./web.ts";

/** Each kind includes the ones before it. `start`: in no time; `machine`: on this machine; `network`: all. */
const KINDS = ["start", "machine", "network"] as const;
export type Kind = (typeof KINDS)[number];

const CHECKS: ReadonlyArray<readonly [Kind, (facts: Facts) => Check | Check[] | Promise<Check | Check[]>]> = [
  ["start", checkWorkspace],
  ["machine", checkStorage],
  ["start", checkModel],
  ["start", checkOtherModels],
  ["machine", ({ config, env }) => checkEmbeddings(config, env)],
  ["machine", checkKeys],
  ["start", checkPrices],
  ["network", checkAnswers],
  ["start", ({ config }) => checkPromptFile(config)],
  ["start", ({ config }) => checkRules(config)],
  ["machine", ({ config }) => checkCommands(config)],
  ["start", ({ config }) => checkReadOnly(config)],
  ["machine", checkSearchKey],
  ["network", checkSearchAnswers],
  ["start", checkChannels],
  ["machine", checkDelivered],
  ["network", checkMounts],
  ["machine", ({ config, env }) => checkTools(config, env)],
  ["machine", ({ config, env }) => checkAgentFiles(config, env)],
  ["machine", ({ config, env }) => checkInstructions(config, env)],
  ["machine", ({ config }) => checkAddress(config)],
  ["network", checkIssuer],
];

/** Makes all checks up to a kind, at the same time; the results are in the order of the list. */
export async function runChecks(facts: Facts, most: Kind): Promise<Check[]> {
  const chosen = CHECKS.filter(([kind]) => KINDS.indexOf(kind) <= KINDS.indexOf(most));
  const results = await Promise.all(chosen.map(async ([, check]) => check(facts)));
  return results.flat();
}

/** Problems that would end a run in the terminal at its start or soon after. */
export async function startProblems(facts: Facts): Promise<Check[]> {
  const checks = [...(await runChecks(facts, "start")), ...(await checkSandbox(facts.config, false))];
  return checks.filter(({ ok }) => !ok);
}
