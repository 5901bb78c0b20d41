import { expect, test } from "vitest";
import { CompositeBackend } from "../../src/backends/composite/composite.ts";
import { lifetimeAt, resolveBackend, snapshotFiles } from "../../src/backends/runtime.ts";
import { StateBackend } from "../../src/backends/stores/state.ts";
import { StoreBackend } from "../../src/backends/stores/langgraph-store.ts";

test("a tree says for each path how long what is written there stays", async () => {
  const nested = new CompositeBackend(StateBackend, { "/kept/": new StoreBackend() });
  const source = new CompositeBackend(StateBackend, {
    "/memories/": () => new StoreBackend(),
    "/a/drafts/": StateBackend,
    "/b/": nested,
  });
  const tree = await resolveBackend(source, { files: snapshotFiles() });
  const at = (path: string) => lifetimeAt(tree, path);
  expect(await Promise.all(["/x", "/a", "/a/drafts/x", "/b/x", "/memoriesx"].map(at))).toEqual(
    Array.from({ length: 5 }, () => "thread"),
  );
  // A path stays if anything mounted below it does: deleting it reaches there.
  expect(await Promise.all(["/memories", "/memories/x", "/b", "/b/kept/x", "/"].map(at))).toEqual(
    Array.from({ length: 5 }, () => "persistent"),
  );
});

test("a backend that does not tell is taken to last", async () => {
  const { capabilities: _untold, ...untold } = new StateBackend({ files: snapshotFiles() });
  expect(await lifetimeAt(Object.assign(Object.create(StateBackend.prototype), untold), "/x")).toBe(
    "persistent",
  );
});
