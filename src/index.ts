/**
 * deepagent-mcp as a library: build a deep agent and choose where its files live.
 */
export { createDeepAgent } from "./agent/build/create-deep-agent.ts";
export type {
  CompiledRunnable,
  CompiledSubAgent,
  DeepAgentParams,
  GoalOptions,
  Hints,
  SubAgent,
} from "./agent/build/params.ts";
export {
  type AgentMode,
  buildAgent,
  type BuildAgentOptions,
  buildLlm,
  type BuildLlmOptions,
  getAgentState,
  resumeAgentInput,
  type ResumeInput,
  streamEvents,
  type TokenEvent,
  type WorkspaceAgent,
  type WorkspaceState,
} from "./agent/build/cowork.ts";
export { type AgentProfile, type ProfileName, PROFILES } from "./agent/build/profiles.ts";
export type {
  AnyBackendProtocol,
  AnySubAgent,
  DeepAgent,
  FsToolName,
} from "./agent/build/deepagents-types.ts";
/** Types that deepagents has under other names. */
export type { Backend as BackendProtocol, Backend as BackendProtocolV2 } from "./backends/backend.ts";
export type { BackendV1 as BackendProtocolV1 } from "./backends/foreign/adapt.ts";
export type {
  SandboxBackend as SandboxBackendProtocol,
  SandboxBackend as SandboxBackendProtocolV2,
} from "./backends/executor.ts";
export type {
  DeepAgentParams as CreateDeepAgentParams,
  SystemPromptParts as SystemPromptConfig,
} from "./agent/build/params.ts";
export type { ResponseFormat as SupportedResponseFormat } from "./agent/models/structured-answer.ts";
export type { FileOperation as FilesystemOperation } from "./agent/calls/permissions.ts";
export type { LocalShellOptions as LocalShellBackendOptions } from "./backends/sandbox/shell-backend.ts";
export type { ModelSource } from "./agent/models/resolve.ts";
export { loadSubagents, type LoadSubagentsOptions } from "./agent/build/agent-files.ts";
export type { AgentLimits, ModelPrice, Spent } from "./agent/contracts/limits.ts";
export type { CriterionVerdict, GoalState, GoalStatus } from "./agent/contracts/goal.ts";
export type { Verdict } from "./core/criteria.ts";
export type { AgentPath, AgentPathSegment, ModelFailureReason, StopReason } from "./agent/contracts/state.ts";
export type { FileOperation, FilesystemPermission, PermissionMode } from "./agent/calls/permissions.ts";
export type { AnswerSchema, JsonSchemaFormat, ResponseFormat } from "./agent/models/structured-answer.ts";
export type { SystemPrompt, SystemPromptParts, TypedDeepAgent } from "./agent/build/params.ts";
export type {
  AgentMiddleware,
  AgentRuntime,
  AgentTool,
  Budget,
  CallHandler,
  CallResult,
  CallScope,
  Gate,
  Hook,
  HookName,
  LangChainMiddleware,
  LayerChannel,
  Middleware,
  ModelHandler,
  ModelRequest,
  OwnEvent,
  ProviderTool,
  RunnableTool,
  Step,
  ToolCallRequest,
  ToolFunction,
  ToolGate,
  ToolHandler,
  ToolInput,
  ValidatedArgs,
} from "./agent/contracts/middleware.ts";
export type { ModelTrace } from "./agent/contracts/middleware.ts";
export type {
  ActionRequest,
  AskedByProgram,
  HitlRequest,
  HitlResponse,
  PendingInterrupt,
  PendingQuestion,
  ReviewConfig,
} from "./agent/contracts/question.ts";
export type { Decision, DecisionType, SameCalls } from "./tools/request.ts";
export type { AgentEvent } from "./agent/contracts/events.ts";
export type { AgentSnapshot } from "./agent/contracts/agent.ts";
export type { AgentState, FilesState, JumpTarget, StateUpdate, TokenUsage } from "./agent/contracts/state.ts";
export { eventOf, withEvents } from "./agent/langgraph/step-of-task.ts";
export type { DelegationOptions } from "./agent/layers/planning.ts";
export type { FilesystemOptions } from "./agent/layers/filesystem.ts";
export type { InstructionOptions } from "./agent/layers/instruction-files.ts";
export type { ContextSize } from "./agent/compaction/compacted-view.ts";
export type { SummarizationOptions } from "./agent/layers/summarization.ts";
export type { ToolsOnDemand } from "./agent/layers/tools-on-demand.ts";
export type { WebOptions } from "./agent/layers/web.ts";
export type { SearchOptions, SearchProvider } from "./web/search/options.ts";
export type { FoundPage, SearchPages } from "./web/search/ask.ts";
export type {
  GatedCallView,
  GateState,
  InterruptOn,
  InterruptOnAlias,
  InterruptOnConfig,
  ToolCallView,
} from "./agent/layers/human-in-the-loop.ts";
export type { BackgroundJobs, JobInfo, JobResult } from "./backends/executor.ts";
export type {
  Backend,
  BackendCapabilities,
  BackendClass,
  BackendErrorCode,
  BackendFactory,
  BackendRuntime,
  BackendSource,
  CallOptions,
  DeleteResult,
  EditOptions,
  EditResult,
  Failure,
  FileData,
  FileDataV1,
  FileDataV2,
  FileDownloadResponse,
  FileInfo,
  FileRoot,
  FileOperationError,
  FilesUpdate,
  FileTimes,
  FileUploadResponse,
  GlobResult,
  GrepMatch,
  GrepOptions,
  GrepResult,
  LsResult,
  MaybePromise,
  ReadRawResult,
  ReadResult,
  ResolveOptions,
  ThreadFiles,
  WriteOptions,
  WriteResult,
} from "./backends/backend.ts";
export type { TextEncoding } from "./backends/encoding.ts";
export type { ExecuteOptions, ExecuteResponse, SandboxBackend, CommandFacts } from "./backends/executor.ts";
export type { BackendFailure } from "./backends/errors.ts";
export { adaptBackend, type BackendV1 } from "./backends/foreign/adapt.ts";
export { CompositeBackend, type CompositeOptions } from "./backends/composite/composite.ts";
export {
  FilesystemBackend,
  type FilesystemOptions as FilesystemBackendOptions,
} from "./backends/filesystem/filesystem.ts";
export { PolicyBackend } from "./backends/policy.ts";
export { type PolicyOptions, type PolicyRules, SENSITIVE_GLOBS } from "./backends/policy-rules.ts";
export { BaseSandbox, type BaseSandboxOptions, SandboxError } from "./backends/sandbox/base-sandbox.ts";
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
export type { NoSandbox } from "./backends/sandbox/probe.ts";
export type { EnvironmentOptions, SandboxMount } from "./backends/sandbox/environment.ts";
export {
  LocalShellBackend,
  type LocalShellOptions,
  type ShellLimits,
} from "./backends/sandbox/shell-backend.ts";
export type { ModalOptions } from "./backends/sandbox/modal.ts";
export type { RemoteOptions } from "./backends/sandbox/remote-sandbox.ts";
export type { RunloopOptions } from "./backends/sandbox/runloop.ts";
export type { FileTransfer, SandboxFilesOptions } from "./backends/sandbox/sandbox-files.ts";
export {
  type Expected,
  type FileStore,
  FileStoreBackend,
  type FileStoreBackendOptions,
  FileTooLarge,
  type ListedFile,
  type ListOptions,
  type StoredFile,
} from "./backends/file-store.ts";
export {
  PostgresBackend,
  type PostgresBackendOptions,
  type PostgresPool,
} from "./backends/stores/postgres.ts";
export { S3Backend, type S3BackendOptions } from "./backends/stores/s3.ts";
export { OverlayBackend } from "./backends/overlay.ts";
export type { FileFormat } from "./backends/file-data.ts";
export type { StateAndStore } from "./backends/runtime.ts";
export { StateBackend, type StateBackendOptions } from "./backends/stores/state.ts";
export {
  StoreBackend,
  type StoreBackendOptions,
  type StoreNamespace,
} from "./backends/stores/langgraph-store.ts";
export { ConfigurationError, DeepAgentError, MemoryTooLarge, RunFailure } from "./core/errors.ts";
export type { Clock } from "./core/clock.ts";
export type { LoadPackage } from "./core/optional-package.ts";
export type { S3Address } from "./core/s3-address.ts";
export { createLogger, type LogFields, type Logger, type LogLevel } from "./core/logger.ts";
export type { NearPassage } from "./storage/memories/passages.ts";
export type {
  Lifetime,
  MemoryStore,
  StorePut,
  TextHit,
  TtlConfig,
  VersionedItem,
} from "./storage/memories/contracts.ts";
export type { MemoryOptions, StoredMemories } from "./storage/memories/store.ts";
export type { Embed, VectorIndexConfig } from "./storage/sqlite/memories/vectors.ts";
export type { Checkpoints, FencingToken, ThreadStep, WrittenMessages } from "./runs/thread-ports.ts";
export { createCheckpointer, type SqliteCheckpointer } from "./storage/sqlite/checkpoints/checkpointer.ts";
export { type Database, type DatabaseOptions, openDatabase } from "./storage/sqlite/database.ts";
export { createStore, type SqliteStore, type StoreOptions } from "./storage/sqlite/memories/store.ts";
export type { FileToolName, FileToolOptions, WebToolName } from "./tools/options.ts";
export {
  type BoundPreview,
  type FileDiff,
  type ContentBlock,
  defineTool,
  type SpawnSubagent,
  type Todo,
  type TodoStatus,
  type BackgroundTask,
  type BackgroundTasks,
  type RunProgram,
  type ToolContext,
  type ToolKind,
  type ToolResult,
  type ToolSpec,
  type AskPerson,
  type HoldQuestion,
} from "./tools/tool.ts";
export type {
  CallPreview,
  Answer,
  Field,
  Question,
  ReviewChoice,
  ReviewedFile,
  Value,
} from "./tools/request.ts";
