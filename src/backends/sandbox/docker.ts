import { randomBytes } from "node:crypto";
import { readOptions } from "../../core/options.ts";
import tables from "../options.json" with { type: "json" };
import { oneLine } from "../../core/text.ts";
import type { ExecuteOptions, ExecuteResponse } from "../executor.ts";
import { LimitedSandbox, SandboxError } from "./base-sandbox.ts";
import { END_MARKED, MARK_NAME, SYSTEM_PATH, commandZone, splitWords, unattended } from "./environment.ts";
import { script } from "./sandbox-files.ts";
import { LastWill, ProcessRunner } from "./process-runner.ts";
import { DEFAULT_OUTPUT_BYTES, type ShellLimits } from "./shell-backend.ts";

export interface DockerOptions extends ShellLimits {
  /** The image of a new container; it needs `sh` and the usual small programs. */
  image?: string;
  /** A running container to use; it is left running. */
  sandboxId?: string;
  /** Name or path of a program that takes Docker's commands, such as `podman`. Default `docker`. */
  program?: string;
  /** Arguments in front of each command of the program. */
  programArguments?: readonly string[];
  /** Directory of the agent's files. Default `/workspace`. */
  workdir?: string;
  /** Environment of commands. */
  env?: Readonly<Record<string, string>>;
  /** User and group of commands. Default `1000:1000` in a new container, its own in one that runs. */
  user?: string;
  /** Arguments of `run` that limit a new container. Default: 2 GiB of memory, 2 processors, 512 processes. */
  limits?: readonly string[];
}

/** Root in the container keeps the rights to make the working directory. Commands do not run as root. */
const CONFINEMENT = splitWords(
  "--network none --cap-drop ALL --cap-add CHOWN --cap-add DAC_OVERRIDE --security-opt no-new-privileges",
);

/** Removes complaints of shells without a terminal, which do not concern the command. */
export function withoutTtyNoise(output: string): string {
  const noises = [
    "cannot set terminal process group (-1)",
    "no job control in this shell",
    "initialize_job_control: Bad file descriptor",
  ];
  return output
    .split("\n")
    .filter((line) => !noises.some((noise) => line.includes(noise)))
    .join("\n");
}

interface Container {
  id: string;
  /** Removes a container that was made here when this process is gone. */
  own?: LastWill;
}

/** A container, run by any program that takes Docker's commands. Made by `openDocker`. */
export class DockerSandbox extends LimitedSandbox {
  readonly id: string;
  readonly #container: Container;
  readonly #options: DockerOptions;
  readonly #runner: ProcessRunner;

  constructor(container: Container, options: DockerOptions, runner: ProcessRunner) {
    const files = { root: options.workdir ?? "/workspace", readChunk: 4 * 1024 * 1024 };
    // The network of somebody else's container is unknown.
    super(files, options, "container", container.own === undefined ? {} : { network: false });
    this.id = container.id;
    this.#container = container;
    this.#options = options;
    this.#runner = runner;
  }

  override async execute(command: string, options?: ExecuteOptions): Promise<ExecuteResponse> {
    const response = await super.execute(command, options);
    const { output, whole } = response;
    const kept = whole === undefined ? {} : { whole: withoutTtyNoise(whole) };
    return { ...response, output: withoutTtyNoise(output), ...kept };
  }

