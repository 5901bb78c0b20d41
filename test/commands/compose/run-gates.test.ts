import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { filesIn } from "../../support/files-in.ts";
import { runGates } from "../../../src/app/run-gates.ts";
import { ConfigSchema } from "../../../src/config/schema.ts";

let root: string;
beforeEach(() => void (root = filesIn()));

const places = { mounted: undefined, served: [] };
const gatesOf = (approvals: object, workspace?: string) =>
  runGates(ConfigSchema.parse({ dataDir: "/data", approvals, workspace }), { principal: "local" }, places);

describe("approvals.write: none", () => {
  /** True if a change at this path is asked about. */
  function asks(path: string): unknown {
    const gate = gatesOf({ write: "none", execute: "all" }, root)["write_file"];
    return Object(gate).when({ args: { file_path: path } });
  }

  it.each([
    "/workspace/.git/hooks/pre-commit",
    "/workspace/.git/config",
    "/workspace/.mcp.json",
    "/workspace/.vscode/tasks.json",
    "/workspace/packages/x/.claude/settings.json",
    "/workspace/x.code-workspace",
    "/workspace/.github/hooks/before.json",
    "/workspace/packages/x/.github/mcp.json",
    "/workspace/.github/copilot/settings.json",
    "/workspace/crush.json",
    "/workspace/.factory/mcp.json",
    "workspace/.envrc",
    "/workspace/self/.cursor/mcp.json",
    "/workspace/hooks/pre-commit",
  ])("asks about %s", (path) => {
    mkdirSync(join(root, ".git/hooks"), { recursive: true });
    symlinkSync(".", join(root, "self"));
    symlinkSync(".git/hooks", join(root, "hooks"));
    expect(asks(path)).toBe(true);
  });

  it.each([
    "/workspace/.github/workflows/a.yml",
    "/workspace/src/hooks/a.ts",
    "/workspace/a.txt",
    "/workspace/src/git/config",
    "/notes/.vscode/x",
    "/memories/.mcp.json",
  ])("does not ask about %s", (path) => expect(asks(path)).toBe(false));
});

it("asks about commands as the settings say where no sandbox confines them", () => {
  for (const execute of ["all", "unsandboxed"] as const)
    expect(gatesOf({ write: "workspace", execute })).toMatchObject({ execute: true });
});

it("asks about no change by name alone where there is no workspace", () => {
  const gate = gatesOf({ write: "none", execute: "all" })["delete"];
  expect(Object(gate).when({ args: { file_path: "/workspace/.mcp.json" } })).toBe(false);
});
