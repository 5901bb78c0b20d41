import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { packageRoot } from "../../config/package-info.ts";

export interface DemoWorkspace {
  /** Folder the agent works in. */
  folder: string;
  /** `own`: the person's folder itself. The others are copies in the temporary folder. */
  kind: "sample" | "own" | "copy";
  /** Absent: the configured one. */
  dataDir?: string;
  /** Removes what the demo does not leave to the person. */
  dispose(): Promise<void>;
}

export interface WorkspaceChoice {
  /** The person's folder, absolute. */
  workspace?: string;
  /** A person can be asked. */
  interactive: boolean;
  /** Everything is approved beforehand. */
  approveAll: boolean;
}

export type WorkspaceOutcome = { ok: true; workspace: DemoWorkspace } | { ok: false; problem: string };

/** Neither needed to look at a project nor small. */
const LEFT_OUT = new Set(["node_modules", ".git"]);
const MAX_COPIED_ENTRIES = 10_000;

/** The sample, the person's folder, or, when nobody is there to approve anything, a copy of it. */
export async function chooseWorkspace(choice: WorkspaceChoice): Promise<WorkspaceOutcome> {
  const { workspace } = choice;
  if (workspace === undefined) {
    return {
      ok: true,
      workspace: await copyOf(join(packageRoot(), "demo", "workspace"), "sample", "tidewatch"),
    };
  }
  if (choice.interactive || choice.approveAll) {
    return { ok: true, workspace: { folder: workspace, kind: "own", dispose: async () => {} } };
  }
  if ((await countEntries(workspace)) > MAX_COPIED_ENTRIES) {
    return {
      ok: false,
      problem:
        `There is no terminal to ask in, and ${workspace} holds more than ${MAX_COPIED_ENTRIES} files, too many ` +
        "for a copy. Use a terminal, a smaller folder, or --yes to approve every change to the folder itself.",
    };
  }
  return { ok: true, workspace: await copyOf(workspace, "copy", basename(workspace) || "workspace") };
}

async function copyOf(source: string, kind: "sample" | "copy", name: string): Promise<DemoWorkspace> {
  const base = await mkdtemp(join(tmpdir(), "deepagent-demo-"));
  const folder = join(base, name);
  const dataDir = join(base, "data");
  await copyTree(source, folder);
  return { folder, kind, dataDir, dispose: () => rm(dataDir, { recursive: true, force: true }) };
}

/** Regular files and folders only: a link could lead out of the copy. */
async function copyTree(source: string, target: string): Promise<void> {
  const isCopied = new Set<string>();
  for await (const path of treeOf(source)) isCopied.add(path);
  await cp(source, target, { recursive: true, filter: (path) => path === source || isCopied.has(path) });
}

async function countEntries(folder: string): Promise<number> {
  let count = 0;
  for await (const _path of treeOf(folder)) {
    count += 1;
    if (count > MAX_COPIED_ENTRIES) break;
  }
  return count;
}

async function* treeOf(folder: string): AsyncIterable<string> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (LEFT_OUT.has(entry.name) || !(entry.isFile() || entry.isDirectory())) continue;
    const path = join(folder, entry.name);
    yield path;
    if (entry.isDirectory()) yield* treeOf(path);
  }
}
