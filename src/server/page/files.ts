/** Reads folders and files for the page, and changes memories. */
import type { Backend } from "../../backends/backend.ts";
import { oneLine } from "../../core/text.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import { type FilesScreen, MEMORIES, renderFiles } from "../views/room/files.ts";
import type { Screen } from "../views/room/shell.ts";
import { waitingFor } from "./screens.ts";
import type { PageSession } from "./sessions.ts";

const LINES = 2000;
const MAX_HITS = 20;

export interface FilesRequest {
  runs: PrincipalRuns;
  session: PageSession;
  /** The run whose files they are; absent: the folders of all runs. */
  runId: string | undefined;
  base: string;
  query: URLSearchParams;
  complaint?: FilesScreen["complaint"];
}

/** `undefined`: there is no such run. */
export async function filesScreen(request: FilesRequest): Promise<Screen | undefined> {
  const { runs, session, runId, base, query, complaint } = request;
  const { principal } = session;
  const backend = runId === undefined ? await runs.files(principal) : await runs.runFiles(principal, runId);
  if (backend === undefined) return undefined;
  const path = query.get("path") ?? "/";
  const asked = runId === undefined ? (query.get("q") ?? "").trim() : "";
  const search =
    asked === ""
      ? undefined
      : { query: asked, found: await runs.searchMemories(principal, asked.slice(0, 500), MAX_HITS) };
  const [listed, file, waiting] = await Promise.all([
    backend.ls(path.slice(0, path.lastIndexOf("/") + 1) || "/"),
    path.endsWith("/") ? undefined : backend.read(path, lineOf(query.get("from")), LINES),
    waitingFor(request),
  ]);
  const entries = listed.error === undefined ? (listed.files ?? []) : oneLine(listed.error, 300);
  return {
    title: path === "/" ? "Files" : oneLine(path, 80),
    place: "files",
    waiting,
    isLive: false,
    session,
    main: renderFiles({ session, base, path, entries, file, search, complaint }),
  };
}

function lineOf(text: string | null): number {
  const line = Number(text ?? 0);
  return Number.isSafeInteger(line) && line > 0 ? line : 0;
}

/** Stores the memory as the person wrote it, or gives the reason why not: others may have changed it meanwhile. */
export async function saveMemory(
  backend: Backend,
  { path, content, version }: { path: string; content: string; version: string },
): Promise<string | undefined> {
  if (!path.startsWith(MEMORIES)) return "Only memories are changed here.";
  const saved = await backend.write(path, content, {
    mode: "overwrite",
    ...(version === "" ? {} : { expectedVersion: version }),
  });
  if (saved.code === "conflict") return "It was changed meanwhile. Look at it anew before you save.";
  return saved.error;
}

export async function deleteMemory(backend: Backend, path: string): Promise<string | undefined> {
  if (!path.startsWith(MEMORIES) || backend.delete === undefined) return "Only memories are deleted here.";
  return (await backend.delete(path)).error;
}
