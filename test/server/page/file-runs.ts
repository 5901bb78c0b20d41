/** A run that changed files of each kind, with names that a screen has to cope with. */
import { isApproval } from "../../../src/runs/run.ts";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { FilesystemBackend } from "../../../src/backends/filesystem/filesystem.ts";
import { snapshotFiles } from "../../../src/backends/runtime.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import type { RunService } from "../../../src/runs/service.ts";
import { createCheckpointer } from "../../../src/storage/sqlite/checkpoints/checkpointer.ts";
import {
  APPROVE,
  mine,
  callingInTurn,
  connect,
  databaseFile,
  openServer,
  reach,
  startRun,
} from "../../runs/support.ts";
import { filesIn } from "../../support/files-in.ts";

export const TASK = "Find out how an alarm gets to the pager, then fix it";
export const LONG_NAME = `${"a-name-without-an-end-".repeat(8)}.ts`;
export const EVIL_NAME = "<img src=x>#%2F?.js";
export const REPORT = "/workspace/docs/报告 🛰️.md";
/** Its invisible character and its last line without an end are copied as they are. */
export const ALARMS = `export const alarm = 1; // 潮汐\u200b 🛰️\n${"const other = 2;\n".repeat(60)}last`;

const WORKSPACE: Readonly<Record<string, string>> = {
  "README.md": "# Tides\n",
  "deploy/crontab": "0 * * * * alarm\n",
  "docs/operations.md": "# Operations\n\nAn Alarm reaches the officer.\n",
  "src/alarms.js": ALARMS,
  "src/deep/er/station.ts": "export {};\n",
  [`src/${LONG_NAME}`]: "export {};\n",
  [`src/${EVIL_NAME}`]: "evil\n",
  "test/old.test.js": "test();\n",
};

export interface FileRuns {
  service: RunService;
  runId: string;
  rootDir: string;
}

/** An approved edit, a new file, a note, a memory and a deleted file. */
export async function fileRuns(): Promise<FileRuns> {
  const rootDir = filesIn();
  for (const [path, content] of Object.entries(WORKSPACE)) {
    mkdirSync(dirname(join(rootDir, path)), { recursive: true });
    writeFileSync(join(rootDir, path), content);
  }
  const memories = new StateBackend({ files: snapshotFiles() });
  memories.write("/people.md", "The officer is Ada.\n");
  const mounts = {
    "/workspace/": new FilesystemBackend({ rootDir, virtualMode: true }),
    "/memories/": memories,
  };
  const write = (path: string, content: string) => ({
    name: "write_file",
    args: { file_path: path, content },
  });
  const alarms = { file_path: "/workspace/src/alarms.js" };
  const model = callingInTurn(
    [{ name: "read_file", args: alarms }],
    [{ name: "edit_file", args: { ...alarms, old_string: "alarm = 1", new_string: "alarm = 3" } }],
    [
      write(REPORT, "# Report\n\nIt is **done**.\n"),
      write("/notes/findings.json", '{ "lost": 2 }\n'),
      write("/memories/tide-alarms/how-to-test.md", "Run `node --test`.\n"),
      { name: "delete", args: { file_path: "/workspace/test/old.test.js" } },
    ],
  );
  const file = databaseFile();
  const checkpointer = createCheckpointer(connect(file));
  const backend = () => new CompositeBackend(new StateBackend(), mounts);
  const { service } = openServer(
    file,
    { model, backend, checkpointer, interruptOn: { edit_file: true } },
    {
      checkpoints: async () => checkpointer,
      tree: async () => new CompositeBackend(new StateBackend({ files: snapshotFiles() }), mounts),
      treeWithThread: async () => (runtime) => new CompositeBackend(new StateBackend(runtime), mounts),
      searchMemories: async (_principal, query) => ({
        hits: [{ path: "/memories/people.md", snippet: `about <${query}>`, score: 1 }],
        note: "Memories were searched by words.",
      }),
    },
  );
  const { id } = await startRun(service, TASK);
  const approvals = (await reach(service, id, "input_required")).requests.filter(isApproval);
  await mine(service).requests.answer(id, { requestId: approvals[0]?.id ?? "", answer: APPROVE }, "page");
  await reach(service, id, "completed");
  return { service, runId: id, rootDir };
}
