import { readFile } from "node:fs/promises";
import { ConfigurationError, errorMessage } from "../../core/errors.ts";
import type { SandboxBackend } from "../executor.ts";
import type { LoadPackage } from "../../core/optional-package.ts";
import { fill } from "../../core/text.ts";
import { memberOf, defined } from "../../core/unknown.ts";
import texts from "../texts.json" with { type: "json" };
import { SandboxError } from "./base-sandbox.ts";
import { type BubblewrapOptions, openBubblewrap } from "./bubblewrap.ts";
import { DAYTONA, type DaytonaOptions, openDaytona } from "./daytona.ts";
import { type DockerOptions, dockerProblem, openDocker } from "./docker.ts";
import { MODAL, type ModalOptions, openModal } from "./modal.ts";
import { loadClient } from "./remote-sandbox.ts";
import { RUNLOOP, type RunloopOptions, openRunloop } from "./runloop.ts";
import { LocalShellBackend, type LocalShellOptions } from "./shell-backend.ts";

export interface SetupOptions {
  /** Shell commands that prepare a new sandbox, run once before anything else. */
  setupScript?: string;
  /** A file of this machine with such commands. Set it or `setupScript`, not both. */
  setupScriptPath?: string;
  /** Seconds that the setup may take. Default 600. */
  setupTimeout?: number;
}

/** The provider with its own options. */
export type CreateSandboxOptions = SetupOptions &
  (
    | ({ provider: "local" } & LocalShellOptions)
    | ({ provider: "bubblewrap" } & BubblewrapOptions)
    | ({ provider: "docker" } & DockerOptions)
    | ({ provider: "modal" } & ModalOptions)
    | ({ provider: "runloop" } & RunloopOptions)
    | ({ provider: "daytona" } & DaytonaOptions)
  );

/** A sandbox that can be closed. `close` ends its commands, and the sandbox itself if it was made here. */
export interface OpenSandbox extends SandboxBackend, AsyncDisposable {
  close(): Promise<void>;
}

/**
 * Opens a sandbox of any provider, ready for use. A running one that `sandboxId` names is used without setup. The
 * packages of remote providers are loaded by `load` when they are needed.
 *
 * Throws `SandboxError` if the sandbox cannot be opened (`NOT_INITIALIZED`) or its setup failed
 * (`COMMAND_FAILED`, `COMMAND_TIMEOUT`), and `ConfigurationError` for options that make no sense.
 */
export async function createSandbox(
  options: CreateSandboxOptions,
  load: LoadPackage = (name) => import(name),
): Promise<OpenSandbox> {
  const script = await readSetupScript(options);
  const sandbox = await openSandbox(options, load);
  const isNew = !("sandboxId" in options) || options.sandboxId === undefined;
  if (script !== undefined && isNew) await prepareSandbox(sandbox, script, options.setupTimeout);
  return sandbox;
}

const PACKAGES = { modal: MODAL, runloop: RUNLOOP, daytona: DAYTONA };

/**
 * Finds the reason why a sandbox could not be opened, without opening one: a missing package, key, program, image or
 * setup file. `isThorough`: also asks the service of containers, which takes longer.
 */
export async function sandboxProblem(
  given: SetupOptions & DockerOptions & Pick<CreateSandboxOptions, "provider">,
  isThorough: boolean,
  load: LoadPackage = (name) => import(name),
): Promise<string | undefined> {
  const { provider, setupScript, setupScriptPath, setupTimeout: _time, ...options } = given;
  try {
    await readSetupScript({ ...defined({ setupScript, setupScriptPath }) });
    if (provider === "docker") return await dockerProblem(options, isThorough);
    if (provider in PACKAGES) await loadClient(PACKAGES[provider as keyof typeof PACKAGES], load);
    return undefined;
  } catch (error) {
    return errorMessage(error);
  }
}

/** Runs the setup in a new sandbox for at most `timeout` seconds. If it fails, closes the sandbox and throws. */
export async function prepareSandbox(
  sandbox: SandboxBackend & { close(): Promise<void> },
  script: string,
  timeout: number = 600,
): Promise<void> {
  const { output, exitCode, timedOut } = await sandbox.execute(script, { timeout, approved: true });
  if (exitCode === 0) return;
  await sandbox.close();
  const code = timedOut === true ? "COMMAND_TIMEOUT" : "COMMAND_FAILED";
  const what = timedOut === true ? "did not finish in time" : `failed with exit code ${exitCode ?? "none"}`;
  const tail = output.trim().slice(-2000);
  throw new SandboxError(code, `The setup script of the sandbox ${what}; its output ends: ${tail}`);
}

/** Reads the commands of a setup. Throws `ConfigurationError` if that fails. */
export async function readSetupScript(options: SetupOptions): Promise<string | undefined> {
  const { setupScript, setupScriptPath } = options;
  if (setupScriptPath === undefined) return setupScript;
  if (setupScript !== undefined)
    throw new ConfigurationError("SANDBOX_SETUP", "Set setupScript or setupScriptPath, not both");
  try {
    return await readFile(setupScriptPath, "utf8");
  } catch (cause) {
    throw new ConfigurationError("SANDBOX_SETUP", "The file of setupScriptPath cannot be read", { cause });
  }
}

async function openSandbox(options: CreateSandboxOptions, load: LoadPackage): Promise<OpenSandbox> {
  switch (options.provider) {
    case "local":
      return new LocalShellBackend(ownOptions(options));
    case "bubblewrap": {
      const opened = await openBubblewrap(ownOptions(options));
      if (opened.ok) return opened.backend;
      throw new SandboxError("NOT_INITIALIZED", opened.reason);
    }
    case "docker":
      return openDocker(ownOptions(options));
    case "modal":
      return openModal(ownOptions(options), load);
    case "runloop":
      return openRunloop(ownOptions(options), load);
    case "daytona":
      return openDaytona(ownOptions(options), load);
    default: {
      const given = JSON.stringify(memberOf(options, "provider"));
      throw new ConfigurationError("UNKNOWN_PROVIDER", fill(texts.unknownProvider, given));
    }
  }
}

/** The options of the provider alone. */
function ownOptions<Options extends CreateSandboxOptions>(options: Options) {
  const {
    provider: _chosen,
    setupScript: _text,
    setupScriptPath: _file,
    setupTimeout: _time,
    ...own
  } = options;
  return own;
}
