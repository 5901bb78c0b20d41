// @module-tag long
// npm installs the packed program into an empty folder, with all that it depends on.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasNodeSqlite } from "../../src/storage/sqlite/node-driver.ts";
import { ROOT, cleanEnv } from "../commands/built-bin.ts";

let folder: string;
let tarball: string;
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "installed-")));
  execFileSync("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], {
    cwd: ROOT,
    stdio: "pipe",
  });
  tarball = join(folder, readdirSync(folder).find((name) => name.endsWith(".tgz")) ?? "");
});
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));

/** An empty folder into which npm installed the program; gives a function that starts it there. */
function installed(...flags: string[]) {
  const place = mkdtempSync(join(folder, "place-"));
  // npm, the scripts of packages and the program run on the Node of this test.
  const PATH = `${dirname(process.execPath)}${delimiter}${process.env["PATH"]}`;
  const env = { ...cleanEnv(), PATH, DEEPAGENT_DATA_DIR: join(place, "data"), NO_COLOR: "1" };
  const options = { cwd: place, env, encoding: "utf8" } as const;
  const install = ["install", "--no-audit", "--no-fund", ...flags, tarball];
  const { status, stderr } = spawnSync("npm", install, options);
  expect(status, stderr).toBe(0);
  expect(stderr).not.toMatch(/ERESOLVE|EBADENGINE|deprecated/);
  return (...args: string[]) => spawnSync(join(place, "node_modules/.bin/deepagent-mcp"), args, options);
}

const DEMO = ["demo", "--yes"];
const OFFLINE = ["--model", "offline"];
const RUN = ["run", "Say hello", "--yes", ...OFFLINE];

describe("installed by npm", { tags: "registry" }, () => {
  it("the program shows its demo, finds nothing missing and completes a run", () => {
    const program = installed();
    const shown = [
      [DEMO, "✔ completed in"],
      [["doctor", ...OFFLINE], "All checks passed."],
    ] as const;
    for (const [args, text] of [...shown, [RUN, "completed"] as const]) {
      const { status, stdout, stderr } = program(...args);
      expect(stdout + stderr).toContain(text);
      expect(status).toBe(0);
    }
  });

  it("without install scripts, it works with Node's own SQLite or says what is missing", () => {
    const { status, stdout, stderr } = installed("--ignore-scripts")(...RUN);
    if (hasNodeSqlite()) {
      expect(stdout + stderr).toContain("completed");
      return;
    }
    expect(status).toBe(1);
    expect(stderr).toMatch(
      /^deepagent-mcp: SQLite cannot be loaded: .*Use Node 22\.13 or later\. .*npm rebuild/m,
    );
  });
});
