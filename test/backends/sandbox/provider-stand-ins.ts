import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { PassThrough, Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import type { DaytonaClient } from "../../../src/backends/sandbox/daytona.ts";
import type { ModalClient } from "../../../src/backends/sandbox/modal.ts";
import type { RunloopClient } from "../../../src/backends/sandbox/runloop.ts";

/** The sandboxes of a provider: each is a shell of this machine. What the provider was asked, in order. */
export class Provider {
  readonly asked: string[] = [];
  readonly running = new Set<string>();

  add(parameters: object): string {
    const id = `box-${this.asked.length}`;
    this.asked.push(`create ${JSON.stringify(parameters)}`);
    this.running.add(id);
    return id;
  }

  find(id: string): string {
    if (!this.running.has(id)) throw new Error(`no sandbox ${id}`);
    return id;
  }

  remove(id: string): void {
    this.asked.push(`remove ${id}`);
    this.running.delete(id);
  }
}

/** A command with everything that a provider's service would keep of it. */
class Command {
  readonly child: ChildProcess;
  readonly exit: Promise<number>;
  exitCode: number | undefined;

  constructor(args: string[]) {
    const [file = "", ...rest] = args;
    this.child = spawn(file, rest, { stdio: ["ignore", "pipe", "pipe"] });
    this.exit = once(this.child, "exit").then(([code]) => (this.exitCode = (code as number | null) ?? 137));
  }

  async *chunks(stream: "stdout" | "stderr"): AsyncGenerator<{ output: string }> {
    for await (const chunk of this.child[stream] ?? []) yield { output: String(chunk) };
  }

  web(stream: "stdout" | "stderr"): ReadableStream<Uint8Array> {
    const through = new PassThrough();
    this.child[stream]?.pipe(through);
    return Readable.toWeb(through) as ReadableStream<Uint8Array>; // of bytes, as the source
  }
}

export function modalPackage(provider: Provider): object {
  const sandbox = (id: string) => ({
    sandboxId: id,
    exec: async (args: string[]) => {
      provider.asked.push(`exec ${args.slice(0, 2).join(" ")}`);
      const command = new Command(args);
      return { stdout: command.web("stdout"), stderr: command.web("stderr"), wait: () => command.exit };
    },
    filesystem: transfer(provider),
    terminate: async () => provider.remove(id),
  });
  class Client implements ModalClient {
    apps = { fromName: async (name: string, options: object) => ({ name, ...options }) };
    images = { fromRegistry: (tag: string) => ({ tag }) };
    sandboxes = {
      create: async (app: unknown, image: unknown, parameters: object) =>
        sandbox(provider.add({ app, image, ...parameters })),
      fromId: async (id: string) => sandbox(provider.find(id)),
    };
    close(): void {
      provider.asked.push("close");
    }
  }
  return { ModalClient: Client };
}

const transfer = (provider: Provider) => ({
  readBytes: async (path: string) => {
    provider.asked.push("download");
    return new Uint8Array(await readFile(path));
  },
  writeBytes: async (bytes: Uint8Array, path: string) => {
    provider.asked.push("upload");
    await writeFile(path, bytes);
  },
});

export function runloopPackage(provider: Provider): object {
  const commands: Command[] = [];
  const commandOf = (execution: string): Command => commands[Number(execution)] as Command; // made below
  class Client implements RunloopClient {
    devboxes: RunloopClient["devboxes"] = {
      createAndAwaitRunning: async (parameters) => ({ id: provider.add(parameters) }),
      retrieve: async (id) => ({ id, status: provider.running.has(id) ? "running" : "shutdown" }),
      shutdown: async (id) => provider.remove(id),
      executeAsync: async (_id, { command }) => {
        commands.push(new Command(["bash", "-c", command]));
        return { execution_id: String(commands.length - 1) };
      },
      uploadFile: async (_id, { path, file }) =>
        transfer(provider).writeBytes(new Uint8Array(await file.arrayBuffer()), path),
      downloadFile: async (_id, { path }) => {
        const bytes = await transfer(provider).readBytes(path);
        return { arrayBuffer: async () => new Uint8Array(bytes).buffer };
      },
      executions: {
        awaitCompleted: async (_id, execution) => ({ exit_status: await commandOf(execution).exit }),
        streamStdoutUpdates: async (_id, execution) => commandOf(execution).chunks("stdout"),
        streamStderrUpdates: async (_id, execution) => commandOf(execution).chunks("stderr"),
      },
    };
  }
  return { Runloop: Client };
}

export function daytonaPackage(provider: Provider): object {
  const sandbox = (id: string): Awaited<ReturnType<DaytonaClient["get"]>> => {
    const commands = new Map<string, Command>();
    return {
      id,
      state: "started",
      process: {
        createSession: async (session) => void provider.asked.push(`session ${session.slice(0, 9)}`),
        executeSessionCommand: async (session, { command }) => {
          commands.set(session, new Command(["bash", "-c", command]));
          return { cmdId: "1" };
        },
        getSessionCommandLogs: async (session, _command, onStdout, onStderr) => {
          const { child, exit } = commands.get(session) as Command; // made above
          child.stdout?.on("data", (chunk) => onStdout(String(chunk)));
          child.stderr?.on("data", (chunk) => onStderr(String(chunk)));
          await Promise.race([once(child, "close"), exit]);
        },
        getSessionCommand: async (session) => {
          const exitCode = commands.get(session)?.exitCode;
          return exitCode === undefined ? {} : { exitCode };
        },
        deleteSession: async (session) => void commands.delete(session),
      },
      fs: {
        uploadFile: (file, path) => transfer(provider).writeBytes(file, path),
        downloadFile: (path) => transfer(provider).readBytes(path),
      },
      delete: async () => provider.remove(id),
    };
  };
  class Client implements DaytonaClient {
    create = async (parameters: object) => sandbox(provider.add(parameters));
    get = async (id: string) => sandbox(provider.find(id));
  }
  return { Daytona: Client };
}
