import { InMemoryStore } from "@langchain/langgraph-checkpoint";
import { describe, expect, it } from "vitest";
import type { BackendRuntime, BackendSource } from "../../src/backends/backend.ts";
import { CompositeBackend } from "../../src/backends/composite/composite.ts";
import { PolicyBackend } from "../../src/backends/policy.ts";
import { resolveBackend, snapshotFiles } from "../../src/backends/runtime.ts";
import { StateBackend } from "../../src/backends/stores/state.ts";
import { StoreBackend } from "../../src/backends/stores/langgraph-store.ts";

const runtime = () => ({ files: snapshotFiles(), store: new InMemoryStore() });

describe("resolveBackend", () => {
  it.each<[string, BackendSource]>([
    ["an instance without runtime", new StateBackend()],
    ["a class", StateBackend],
    ["a factory", (rt: BackendRuntime) => new StateBackend(rt)],
    ["a factory that gives a promise", async () => new StateBackend()],
    [
      "a factory with a prototype",
      function make() {
        return new StateBackend();
      },
    ],
    ["a store backend", new StoreBackend()],
    ["a store class", StoreBackend],
    ["a composite", new CompositeBackend(() => new StateBackend(), {})],
    ["a policy", new PolicyBackend(() => new StateBackend(), {})],
  ])("ties %s to the call", async (_name, source) => {
    const first = runtime();
    const backend = await resolveBackend(source, first);
    expect((await backend.write("/a.txt", "a")).error).toBeUndefined();
    expect((await (await resolveBackend(source, first)).read("/a.txt")).content).toBe("a");
    expect((await (await resolveBackend(source, runtime())).read("/a.txt")).code).toBe("not_found");
  });

  it("leaves a backend with its own runtime as it is", async () => {
    const own = new StateBackend(runtime());
    expect(await resolveBackend(own, runtime())).toBe(own);
  });

  it("makes each backend of a composite once a call, and none that is not used", async () => {
    const made: string[] = [];
    const factory = (name: string) => () => {
      made.push(name);
      return new StateBackend();
    };
    const source = new CompositeBackend(factory("root"), { "/a/": factory("a"), "/b/": factory("b") });
    const backend = await resolveBackend(source, runtime());
    await backend.write("/a/x.txt", "x");
    await backend.read("/a/x.txt");
    expect(made).toEqual(["a"]);
    await (await resolveBackend(source, runtime())).read("/x.txt");
    expect(made).toEqual(["a", "root"]);
  });
});
