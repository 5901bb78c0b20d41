/**
 * deepagent-mcp as a library: build a deep agent and choose where its files live.
 */
export { createDeepAgent } from "./agent/create-deep-agent.ts";
export type { CompiledRunnable, CompiledSubAgent, DeepAgentParams, SubAgent } from "./agent/params.ts";
export { loadSubagents, type LoadSubagentsOptions } from "./agent/load-subagents.ts";
export type { AgentLimits, ModelPrice, StopReason } from "./agent/limits/limits.ts";
export type { FilesystemPermission } from "./agent/permissions.ts";
export type { JsonSchemaFormat, ResponseFormat } from "./agent/structured.ts";
export type { TypedDeepAgent } from "./agent/typed.ts";
export type { ToolFunction, ToolInput } from "./agent/agent-tool.ts";
export type {
  ActionRequest,
  AgentEvent,
  AgentPath,
  Decision,
  HitlRequest,
  HitlResponse,
} from "./agent/events.ts";
export { eventOf } from "./agent/step.ts";
export type { InterruptOn, InterruptOnConfig } from "./agent/middleware/human-in-the-loop.ts";
export type {
  AgentMiddleware,
  AgentRuntime,
  Gate,
  Middleware,
  ModelRequest,
  ToolCallRequest,
} from "./agent/middleware/middleware.ts";
export type { BackgroundJobs, JobInfo, JobResult } from "./backends/sandbox/background-jobs.ts";
export type {
  Backend,
  BackendCapabilities,
  BackendErrorCode,
  BackendFactory,
  BackendRuntime,
  BackendSource,
  FileData,
  SandboxBackend,
} from "./backends/backend.ts";
export { adaptBackend } from "./backends/foreign/adapt.ts";
export { CompositeBackend } from "./backends/composite/composite.ts";
export { FilesystemBackend } from "./backends/filesystem/filesystem.ts";
export { PolicyBackend } from "./backends/policy/policy.ts";
export { SENSITIVE_GLOBS } from "./backends/policy/rules.ts";
export { BaseSandbox, type BaseSandboxOptions } from "./backends/sandbox/base-sandbox.ts";
export {
  BubblewrapBackend,
  type BubblewrapOptions,
  type OpenedBubblewrap,
  openBubblewrap,
} from "./backends/sandbox/bubblewrap.ts";
export {
  createSandbox,
  type CreateSandboxOptions,
  type OpenSandbox,
  type SetupOptions,
} from "./backends/sandbox/create-sandbox.ts";
export type { DaytonaOptions } from "./backends/sandbox/daytona.ts";
export { type DockerOptions, type DockerSandbox, openDocker } from "./backends/sandbox/docker.ts";
export { LocalShellBackend, type LocalShellOptions } from "./backends/sandbox/local-shell.ts";
export type { ModalOptions } from "./backends/sandbox/modal.ts";
export type { LoadPackage } from "./backends/sandbox/provider-package.ts";
export type { RemoteOptions } from "./backends/sandbox/remote-sandbox.ts";
export type { RunloopOptions } from "./backends/sandbox/runloop.ts";
export type { FileTransfer } from "./backends/sandbox/sandbox-files.ts";
export { SandboxError } from "./backends/sandbox/sandbox-error.ts";
export { OverlayBackend } from "./backends/overlay/overlay.ts";
export { StateBackend } from "./backends/state.ts";
export { StoreBackend } from "./backends/store/store.ts";
export { ConfigurationError, DeepAgentError, RunFailure } from "./core/errors.ts";
export { createLogger, type Logger } from "./core/logger.ts";
export { createCheckpointer } from "./storage/checkpointer.ts";
export { openDatabase } from "./storage/database.ts";
export { createStore } from "./storage/store.ts";
export { defineTool, type ToolContext, type ToolResult, type ToolSpec } from "./tools/tool.ts";
