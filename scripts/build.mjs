/**
 * Builds `dist`: the program as a bundle with all it needs, the library as a bundle that shares LangChain with its
 * user, its declarations by tsc, and the licences and the bill of materials of the bundled packages.
 *
 * The program's entry answers the MCP handshake from texts that the built program is asked for. The program is split
 * at its dynamic imports.
 */
import { spawn } from "node:child_process";
import { chmod, copyFile, mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { writeHandshake } from "./handshake.mjs";
import { PAGE_ASSET, pageAsset } from "./page-assets.mjs";
import { THREAD_TEXT, threadText } from "./thread-texts.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const dist = join(root, "dist");
/** Built aside and then put in place, so that a program that is running hardly ever finds nothing. */
const draft = join(root, "node_modules/.cache", `deepagent-build-${process.pid}`);

/**
 * Of a namespace import the bundler keeps what is used; the object `z`, which LangChain imports too, would bring all
 * of zod, every language included: 550 kB more to read before the handshake can be answered.
 */
const zodNamespace = {
  name: "zod-namespace",
  transform: {
    filter: { id: /[\\/]src[\\/].*\.ts$|[\\/]@?langchain[\\/].*\.js$/, code: '"zod' },
    handler: (code) =>
      code.replaceAll(
        /import \{ z(?: as (?<name>[\w$]+))? \} from "(?<zod>zod(?:\/v4)?)"/g,
        (_, name = "z", zod = "zod") => `import * as ${name} from "${zod}"`,
      ),
  },
};

/** The SDK's other checker of JSON schemas, which checks the answers of forms, is a seventh of its usual one. */
const smallSchemaCheck = {
  name: "small-schema-check",
  load: {
    filter: { id: /[\\/]@modelcontextprotocol[\\/]server[\\/]dist[\\/]shimsNode\.mjs$/ },
    handler: () => `
      export { CfWorkerJsonSchemaValidator as DefaultJsonSchemaValidator } from "./validators/cfWorker.mjs";
      export { default as process } from "node:process";`,
  },
};

/**
 * LangGraph's saver works on any connection, and imports better-sqlite3 for a function that is not used here. The
 * import would load it on every Node.
 */
const saverWithoutDriver = {
  name: "saver-without-driver",
  transform: {
    filter: { id: /[\\/]langgraph-checkpoint-sqlite[\\/]dist[\\/]index\.js$/ },
    handler(code) {
      const rest = code.replace('import Database from "better-sqlite3";', "");
      if (rest === code) this.error("LangGraph's saver for SQLite imports its driver in another way.");
      return rest;
    },
  },
};

/**
 * The library of the log-in writes notices to the console, where a server writes lines of JSON alone. So does a package
 * that its server uses, which besides makes functions from text.
 */
const quietAuthorizationServer = {
  name: "quiet-authorization-server",
  load: {
    filter: { id: /[\\/]oidc-provider[\\/]lib[\\/]helpers[\\/]attention\.js$|[\\/]depd[\\/]index\.js$/ },
    handler: (id) =>
      id.endsWith("attention.js")
        ? "export const info = () => {};\nexport const warn = () => {};"
        : "module.exports = () => Object.assign(() => {}, { function: (made) => made, property: () => {} });",
  },
};

/** Files of packages that are in texts: the page's scripts and the code of threads. */
const textInputs = [];

const pageAssets = {
  name: "page-assets",
  load: {
    filter: { id: PAGE_ASSET },
    handler: async (path) => ({
      code: `export default ${JSON.stringify(await pageAsset(path, textInputs))};`,
      moduleType: "js",
    }),
  },
};

/** Code of threads, which is the same in both bundles. */
const threads = new Map();

const threadTexts = {
  name: "thread-texts",
  load: {
    filter: { id: THREAD_TEXT },
    handler: async (id) => {
      if (!threads.has(id)) threads.set(id, threadText(id, textInputs));
      return { code: `export default ${JSON.stringify(await threads.get(id))};`, moduleType: "js" };
    },
  },
};

/** Declarations; the checker is not asked here whether sources are right. */
function declareLibrary() {
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const args = ["-p", "tsconfig.build.json", "--emitDeclarationOnly", "--outDir", draft];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [compiler, ...args], { cwd: root, stdio: "inherit" });
    child.once("error", reject);
    child.once("exit", (code) => (code === 0 ? resolve() : reject(new Error("the compiler found errors"))));
  });
}

