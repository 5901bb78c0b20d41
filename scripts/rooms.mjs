/**
 * Checks which rooms, the folders of src, import each other. `.oxlintrc.json` has the rules between the topmost
 * folders; this script has those between the rooms inside them. Prints each import that breaks a rule, and fails.
 */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/** Rooms, lowest first: a file imports from its own room and from the rooms before it. */
const ROOMS = {
  agent: "contracts messages budget step models calls compaction layers mcp-tools langgraph build agent.ts",
  server:
    "contracts auth views page calls resources delivery tasks events tools protocol stdio ag-ui http acp",
};
const ORDER = Object.entries(ROOMS).flatMap(([folder, rooms]) =>
  rooms.split(" ").map((room) => `${folder}/${room}`),
);

/** Imports and exports from another module, `import type` marked, and imports at run time. */
const IMPORT = /^(?:import|export)\s+(type\s)?[^;"']*?from\s+"([^"]+)"|import\("([^"]+)"\)/gm;

/** Each import in src: a file, the file or package that it imports, and `type` if only types. */
function* importsOfSource() {
  for (const file of readdirSync("src", { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  )) {
    for (const [, type, name, lazy] of readFileSync(join("src", file), "utf8").matchAll(IMPORT)) {
      const target = name ?? lazy;
      yield { file, to: target.startsWith(".") ? normalize(join(dirname(file), target)) : target, type };
    }
  }
}

const roomOf = (file) => file.split("/").slice(0, 2).join("/");

const imports = [...importsOfSource()];
const within = imports.filter(({ to }) => existsSync(join("src", to)) && to.includes("/"));

const upward = within.filter(({ file, to }) => {
  const [from, into] = [file, to].map((path) => ORDER.indexOf(roomOf(path)));
  return from >= 0 && into > from && ORDER[from].split("/")[0] === ORDER[into].split("/")[0];
});
const graph = imports.filter(
  ({ file, to, type }) =>
    !type &&
    file.startsWith("agent/") &&
    !file.startsWith("agent/langgraph/") &&
    /^@langchain\/langgraph\b/.test(to),
);
const mutual = within.filter(({ file, to }) => {
  const [from, into] = [file, to].map(roomOf);
  return from < into && within.some((other) => roomOf(other.file) === into && roomOf(other.to) === from);
});

const problems = new Set([
  ...upward.map(({ file, to }) => `${file} imports ${to}, whose room is higher`),
  ...graph.map(({ file, to }) => `${file} imports ${to}, which only agent/langgraph may`),
  ...mutual.map(({ file, to }) => `${roomOf(file)} and ${roomOf(to)} import each other`),
]);
for (const problem of problems) console.error(problem);
process.exitCode = problems.size > 0 ? 1 : 0;
