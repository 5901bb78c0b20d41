/**
 * Checks the modules of src: which of them import each other, what each exposes, its README, and how many names there
 * are. `.oxlintrc.json` has the rules between the topmost folders; this script has those between the folders inside
 * `agent` and `server`. `modules.json` has the interfaces and the counts: none may grow.
 *
 * `--write` stores smaller counts and interfaces. `--report` prints a table of the modules and one of who uses what.
 */
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { parseSync } from "oxc-parser";

/** Folders inside a module, lowest first: a file imports from its own folder and from those before it. */
const LAYERS = {
  agent: "contracts messages budget step models calls compaction layers mcp-tools langgraph build agent.ts",
  server:
    "contracts auth views page calls resources delivery tasks events tools protocol stdio ag-ui http api acp",
};
const ORDER = Object.entries(LAYERS).flatMap(([folder, layers]) =>
  layers.split(" ").map((layer) => `${folder}/${layer}`),
);
const MODULES = [
  ...readdirSync("src", { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name),
  ...ORDER.filter((path) => !path.endsWith(".ts")),
];
const TABLE = new URL("modules.json", import.meta.url);
/** Lines of a README. */
const MOST_LINES = 60;
/** A folder of a module with so many files has a README, as all modules have. */
const MANY_FILES = 7;
/** A name in more files than this is a duplicate. */
const MOST_FILES = 3;

/** @typedef {{ file: string, to: string, isType: boolean, names: string[] }} Import */

/** The files of src with their imports, top-level declarations, and private functions that are called once. */
function readSources() {
  const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  );
  return files.sort().map((file) => {
    const text = readFileSync(join("src", file), "utf8");
    const { program, module } = parseSync(file, text);
    return {
      file,
      lines: text.split("\n").length - 1,
      imports: importsOf(file, text, module),
      ...declarationsOf(program, text),
    };
  });
}

