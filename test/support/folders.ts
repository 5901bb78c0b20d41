import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type ServerParts, serverParts } from "../../src/app/server-deps.ts";
import { loadConfig } from "../../src/config/load.ts";
import { silentLogger } from "../../src/core/logger.ts";

interface Folders {
  readonly workspace: string;
  readonly dataDir: string;
  /** The environment in which the product uses them. */
  readonly env: Record<string, string>;
  remove(): void;
}

/** Makes a workspace with `files`, by relative path, and a data directory of its own. */
export function makeFolders(files: Readonly<Record<string, string>>): Folders {
  const root = mkdtempSync(join(tmpdir(), "deepagent-e2e-"));
  const workspace = join(root, "workspace");
  const dataDir = join(root, "data");
  mkdirSync(workspace);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(workspace, path)), { recursive: true });
    writeFileSync(join(workspace, path), content);
  }
  return {
    workspace,
    dataDir,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: root,
      DEEPAGENT_WORKSPACE: workspace,
      DEEPAGENT_DATA_DIR: dataDir,
      DEEPAGENT_LOG_LEVEL: "silent",
    },
    // A process that a client has left may take a moment to end, and still write.
    remove: () => rmSync(root, { recursive: true, force: true, maxRetries: 20 }),
  };
}

/** The parts of the product's server in this process. @throws problems of its settings. */
export function openParts(env: Readonly<Record<string, string | undefined>>): ServerParts {
  const home = env["HOME"] ?? "";
  const loaded = loadConfig({ flags: {}, cwd: tmpdir(), home, platform: process.platform, env });
  if (!loaded.ok) throw new Error(loaded.problems.join("\n"));
  return serverParts({ config: loaded.config, env, version: "0.0.0-test", logger: silentLogger });
}
