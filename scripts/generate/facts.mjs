/** The facts that only the owner of the project knows: project.json at the root. `null`: not known yet. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Each fact: what it is, for whoever has to fill it in, and the form it has. */
const FACTS = {
  repository: {
    meaning: "the address of the repository, such as https://github.com/OWNER/REPOSITORY",
    form: /^https:\/\/github\.com\/[\w-]+\/[\w.-]+(?<!\.git)$/,
  },
  homepage: { meaning: "the page about the project, https://…", form: /^https:\/\/\S+$/ },
  author: {
    meaning: 'who made it, as npm shows it: "Name <mail@example.org> (https://example.org)"',
    form: /^[^<(\s].*$/,
  },
  npmName: {
    meaning: "the name under which the package is published on npm",
    form: /^(?:@[a-z\d][\w.-]*\/)?[a-z\d][\w.-]*$/,
  },
  registryName: {
    meaning: "the name in the MCP registry, such as io.github.OWNER/deepagent-mcp",
    form: /^[a-zA-Z\d.-]+\/[a-zA-Z\d._-]+$/,
  },
  securityContact: {
    meaning: "where vulnerabilities are reported in private: a mail address or a page, https://…",
    form: /^(?:(?:mailto:)?[^\s@]+@[^\s@]+|https:\/\/\S+)$/,
  },
};

/** Reads the facts. Throws what is wrong with them; a fact that is missing is not wrong. */
export function readFacts(root) {
  const facts = JSON.parse(readFileSync(join(root, "project.json"), "utf8"));
  const unknown = Object.keys(facts).filter((name) => !Object.hasOwn(FACTS, name));
  if (unknown.length > 0)
    throw new Error(`project.json: unknown ${unknown.join(", ")}. Known: ${Object.keys(FACTS).join(", ")}.`);
  for (const [name, { meaning, form }] of Object.entries(FACTS)) {
    const value = facts[name] ?? null;
    if (value !== null && !(typeof value === "string" && form.test(value)))
      throw new Error(`project.json: ${name} is not ${meaning}.`);
  }
  checkOwner(facts);
  return facts;
}

/** GitHub accounts own the names below io.github.ACCOUNT, and nobody else can publish there. */
function checkOwner({ repository, registryName }) {
  const [, account] = /^io\.github\.([^/]+)\//.exec(registryName ?? "") ?? [];
  const [, owner] = /^https:\/\/github\.com\/([^/]+)\//.exec(repository ?? "") ?? [];
  if (account !== undefined && owner !== undefined && account !== owner)
    throw new Error(
      `project.json: registryName belongs to the account ${account}, but repository to ${owner}.`,
    );
}

/** The facts that nobody has filled in, each with what it is. */
export const missingFacts = (facts) =>
  Object.entries(FACTS)
    .filter(([name]) => (facts[name] ?? null) === null)
    .map(([name, { meaning }]) => ({ name, meaning }));
