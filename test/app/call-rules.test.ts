import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { callRules } from "../../src/app/call-rules.ts";
import { LocalShellBackend } from "../../src/backends/sandbox/shell-backend.ts";
import { ConfigSchema } from "../../src/config/schema.ts";
import { filesIn } from "../support/files-in.ts";

test("outside a sandbox, no rule covers a command in a folder that only looks like the workspace", () => {
  const workspace = filesIn({ "docs/a.md": "" });
  mkdirSync(join(workspace, "2"));
  const executor = new LocalShellBackend({ rootDir: workspace, virtualMode: true });
  const rules = callRules(
    ConfigSchema.parse({ dataDir: "/data", workspace }),
    { principal: "local" },
    { mounted: { executor, mount: "/workspace" }, served: [], ignored: null, instructing: [] },
  );
  const isRuled = (command: string): boolean => rules?.describe("execute", { command }, {}) !== undefined;
  expect(isRuled("cd docs && npm test")).toBe(true);
  // Commands on this machine do not see the workspace there.
  expect(isRuled("cd /workspace/docs && npm test")).toBe(false);
  expect(isRuled("cd /workspace/2 && npm test")).toBe(false);
  expect(isRuled("cd /workspace2 && npm test")).toBe(false);
});
