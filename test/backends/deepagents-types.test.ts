import type * as deepagents from "deepagents";
import { describe, expectTypeOf, it } from "vitest";
import type { BackendV1 } from "../../src/backends/foreign/adapt.ts";
import type { Backend, BackendSource } from "../../src/backends/backend.ts";
import type { SandboxBackend } from "../../src/backends/executor.ts";
import type { CompositeBackend } from "../../src/backends/composite/composite.ts";
import type { FilesystemBackend } from "../../src/backends/filesystem/filesystem.ts";
import type { PolicyBackend } from "../../src/backends/policy.ts";
import type { BubblewrapBackend } from "../../src/backends/sandbox/bubblewrap.ts";
import type { OpenSandbox } from "../../src/backends/sandbox/create-sandbox.ts";
import type { DockerSandbox } from "../../src/backends/sandbox/docker.ts";
import type { LocalShellBackend } from "../../src/backends/sandbox/shell-backend.ts";
import type { StateBackend } from "../../src/backends/stores/state.ts";
import type { StoreBackend } from "../../src/backends/stores/langgraph-store.ts";

/** Checked by the compiler, without running. */
describe("the types of deepagents", () => {
  it("are accepted where a backend is meant", () => {
    expectTypeOf<deepagents.BackendProtocolV2>().toExtend<Backend>();
    expectTypeOf<deepagents.SandboxBackendProtocolV2>().toExtend<SandboxBackend>();
    expectTypeOf<deepagents.BackendProtocolV1>().toExtend<BackendV1>();
    expectTypeOf<deepagents.StateBackend>().toExtend<BackendSource>();
    expectTypeOf<deepagents.StoreBackend>().toExtend<BackendSource>();
    expectTypeOf<deepagents.FilesystemBackend>().toExtend<BackendSource>();
    expectTypeOf<deepagents.CompositeBackend>().toExtend<BackendSource>();
    expectTypeOf<deepagents.LocalShellBackend>().toExtend<BackendSource>();
    expectTypeOf<deepagents.BaseSandbox>().toExtend<SandboxBackend>();
  });

  it("accept our backends", () => {
    expectTypeOf<Backend>().toExtend<deepagents.BackendProtocolV2>();
    expectTypeOf<SandboxBackend>().toExtend<deepagents.SandboxBackendProtocolV2>();
    expectTypeOf<StateBackend>().toExtend<deepagents.BackendProtocolV2>();
    expectTypeOf<StoreBackend>().toExtend<deepagents.BackendProtocolV2>();
    expectTypeOf<FilesystemBackend>().toExtend<deepagents.BackendProtocolV2>();
    expectTypeOf<CompositeBackend>().toExtend<deepagents.BackendProtocolV2>();
    expectTypeOf<PolicyBackend>().toExtend<deepagents.BackendProtocolV2>();
    expectTypeOf<LocalShellBackend>().toExtend<deepagents.SandboxBackendProtocolV2>();
    expectTypeOf<BubblewrapBackend>().toExtend<deepagents.SandboxBackendProtocolV2>();
    expectTypeOf<DockerSandbox>().toExtend<deepagents.SandboxBackendProtocolV2>();
    expectTypeOf<OpenSandbox>().toExtend<deepagents.SandboxBackendProtocolV2>();
  });
});
