import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { resolveBackend, snapshotFiles } from "../../../src/backends/runtime.ts";
import { LocalShellBackend } from "../../../src/backends/sandbox/shell-backend.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { ConfigurationError } from "../../../src/core/errors.ts";
import { canExecute } from "../../../src/tools/execute.ts";
import { folder } from "./support.ts";

function shell(): LocalShellBackend & { root: string } {
  const root = folder();
  const backend = new LocalShellBackend({ rootDir: root, virtualMode: true });
  onTestFinished(() => backend.close());
  return Object.assign(backend, { root });
}

/** The tree as a tool call gets it. */
async function tree(composite: CompositeBackend) {
  const backend = await resolveBackend(composite, { files: snapshotFiles() });
  if (!canExecute(backend)) throw new Error("the tree runs no commands");
  return backend;
}

describe("CompositeBackend with an executor", () => {
  it("runs commands with the backend of the route it names", async () => {
    const local = shell();
    const composite = new CompositeBackend(
      StateBackend,
      { "/workspace": local },
      { executor: "/workspace/" },
    );
    const backend = await tree(composite);
    expect(backend.id).toBe(local.id);
    expect(backend.capabilities).toMatchObject({ isolation: "none", executeOptions: true, paths: "virtual" });
    await backend.write("/workspace/a.txt", "text");
    expect((await backend.execute("cat a.txt")).output).toBe("text");
  });

  it("takes working directories as paths of the tree", async () => {
    const local = shell();
    mkdirSync(join(local.root, "src"));
    const routes = { "/work/space/": local };
    const backend = await tree(new CompositeBackend(new StateBackend(), routes, { executor: "/work/space" }));
    expect((await backend.execute("pwd", { cwd: "/work/space/src/" })).output).toBe(`${local.root}/src\n`);
    expect((await backend.execute("pwd", { cwd: "/work/space" })).output).toBe(`${local.root}\n`);
    expect(await backend.execute("pwd", { cwd: "/work/space/none" })).toEqual({
      output: "Error: Directory '/work/space/none' not found",
      exitCode: 1,
      truncated: false,
    });
    for (const cwd of ["/", "/work", "/work/spaces"]) {
      expect((await backend.execute("touch made", { cwd })).output).toBe(
        `Error: Commands run in /work/space/ and below only, not in '${cwd}'`,
      );
    }
    expect((await backend.execute("pwd", { cwd: "/work/space/../x" })).exitCode).toBe(1);
    expect((await backend.ls("/work/space")).files?.map(({ path }) => path)).toEqual(["/work/space/src/"]);
  });

  it("runs commands with the default backend when that can", async () => {
    const local = shell();
    const backend = await tree(new CompositeBackend(local, { "/notes/": new StateBackend() }));
    expect((await backend.execute("pwd")).output).toBe(`${local.root}\n`);
  });

  it("runs none without an executor", async () => {
    const composite = new CompositeBackend(new StateBackend(), { "/workspace/": shell() });
    expect(canExecute(composite)).toBe(false);
    expect("execute" in composite).toBe(false);
    expect("execute" in (await resolveBackend(composite, { files: snapshotFiles() }))).toBe(false);
  });

  it("refuses an executor that is no route or runs no commands", () => {
    const routes = { "/workspace/": new StateBackend() };
    for (const executor of ["/workspace/", "/other/", "", "/"]) {
      expect(() => new CompositeBackend(new StateBackend(), routes, { executor })).toThrow(
        ConfigurationError,
      );
    }
  });
});
