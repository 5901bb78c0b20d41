/** Proposes rules that a person can save while approving a call: the narrowest first, and at most two wider ones. */
import type { RuleOffer, RuledCall } from "./call.ts";
import { readCommand, readRules } from "./rule.ts";
import { proposeShellRules } from "./shell/propose.ts";

/** `known`: rules that count already, which are not offered again. */
export function ruleOffers(call: RuledCall, known: readonly string[]): RuleOffer[] {
  switch (call.kind) {
    case "command":
      return commandOffers(call, known);
    case "edit":
      return editOffers(call.paths);
    case "page":
      return [
        {
          rules: [`WebFetch(domain:${call.host})`],
          sentence: `Read any page of ${call.host} in this project without asking.`,
          examples: ["", "docs/", "search?q=text"].map((path) => `https://${call.host}/${path}`),
        },
      ];
    case "server_tool": {
      const [server = "", tool = ""] = call.name.split(/__(.*)/s);
      return [
        {
          rules: [`mcp__${call.name}`],
          sentence: `Call ${tool} of the MCP server ${server} in this project without asking, whatever the arguments.`,
          examples: [`${tool} with these arguments`, `${tool} with any other arguments`],
        },
      ];
    }
    default:
      return call satisfies never;
  }
}

function commandOffers(call: Extract<RuledCall, { kind: "command" }>, known: readonly string[]): RuleOffer[] {
  const line = readCommand(call);
  const rules = readRules(known).flatMap((rule) => rule.shell ?? []);
  if (!line.ok) return [];
  const { commands } = line;
  // Commands without effects need rules where there are no others.
  const needed = commands.every(({ isHarmless }) => isHarmless)
    ? commands.map((command) => ({ ...command, isHarmless: false }))
    : commands;
  const parts = proposeShellRules({ ...line, commands: needed }, rules);
  // One answer saves at most five rules.
  if (parts.length === 0 || parts.length > 5 || parts.some((part) => part.rules.length === 0)) return [];
  const place = call.isSandboxed ? "In the sandbox" : "On this machine, outside any sandbox";
  const widest = Math.max(...parts.map((part) => part.rules.length));
  return Array.from({ length: Math.min(3, widest) }, (_, level) => {
    const chosen = parts.flatMap((part) => part.rules[Math.min(level, part.rules.length - 1)] ?? []);
    const examples = chosen.flatMap((rule) => rule.examples.slice(0, chosen.length > 1 ? 2 : 3));
    return {
      rules: [...new Set(chosen.map(({ rule }) => `Bash(${rule})`))],
      sentence: `${place}, in this project: ${[...new Set(chosen.map(({ sentence }) => sentence))].join(" ")}`,
      examples: [...new Set(examples)],
    };
  });
}

/** The file, its folder, and the topmost folder. A file at the root has no folder of its own. */
function editOffers([path = "", ...others]: readonly string[]): RuleOffer[] {
  // A pattern has no name with signs of patterns, and a link is not offered: its target may change.
  if (path === "" || /[*?[\]{}\\!]/.test(path) || others.some((other) => other !== path)) return [];
  const folders = path.split("/").slice(0, -1);
  const places = [folders.join("/"), folders[0] ?? ""].filter(
    (place, at, all) => place !== "" && all.indexOf(place) === at,
  );
  return [
    {
      rules: [`Edit(/${path})`],
      sentence: `Create and change the file ${path} without asking.`,
      examples: [`change ${path}`, `replace all of ${path}`],
    },
    ...places.map((place) => ({
      rules: [`Edit(/${place}/**)`],
      sentence: `Create and change any file below ${place}/ without asking, but not delete any.`,
      examples: [`change ${path}`, `create ${place}/new.txt`, `change ${place}/folder/other.txt`],
    })),
  ];
}
