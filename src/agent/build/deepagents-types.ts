/** Types of this library under the names that they have in deepagents. */
import type { z } from "zod";
import type { Backend } from "../../backends/backend.ts";
import type { SandboxBackend } from "../../backends/executor.ts";
import type { BackendV1 } from "../../backends/foreign/adapt.ts";
import type { LocalShellOptions } from "../../backends/sandbox/shell-backend.ts";
import type { FileOperation } from "../calls/permissions.ts";
import type { FilesystemOptions } from "../layers/filesystem.ts";
import type { ResponseFormat } from "../models/structured-answer.ts";
import type {
  CompiledSubAgent,
  DeepAgentParams,
  SubAgent,
  SystemPromptParts,
  TypedDeepAgent,
} from "./params.ts";

export type CreateDeepAgentParams = DeepAgentParams;
export type DeepAgent = TypedDeepAgent<undefined, unknown, z.ZodObject>;
export type AnySubAgent = SubAgent | CompiledSubAgent;
export type SystemPromptConfig = SystemPromptParts;
export type SupportedResponseFormat = ResponseFormat;
export type FilesystemOperation = FileOperation;
export type FsToolName = NonNullable<FilesystemOptions["tools"]>[number];
export type BackendProtocol = Backend;
export type BackendProtocolV1 = BackendV1;
export type BackendProtocolV2 = Backend;
export type AnyBackendProtocol = Backend | BackendV1;
export type SandboxBackendProtocol = SandboxBackend;
export type SandboxBackendProtocolV2 = SandboxBackend;
export type LocalShellBackendOptions = LocalShellOptions;
