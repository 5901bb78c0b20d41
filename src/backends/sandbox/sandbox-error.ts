import { DeepAgentError } from "../../core/errors.ts";

/** A sandbox could not be had (`NOT_INITIALIZED`), or what prepares it failed (`COMMAND_FAILED`). */
export class SandboxError extends DeepAgentError {}
