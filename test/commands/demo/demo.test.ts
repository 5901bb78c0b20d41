import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { once } from "node:events";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { program } from "../../support/harness-stdio.ts";
import { runBin } from "../built-bin.ts";
import type { Outcome } from "../built-bin.ts";

let folder: string;
let temporary: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "demo-test-")));
  temporary = join(folder, "tmp");
  mkdirSync(temporary);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function demo(args: string[], env: Record<string, string> = {}): Promise<Outcome> {
  return runBin(["demo", ...args], {
    program: await program(),
    cwd: folder,
    env: { TMPDIR: temporary, XDG_DATA_HOME: join(folder, "data"), ...env },
  });
}

function project(): string {
  const files = {
    "src/main.py": "# TODO: read the port from the environment\nprint('hello')\n",
    "docs/guide.md": "# Guide\n\nStart it with python.\n",
    "node_modules/big/index.js": "",
  };
  const root = join(folder, "project");
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return root;
}

it("runs on a copy of the sample without a terminal, and leaves the report", async () => {
  const { code, stdout, stderr } = await demo([]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain("offline: fixed rules, no language model");
  expect(stdout).toMatch(/✔ approved \(it works on a copy\): .*deepagent-report\.md/);
  const report = /^── Report {2}(.+)$/m.exec(stdout)?.[1] ?? "";
  expect(report).toMatch(/deepagent-report\.md$/);
  const text = readFileSync(report, "utf8");
  expect(text).toMatch(/src\/[a-z]+\.js:\d+/);
  expect(stdout).toContain(text.trim().split("\n")[0]);
  expect(stdout).toMatch(/── Memory {2}\/memories\//);
  expect(stdout).toMatch(/✔ completed in [\d.]+ s · [2-9] subagents · \d+ tool calls/);
  // What the demo kept for itself is gone; the workspace with the report stays.
  expect(readdirSync(dirname(dirname(report)))).toEqual(["tidewatch"]);
});

it("refuses one's own folder when nobody can be asked, and tells how to allow it", async () => {
  const root = project();
  const { code, stdout, stderr } = await demo(["--workspace", root, "What is unfinished here?"]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain("There is no terminal to ask in");
  expect(stderr).toContain("--yes");
  expect(readdirSync(root).sort()).toEqual(["docs", "node_modules", "src"]);
});

it("works on the folder itself with --yes", async () => {
  const root = project();
  const { code, stdout } = await demo(["--workspace", root, "--yes"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/✔ approved \(--yes\): .*deepagent-report\.md/);
  expect(existsSync(join(root, "deepagent-report.md"))).toBe(true);
  expect(readdirSync(temporary).filter((name) => name.startsWith("deepagent-demo"))).toEqual([]);
});

it("fails with exit code 1 and the reason when the run fails", async () => {
  const provider = createServer((_request, response) => {
    response.writeHead(401, { "content-type": "application/json" });
    response.end('{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}');
  });
  await once(provider.listen(0, "127.0.0.1"), "listening");
  try {
    const address = provider.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const { code, stdout, stderr } = await demo(["--model", "anthropic:claude-test"], {
      ANTHROPIC_API_KEY: "sk-secret-value",
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`,
    });
    expect(code).toBe(1);
    expect(stdout).toContain("model_auth");
    expect(stdout).toContain("✖ failed in");
    expect(stdout + stderr).not.toContain("sk-secret-value");
  } finally {
    provider.close();
  }
});

it("says which model is missing a key before it starts a run", async () => {
  const { code, stderr } = await demo(["--model", "openai:gpt-test"]);
  expect(code).toBe(1);
  expect(stderr).toContain("OPENAI_API_KEY");
});
