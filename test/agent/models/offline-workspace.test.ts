import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { MemorySaver } from "@langchain/langgraph";
import { beforeEach, expect, test } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { OfflineModel } from "../../../src/agent/models/offline/offline-model.ts";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { FilesystemBackend } from "../../../src/backends/filesystem/filesystem.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { collect } from "../../support/run-agent.ts";
import { filesIn } from "../../support/files-in.ts";

let root: string;

beforeEach(() => {
  root = filesIn();
});

function put(files: Record<string, string | Buffer>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}

async function work(task: string) {
  const agent = buildAgent({
    model: new OfflineModel(),
    backend: new CompositeBackend(new StateBackend(), {
      "/workspace/": new FilesystemBackend({ rootDir: root, virtualMode: true }),
    }),
    checkpointer: new MemorySaver(),
  });
  const events = await collect(agent, { kind: "task", task });
  const last = events.at(-1);
  const failed = events.filter((event) => event.kind === "tool_finished" && event.status === "error");
  return { answer: last?.kind === "finished" ? last.answer : "", failed };
}

test("a folder on disk: found, cited, reported, nothing else touched", async () => {
  put({
    "README.md": "# Tides\r\n\r\nPredicts high water.\r\n",
    "src/high water.ts": "export function highWater() {\n  return 3;\n}\n",
    "src/logo.png": Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 3]),
    "src/deep/er/notes.txt": "high water is at noon\n",
    "docs/übersicht.md": "# Übersicht\n\nhigh water\n",
    "node_modules/tide/index.js": "highWater",
    ".env": "KEY=highWater-secret",
  });
  symlinkSync("/etc", join(root, "outside"));
  const { answer, failed } = await work('Where is "high water" computed?');
  expect(failed).toEqual([]);
  const report = readFileSync(join(root, "deepagent-report.md"), "utf8");
  expect(report).toContain("- /workspace/src/high water.ts:1 `export function highWater() {`");
  expect(report).toContain("- /workspace/src/deep/er/notes.txt:1 `high water is at noon`");
  expect(report).toContain("- /workspace/docs/übersicht.md:3 `high water`");
  expect(report).toContain("- /workspace/README.md:3 `Predicts high water.`");
  expect(report).not.toMatch(/node_modules|secret|passwd/);
  expect(answer).toContain("The full report is in /workspace/deepagent-report.md.");
  expect(readdirSync(root).sort()).toEqual(
    [".env", "README.md", "deepagent-report.md", "docs", "node_modules", "outside", "src"].sort(),
  );
});

test("thousands of files: counted beyond what is listed, and the report stays readable", async () => {
  for (let n = 0; n < 1500; n += 1) put({ [`data/f${n}.txt`]: `tide ${n}\n` });
  const { answer } = await work("Which tide is the highest?");
  expect(answer).toContain("I examined 1500 files");
  expect(readFileSync(join(root, "deepagent-report.md"), "utf8").length).toBeLessThan(20_000);
});
