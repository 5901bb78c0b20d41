import type { Agent } from "../agent/agent.ts";
import type { Backend, BackendSource } from "../backends/backend.ts";
import { resolveBackend } from "../backends/resolve.ts";
import { snapshotFiles } from "../backends/runtime.ts";
import type { Principal, Run } from "./run.ts";

export interface FilesContext {
  agentFor(run: Run): Promise<Agent>;
  treeWithThread(principal: Principal): Promise<BackendSource>;
}

/** The tree as the run's agent sees it, with the thread's files as they are now. For reading. */
export async function threadTree(run: Run, context: FilesContext): Promise<Backend> {
  const { files } = await (await context.agentFor(run)).snapshot(run.threadId);
  const source = await context.treeWithThread(run.principal);
  return resolveBackend(source, { files: snapshotFiles(files), threadId: run.threadId });
}
