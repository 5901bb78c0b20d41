import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { untilAborted } from "../../core/concurrency.ts";
import { readOptions } from "../../core/options.ts";
import tables from "../options.json" with { type: "json" };
import type { LoadPackage } from "../../core/optional-package.ts";
import type { ProviderPackage, RemoteMachine, RemoteOptions, RemoteSandbox } from "./remote-sandbox.ts";
import { loadClient, openRemote } from "./remote-sandbox.ts";

/** `parameters` are those of `create`, such as `snapshot`. Daytona stops an idle sandbox by itself. */
export type DaytonaOptions = RemoteOptions;

/** The part of the package that is used, as version 0.218.0 declares it. */
export interface DaytonaClient {
  create(parameters: Record<string, unknown>): Promise<DaytonaSandbox>;
  get(id: string): Promise<DaytonaSandbox>;
}

interface DaytonaSandbox {
  id: string;
  state?: string;
  process: {
    createSession(session: string): Promise<unknown>;
    executeSessionCommand(
      session: string,
      request: { command: string; runAsync: boolean },
    ): Promise<{ cmdId: string }>;
    getSessionCommandLogs(
      session: string,
      command: string,
      onStdout: (chunk: string) => void,
      onStderr: (chunk: string) => void,
    ): Promise<unknown>;
    getSessionCommand(session: string, command: string): Promise<{ exitCode?: number }>;
    deleteSession(session: string): Promise<unknown>;
  };
  fs: {
    uploadFile(file: Buffer, path: string): Promise<unknown>;
    downloadFile(path: string): Promise<Uint8Array>;
  };
  delete(): Promise<unknown>;
}

export const DAYTONA: ProviderPackage = {
  provider: "Daytona",
  name: "@daytonaio/sdk",
  version: "0.218.0",
  client: "Daytona",
  keys: ["DAYTONA_API_KEY"],
  hasKeys: ({ DAYTONA_API_KEY: key, DAYTONA_JWT_TOKEN: token }) => Boolean(key) || Boolean(token),
};

/** A workspace at Daytona, working in `/home/daytona`. Throws `SandboxError`. */
export async function openDaytona(given: DaytonaOptions, load: LoadPackage): Promise<RemoteSandbox> {
  const options = readOptions("Daytona", given, tables.remote);
  // The package declares the interface above, and takes its key from the environment.
  const Client = (await loadClient(DAYTONA, load)) as new () => DaytonaClient;
  return openRemote(
    {
      name: "Daytona",
      workdir: "/home/daytona",
      create: async () => machine(await new Client().create({ ...options.parameters })),
      find: async (id) => {
        const sandbox = await new Client().get(id);
        if (sandbox.state !== "started") throw new Error(`its state is ${sandbox.state ?? "unknown"}`);
        return machine(sandbox);
      },
    },
    options,
  );
}

const machine = (sandbox: DaytonaSandbox): RemoteMachine => ({
  id: sandbox.id,
  // Runs each command in its own session, because only sessions return output while a command runs.
  start: async (line, onOutput, signal) => {
    const { process } = sandbox;
    const session = `deepagent-${randomUUID()}`;
    await process.createSession(session);
    const { cmdId } = await process.executeSessionCommand(session, { command: line, runAsync: true });
    const drained = process
      .getSessionCommandLogs(
        session,
        cmdId,
        (chunk) => onOutput("stdout", chunk),
        (chunk) => onOutput("stderr", chunk),
      )
      .then(() => undefined);
    const end = async (): Promise<number | null> => {
      try {
        // The end of the output is usually the end of the command, unless the connection broke.
        if (!signal.aborted) await untilAborted(drained, signal).catch(() => undefined);
        for (;;) {
          const { exitCode } = await process.getSessionCommand(session, cmdId);
          if (exitCode !== undefined || signal.aborted) return exitCode ?? null;
          await delay(250);
        }
      } finally {
        await process.deleteSession(session).catch(() => undefined);
      }
    };
    return { exitCode: end(), drained };
  },
  upload: async (path, bytes) => void (await sandbox.fs.uploadFile(Buffer.from(bytes), path)),
  download: (path) => sandbox.fs.downloadFile(path),
  remove: async () => void (await sandbox.delete()),
});