  /** Ends commands, jobs and leftover programs; removes the container if it was made for this sandbox. */
  async close(): Promise<void> {
    const ending = this.jobs.close();
    await this.#runner.close();
    if (this.#container.own === undefined) {
      await this.#end(ending);
      return;
    }
    const runner = new ProcessRunner({ guarded: false });
    await removeContainer(runner, this.#options, this.id);
    await runner.close();
    this.#container.own.revoke();
  }

  #user(): string[] {
    const { user = this.#container.own === undefined ? undefined : DEFAULT_USER } = this.#options;
    return user === undefined ? [] : ["--user", user];
  }

  protected async run(command: string, options: ExecuteOptions, maxOutputBytes: number) {
    const mark = this.jobs.newMark();
    const isolated = this.commands.network === false;
    const own = unattended({ TZ: commandZone() }, { ...this.#options.env, ...options.env }, isolated);
    const env = { ...own, [MARK_NAME]: mark };
    const variables = Object.entries(env).flatMap(([name, value]) => ["-e", `${name}=${value}`]);
    const args = ["exec", ...this.#user(), ...variables, this.id];
    const { timeout = this.commands.timeout, signal } = options;
    // Starts Bash where there is one, because models write for it.
    const start = script("start in container");
    const response = await this.#runner.run(
      {
        ...programLaunch(this.#options, [...args, "sh", "-c", start, "sh", options.cwd ?? "/", command]),
        maxOutputBytes,
        keepBytes: options.keepBytes,
        onOutput: (chunk) => options.onOutput?.(chunk),
      },
      { timeout, signal },
    );
    const wasBrokenOff = response.timedOut === true || response.exitCode === null;
    if (wasBrokenOff) await this.#end(`set -- ${mark}\n${END_MARKED}`);
    return response;
  }

  /** Runs a script that ends commands in the container. They would outlive the local program. */
  async #end(script: string): Promise<void> {
    const args = ["exec", ...this.#user(), this.id, "sh", "-c", script];
    // A container that exceeded its time may not answer.
    await runDocker(this.#runner, this.#options, args, 10);
  }
}

const DEFAULT_USER = "1000:1000";
const NO_IMAGE = "A container needs an image, or as sandboxId the id of a running one";

/**
 * Finds the reason why no container could be opened: no image, no program, and with `isThorough` a service that does
 * not answer, an image that is not on this machine or a container that does not run.
 */
export async function dockerProblem(options: DockerOptions, isThorough: boolean) {
  const { image, sandboxId, program = "docker" } = options;
  if (image === undefined && sandboxId === undefined) return NO_IMAGE;
  const ask = async (...args: string[]): Promise<ExecuteResponse> => {
    const runner = new ProcessRunner({ guarded: false });
    try {
      return await runDocker(runner, options, args, 10);
    } finally {
      await runner.close();
    }
  };
  if ((await ask("--version")).exitCode !== 0)
    return `${program} cannot be started; install it, or name the program of your containers as program`;
  if (!isThorough) return undefined;
  const service = await ask("ps", "--quiet");
  if (service.exitCode !== 0) {
    const reason = oneLine(service.output.replaceAll("[stderr]", "").trim(), 300);
    return `${program} cannot reach its service${reason === "" ? "" : `: ${reason}`}; start it`;
  }
  if (sandboxId !== undefined) {
    const { exitCode } = await ask("exec", sandboxId, "sh", "-c", "exit 0");
    return exitCode === 0 ? undefined : notRunning(sandboxId);
  }
  const found = await ask("image", "inspect", image ?? "");
  return found.exitCode === 0
    ? undefined
    : `The image ${image} is not on this machine; get it with: ${program} pull ${image}`;
}

const notRunning = (id: string): string => `The container '${id}' does not run; start it or give an image`;

/** Starts a container, or takes the running one that `sandboxId` names. Throws `SandboxError`. */
export async function openDocker(given: DockerOptions): Promise<DockerSandbox> {
  const options = readOptions("Docker", given, tables.docker);
  const runner = new ProcessRunner({ guarded: false });
  try {
    const container = await containerFor(options, runner);
    return new DockerSandbox(container, options, runner);
  } catch (error) {
    await runner.close();
    throw error;
  }
}

async function containerFor(options: DockerOptions, runner: ProcessRunner): Promise<Container> {
  const { image, sandboxId, program = "docker", workdir = "/workspace", user = DEFAULT_USER } = options;
  if (sandboxId !== undefined) {
    const { exitCode } = await runDocker(runner, options, ["exec", sandboxId, "sh", "-c", "exit 0"]);
    if (exitCode === 0) return { id: sandboxId };
    throw new SandboxError("NOT_INITIALIZED", notRunning(sandboxId));
  }
  if (image === undefined) throw new SandboxError("NOT_INITIALIZED", NO_IMAGE);
  const idle = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait; done"];
  const { limits = ["--memory", "2g", "--cpus", "2", "--pids-limit", "512"] } = options;
  const name = `deepagent-${randomBytes(8).toString("hex")}`;
  const run = ["run", "-d", "--rm", "--name", name, ...CONFINEMENT, ...limits, image, ...idle];
  const own = new LastWill(programLaunch(options, ["rm", "-f", name]));
  const started = await runDocker(runner, options, run);
  if (started.exitCode !== 0) {
    own.revoke();
    const message = `${program} did not start a container of '${image}': ${started.output.trim().slice(-500)}`;
    throw new SandboxError("NOT_INITIALIZED", message);
  }
  const prepare = `mkdir -p -- "$1" && chown "$2" "$1"`;
  const place = ["exec", "--user", "0", name, "sh", "-c", prepare, "sh", workdir, user];
  if ((await runDocker(runner, options, place)).exitCode === 0) return { id: name, own };
  await removeContainer(runner, options, name);
  own.revoke();
  const message = `The directory ${workdir} could not be created in a container of '${image}'`;
  throw new SandboxError("COMMAND_FAILED", message);
}

/** Kills and removes a container. Without the kill, some programs wait long for an orderly end. */
async function removeContainer(runner: ProcessRunner, options: DockerOptions, id: string): Promise<void> {
  await runDocker(runner, options, ["kill", id]);
  await runDocker(runner, options, ["rm", "-f", id]);
}

function runDocker(runner: ProcessRunner, options: DockerOptions, args: readonly string[], timeout = 300) {
  return runner.run({ ...programLaunch(options, args), maxOutputBytes: DEFAULT_OUTPUT_BYTES }, { timeout });
}

/** Starts the program with the variables that lead to its service and settings, and without keys. */
function programLaunch(
  { program = "docker", programArguments = [] }: DockerOptions,
  args: readonly string[],
) {
  const names = ["HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST", "XDG_RUNTIME_DIR", "TMPDIR"];
  const known = names.flatMap((name): [string, string][] => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  const env = { PATH: process.env["PATH"] ?? SYSTEM_PATH, ...Object.fromEntries(known) };
  return { file: program, args: [...programArguments, ...args], env, cwd: "/" };
}