/** Packages that are installed beside the program: with native parts, or only where somebody wants them. */
const INSTALLED = ["better-sqlite3", "@vscode/ripgrep", "pg", "@aws-sdk/client-s3", "@opentelemetry/api"];

/** Packages that are needed at once by code that cannot wait for an import. They become files of `require`. */
const REQUIRED = ["iconv-lite", "jschardet", "unbash"];
const requiredFile = (name) => `bin/required/${name}.cjs`;

/** `folder`: of the bundle in `dist`. */
const requiredPackages = (folder) => ({
  name: "required-packages",
  renderChunk: (code, { fileName }) =>
    code.replaceAll(/\bloadRequired\("([\w-]+)"\)/g, (_, name) => {
      const path = relative(dirname(join(folder, fileName)), requiredFile(name));
      return `loadRequired("${path.startsWith(".") ? path : `./${path}`}")`;
    }),
});

/** Bundlers of users that write CommonJS leave `import.meta.url` empty, and have `__filename` instead. */
const bundledAsCommonJs = {
  name: "bundled-as-commonjs",
  renderChunk: (code) =>
    code.replaceAll("createRequire(import.meta.url)", "createRequire(import.meta.url ?? __filename)"),
};

const COMMON = {
  cwd: root,
  platform: "node",
  transform: { target: "node20" },
  // Its CommonJS form loads its parts in a way that no bundler sees.
  resolve: { alias: { "jsonc-parser": join(root, "node_modules/jsonc-parser/lib/esm/main.js") } },
  // What one part of the program loads when it is used, another needs from the start. Texts take their time.
  checks: { ineffectiveDynamicImport: false, pluginTimings: false },
};

/** The chunks of a bundle. */
async function bundle({ output, ...input }) {
  const made = await rolldown({ ...COMMON, ...input });
  const { output: chunks } = await made.write({ format: "esm", entryFileNames: "[name].js", ...output });
  await made.close();
  return chunks;
}

/** Shares LangChain and zod with whoever uses it: there may be one copy of them in a process. */
const bundleLibrary = () =>
  bundle({
    input: { index: "src/index.ts", "testing/backend-contract": "testing/backend-contract.ts" },
    // All of LangChain's packages are its user's, but this one.
    external: [...INSTALLED, /^(@langchain\/(?!langgraph-checkpoint-sqlite$)|(langchain|zod)(\/|$))/],
    plugins: [saverWithoutDriver, pageAssets, threadTexts, requiredPackages(""), bundledAsCommonJs],
    output: { dir: draft, chunkFileNames: "library/[name]-[hash].js" },
  });

/** With LangChain in it. */
const bundleProgram = () =>
  bundle({
    input: { main: "src/cli/main.ts" },
    external: INSTALLED,
    plugins: [
      zodNamespace,
      smallSchemaCheck,
      quietAuthorizationServer,
      saverWithoutDriver,
      pageAssets,
      threadTexts,
      requiredPackages("bin"),
    ],
    output: {
      dir: join(draft, "bin"),
      chunkFileNames: "chunks/[name]-[hash].js",
      // Identifiers stay: stack traces are read, and errors are named after their classes.
      minify: { compress: false, mangle: false, codegen: true },
      // What every start loads is one file, and what the handshake needs besides is another: each file takes time.
      codeSplitting: {
        groups: [
          { name: "start", test: /[\\/]src[\\/]cli[\\/]commands\.ts$/, priority: 2 },
          { name: "serve", test: /[\\/]src[\\/]cli[\\/]serve\.ts$/, priority: 1 },
        ],
      },
    },
  });

/** Shares no file with the program: each would have to be read before the first answer. */
const bundleEntry = () =>
  bundle({
    input: { "deepagent-mcp": "src/main.ts" },
    plugins: [
      {
        name: "program-beside-entry",
        resolveId: (id) => (id === "./cli/main.ts" ? { id: "./main.js", external: true } : undefined),
      },
    ],
    output: { dir: join(draft, "bin") },
  });