function importsOf(file, text, { staticImports, staticExports, dynamicImports }) {
  const found = new Map();
  const note = (request, isType, name) => {
    const to = request.startsWith(".") ? normalize(join(dirname(file), request)) : request;
    const key = `${to} ${isType}`;
    if (!found.has(key)) found.set(key, { file, to, isType, names: [] });
    if (name !== undefined) found.get(key).names.push(name);
  };
  for (const { moduleRequest, entries } of staticImports) {
    if (entries.length === 0) note(moduleRequest.value, false);
    for (const { importName, isType } of entries)
      note(moduleRequest.value, isType, importName.name ?? importName.kind);
  }
  for (const { entries } of staticExports)
    for (const { moduleRequest, importName, isType } of entries)
      if (moduleRequest) note(moduleRequest.value, isType, importName.name ?? importName.kind);
  for (const { moduleRequest } of dynamicImports) {
    const request = text.slice(moduleRequest.start, moduleRequest.end);
    if (/^["']/.test(request)) note(request.slice(1, -1), false);
  }
  return [...found.values()];
}

function declarationsOf(program, text) {
  const names = [];
  const singleUse = [];
  const isUsedOnce = (name) =>
    text.match(new RegExp(`(?<![\\w$#])(?<!(?<!\\.\\.)\\.)${name.replaceAll("$", "\\$")}(?![\\w$])`, "g"))
      ?.length === 2;
  for (const statement of program.body) {
    const isExported = statement.type === "ExportNamedDeclaration";
    const declaration = isExported ? statement.declaration : statement;
    for (const { name, isFunction } of declaredBy(declaration)) {
      names.push(name);
      if (isFunction && !isExported && isUsedOnce(name)) singleUse.push(name);
    }
    if (declaration?.type !== "ClassDeclaration") continue;
    for (const { type, kind, key } of declaration.body.body) {
      if (type !== "MethodDefinition" || kind !== "method" || key.type !== "PrivateIdentifier") continue;
      if (text.match(new RegExp(`#${key.name}(?![\\w$])`, "g"))?.length === 2) singleUse.push(`#${key.name}`);
    }
  }
  return { names, singleUse };
}

function declaredBy(declaration) {
  switch (declaration?.type) {
    case "FunctionDeclaration":
      return [{ name: declaration.id.name, isFunction: true }];
    case "ClassDeclaration":
    case "TSTypeAliasDeclaration":
    case "TSInterfaceDeclaration":
    case "TSEnumDeclaration":
      return [{ name: declaration.id.name }];
    case "VariableDeclaration":
      return declaration.declarations
        .filter(({ id }) => id.type === "Identifier")
        .map(({ id, init }) => ({ name: id.name, isFunction: /^(?:Arrow)?Function/.test(init?.type ?? "") }));
    default:
      return [];
  }
}

const layerOf = (file) => file.split("/").slice(0, 2).join("/");
const isInside = (path, module) => path.startsWith(`${module}/`);

const sources = readSources();
const imports = sources.flatMap((source) => source.imports);
const within = imports.filter(({ to }) => to.includes("/") && existsSync(join("src", to)));

function* forbiddenImports() {
  for (const { file, to, isType } of imports) {
    const [from, into] = [file, to].map((path) => ORDER.indexOf(layerOf(path)));
    const [folder, other] = [file, to].map((path) => path.split("/")[0]);
    if (from >= 0 && into > from && folder === other) yield `${file} imports ${to}, whose folder is higher`;
    const isGraph = !isType && isInside(file, "agent") && /^@langchain\/langgraph\b/.test(to);
    if (isGraph && !isInside(file, "agent/langgraph"))
      yield `${file} imports ${to}, which only agent/langgraph may`;
  }
  const pairs = new Set(within.map(({ file, to }) => `${layerOf(file)} ${layerOf(to)}`));
  for (const pair of pairs) {
    const [from, into] = pair.split(" ");
    if (from < into && pairs.has(`${into} ${from}`)) yield `${from} and ${into} import each other`;
  }
}

/** What other modules import of a module: its files, and the number of their names. */
function interfaceOf(module) {
  const used = within.filter(({ file, to }) => isInside(to, module) && !isInside(file, module));
  const names = new Set(used.flatMap(({ to, names: imported }) => imported.map((name) => `${to} ${name}`)));
  const files = new Set(used.map(({ to }) => to.slice(module.length + 1)));
  return { names: names.size, files: [...files].sort() };
}

function measure() {
  const places = new Map();
  for (const { file, names } of sources)
    for (const name of names) places.set(name, (places.get(name) ?? new Set()).add(file));
  return {
    names: sources.reduce((sum, { names }) => sum + names.length, 0),
    duplicateNames: [...places.values()].filter((files) => files.size > MOST_FILES).length,
    genitiveNames: sources.reduce(
      (sum, { names }) => sum + names.filter((name) => /[a-z](?:Of|In)$/.test(name)).length,
      0,
    ),
    singleUseFunctions: sources.reduce((sum, { singleUse }) => sum + singleUse.length, 0),
    interfaces: Object.fromEntries(MODULES.map((module) => [module, interfaceOf(module)])),
  };
}

function* growth(now, before) {
  for (const count of ["names", "duplicateNames", "genitiveNames", "singleUseFunctions"])
    if (now[count] > before[count])
      yield `${count}: ${now[count]}, at most ${before[count]}; inline or rename (--report lists them)`;
  for (const [module, { names, files }] of Object.entries(now.interfaces)) {
    const allowed = before.interfaces[module] ?? { names: 0, files: [] };
    if (names > allowed.names)
      yield `other modules use ${names} names of src/${module}, at most ${allowed.names}`;
    for (const file of files.filter((name) => !allowed.files.includes(name)))
      yield `src/${module}/${file} is imported by other modules, and is not in the interface of its own`;
  }
}

/** A README has at most 60 lines, names the files of the interface, and no file that does not exist. */
function* readmeProblems(interfaces) {
  for (const [module, { files }] of Object.entries(interfaces)) {
    const path = `src/${module}/README.md`;
    if (!existsSync(path)) {
      const isSmall =
        module.includes("/") && sources.filter(({ file }) => isInside(file, module)).length < MANY_FILES;
      if (!isSmall) yield `${path} is missing`;
      continue;
    }
    const text = readFileSync(path, "utf8");
    if (text.split("\n").length - 1 > MOST_LINES) yield `${path} has more than ${MOST_LINES} lines`;
    const named = [...text.matchAll(/`([\w./-]+\.(?:ts|js|json|css))`/g)].map(([, name]) => name);
    for (const name of named)
      if (!existsSync(join("src", module, name)) && !existsSync(name))
        yield `${path} names ${name}, which does not exist`;
    const inFolders = (file) =>
      ORDER.some((folder) => folder !== module && isInside(`${module}/${file}`, folder));
    const own = files.filter((file) => !inFolders(file) && !named.includes(file));
    if (own.length > 0) yield `${path} does not name ${own.join(", ")}, which other modules import`;
  }
}

function report(now) {
  console.log("| module | files | lines | names | exposed names |\n|---|---|---|---|---|");
  for (const [module, { names }] of Object.entries(now.interfaces)) {
    const own = sources.filter(({ file }) => isInside(file, module));
    const sum = (of) => own.reduce((total, source) => total + of(source), 0);
    console.log(
      `| ${module} | ${own.length} | ${sum(({ lines }) => lines)} | ${sum((source) => source.names.length)} | ${names} |`,
    );
  }
  const uses = new Map();
  for (const { file, to, names } of within) {
    const [from, into] = [file, to].map((path) => path.split("/")[0]);
    if (from === into) continue;
    const key = `${into} | ${isInside(file, "server/views/room") || isInside(file, "server/page") ? "page" : from}`;
    for (const name of names) uses.set(key, (uses.get(key) ?? new Set()).add(`${to} ${name}`));
  }
  console.log("\n| module | used by | names |\n|---|---|---|");
  for (const [key, names] of [...uses].sort()) console.log(`| ${key} | ${names.size} |`);
  console.log("\nprivate functions that are called once:");
  for (const { file, singleUse } of sources)
    if (singleUse.length > 0) console.log(`${file}: ${singleUse.join(" ")}`);
  console.log("\nnames in more than three files:");
  const places = new Map();
  for (const { file, names } of sources)
    for (const name of names) places.set(name, [...(places.get(name) ?? []), file]);
  for (const [name, files] of [...places].sort((a, b) => b[1].length - a[1].length))
    if (new Set(files).size > MOST_FILES) console.log(`${name}: ${files.join(" ")}`);
}

const now = measure();
if (process.argv.includes("--report")) report(now);
if (process.argv.includes("--write")) writeFileSync(TABLE, `${JSON.stringify(now, null, 2)}\n`);
const problems = [
  ...forbiddenImports(),
  ...growth(now, JSON.parse(readFileSync(TABLE, "utf8"))),
  ...readmeProblems(now.interfaces),
];
for (const problem of new Set(problems)) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
