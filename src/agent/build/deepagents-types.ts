/** Types with names of deepagents. Those that this library has under another name are in `src/index.ts`. */
import type { z } from "zod";
import type { Backend } from "../../backends/backend.ts";
import type { BackendV1 } from "../../backends/foreign/adapt.ts";
import type { FilesystemOptions } from "../layers/filesystem.ts";
import type { CompiledSubAgent, SubAgent, TypedDeepAgent } from "./params.ts";

export type DeepAgent = TypedDeepAgent<undefined, unknown, z.ZodObject>;
export type AnySubAgent = SubAgent | CompiledSubAgent;
export type FsToolName = NonNullable<FilesystemOptions["tools"]>[number];
export type AnyBackendProtocol = Backend | BackendV1;