const bundleRequired = (name) =>
  bundle({
    input: { [name]: name },
    output: { dir: draft, format: "cjs", entryFileNames: requiredFile(name), exports: "named", minify: true },
  });

const PACKAGE = /^.*node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/;

/** The packages that parts of are in each file of a bundle, for tests of what is loaded when. */
const packagesOf = (chunks) =>
  Object.fromEntries(
    chunks.map(({ fileName, modules }) => {
      const used = Object.entries(modules).filter(([, { renderedLength }]) => renderedLength > 0);
      const names = used.flatMap(([path]) => PACKAGE.exec(path)?.[1] ?? []);
      return [basename(fileName), [...new Set(names)]];
    }),
  );

/** The packages in the bundles and in the texts, by name: where they are and what they say of themselves. */
async function bundledPackages(bundles) {
  const bundled = bundles.flat().flatMap(({ moduleIds }) => moduleIds);
  const inputs = [...bundled, ...textInputs.map((path) => join(root, path))];
  const folders = new Set(inputs.flatMap((path) => PACKAGE.exec(path)?.[0] ?? []));
  const read = async (folder) => {
    const { name, version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    return { folder, name, version, license };
  };
  return Promise.all([...folders].sort().map(read));
}

/** Writes the licences of all packages, each text once. */
async function writeLicences(packages) {
  const texts = new Map();
  for (const { folder, name, version, license } of packages) {
    const files = await readdir(folder);
    const file = files.find((one) => /^licen[cs]e(\.|$)/i.test(one));
    const text = file ? (await readFile(join(folder, file), "utf8")).trim() : `Licence: ${license}`;
    texts.set(text, [...(texts.get(text) ?? []), `${name} ${version} (${license})`]);
  }
  const parts = [...texts].map(([text, names]) => `${names.join("\n")}\n\n${text}\n`);
  const head = "deepagent-mcp has parts of these packages, and two fonts, in it.\n";
  const fonts = await readFile(join(root, "src/server/page/assets/fonts/LICENSE.txt"), "utf8");
  await writeFile(
    join(draft, "THIRD-PARTY-LICENSES.txt"),
    [head, ...parts, fonts].join(`\n${"-".repeat(80)}\n\n`),
  );
}

/** Writes the packages as a CycloneDX document, because scanners find none of them in a bundle. */
async function writeBillOfMaterials(packages) {
  const component = (type, { name: fullName, version, license }) => {
    const [, group, name] = /^(?:(@[^/]+)\/)?(.+)$/.exec(fullName);
    const purl = `pkg:npm/${fullName.replace("@", "%40")}@${encodeURIComponent(version)}`;
    const licence = /^[\w.+-]+$/.test(license) ? { license: { id: license } } : { expression: license };
    return { type, "bom-ref": purl, ...(group ? { group } : {}), name, version, licenses: [licence], purl };
  };
  // npm may install the same version in two folders.
  const components = new Map(
    packages.map((one) => component("library", one)).map((made) => [made.purl, made]),
  );
  const own = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const document = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: component("application", own) },
    components: [...components.values()],
  };
  await writeFile(join(draft, "sbom.cdx.json"), `${JSON.stringify(document, null, 2)}\n`);
}

try {
  await mkdir(draft, { recursive: true });
  const required = Promise.all(REQUIRED.map(bundleRequired));
  const program = Promise.all([bundleProgram(), bundleEntry()]);
  const [library, [chunks]] = await Promise.all([
    bundleLibrary(),
    program,
    declareLibrary(),
    program.then(() => writeHandshake(join(draft, "bin"))),
  ]);
  const packages = await bundledPackages([library, chunks, ...(await required)]);
  await Promise.all([writeLicences(packages), writeBillOfMaterials(packages)]);
  await copyFile(join(root, "src/browser.cjs"), join(draft, "browser.cjs"));
  await writeFile(
    join(root, "node_modules/.cache/deepagent-program.json"),
    JSON.stringify(packagesOf(chunks)),
  );
  await chmod(join(draft, "bin/deepagent-mcp.js"), 0o755);
  await rm(dist, { recursive: true, force: true });
  await rename(draft, dist);
} catch (error) {
  await rm(draft, { recursive: true, force: true });
  console.error(`Build failed: ${error.message}`);
  process.exitCode = 1;
}
