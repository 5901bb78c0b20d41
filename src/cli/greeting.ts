/** Prints the greeting shown when a person runs the program at a terminal without arguments. */
import type { Check } from "../app/checks/check.ts";
import { loadConfig } from "../config/load.ts";
import { type HostFacts, packageVersion } from "../config/paths.ts";
import { PROGRAM, commandLine } from "../config/program.ts";
import { type ClientHere, clientsHere, modelHere, sandboxHere } from "./first-look.ts";
import { type Colors, padded, wrapText } from "./terminal/text.ts";
import questions from "./questions.json" with { type: "json" };

/** Describes the program, the parts found and missing, and the next command. */
export async function greeting(host: HostFacts, { columns, colors }: { columns: number; colors: Colors }) {
  const width = Math.min(columns, 100) - 1;
  const facts = await collectFacts(host);
  const isReady = facts.every(({ name, ok }) => ok || name === "Sandbox");
  const [words, does] = isReady
    ? [["run"], "asks for a task, and works on it here."]
    : [["init"], "sets up what is missing, with five questions."];
  return [
    `${colors.bold(PROGRAM)} ${packageVersion()}`,
    ...wrapText("An MCP server that gives any client a durable deep agent.", width),
    "",
    ...facts.flatMap((fact) => {
      const [first = "", ...rest] = hanging(`  ${fact.name}`, 11, fact.text, width);
      return [(fact.ok ? colors.green("✔") : colors.red("✖")) + first.slice(1), ...rest];
    }),
    "",
    // A command is pasted, so that it stays on one line.
    `Next: ${colors.bold(colors.cyan(commandLine(host, words)))}`,
    ...hanging("", 6, does, width),
    "",
    ...questions.others.flatMap(({ name, text }) => hanging(name, 12, text, width)),
    "",
  ].join("\n");
}

/** A label, and beside it a text on as many lines as it needs. */
function hanging(label: string, indent: number, text: string, width: number): string[] {
  const lines = wrapText(text, Math.max(width - indent, 10));
  return lines.map((line, index) => padded(index === 0 ? label : "", indent) + line);
}

async function collectFacts(host: HostFacts): Promise<Check[]> {
  const loaded = loadConfig({ flags: {}, ...host });
  if (!loaded.ok) return [{ name: "Settings", ok: false, text: loaded.problems.join("; ") }];
  const { config } = loaded;
  const model = await modelHere(config, host);
  const sandbox = config.workspace === undefined ? undefined : await sandboxHere(config);
  return [
    model === undefined
      ? { name: "Model", ok: false, text: "no key of a model is set" }
      : { name: "Model", ok: true, text: `${model.spec}: ${model.why}` },
    clientFact(clientsHere(host)),
    sandbox === undefined
      ? {
          name: "Folder",
          ok: false,
          text: "none to work in: start in a project's folder, or name one with --workspace",
        }
      : {
          name: "Sandbox",
          ok: sandbox.ok,
          text: sandbox.ok ? sandbox.text : `none, so that each command is approved: ${sandbox.text}`,
        },
  ];
}

function clientFact(clients: readonly ClientHere[]): Check {
  const name = "Client";
  const titles = (some: readonly ClientHere[]): string => some.map(({ title }) => title).join(", ");
  const configured = clients.filter(({ hasServer }) => hasServer);
  if (configured.length > 0) return { name, ok: true, text: `set up in ${titles(configured)}` };
  const installed = clients.filter(({ isInstalled }) => isInstalled);
  const text =
    installed.length === 0 ? "none was found here" : `not set up yet; found here: ${titles(installed)}`;
  return { name, ok: false, text };
}
