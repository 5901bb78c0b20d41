import { readOptions } from "../../core/options.ts";
import tables from "../options.json" with { type: "json" };
import type { LoadPackage } from "../../core/optional-package.ts";
import type { CallOptions } from "../backend.ts";
import type { ProviderPackage, RemoteMachine, RemoteOptions, RemoteSandbox } from "./remote-sandbox.ts";
import { loadClient, openRemote } from "./remote-sandbox.ts";

/** `parameters` are those of `devboxes.create`, such as `blueprint_name`. Runloop ends a devbox after an hour. */
export type RunloopOptions = RemoteOptions;

/** The part of the package that is used, as version 1.32.0 declares it. */
export interface RunloopClient {
  devboxes: {
    createAndAwaitRunning(parameters: Record<string, unknown>): Promise<{ id: string }>;
    retrieve(id: string): PromiseLike<{ id: string; status: string }>;
    shutdown(id: string): PromiseLike<unknown>;
    executeAsync(id: string, body: { command: string }): PromiseLike<{ execution_id: string }>;
    uploadFile(id: string, body: { path: string; file: File }, options: CallOptions): PromiseLike<unknown>;
    downloadFile(
      id: string,
      body: { path: string },
      options: CallOptions,
    ): PromiseLike<{ arrayBuffer(): Promise<ArrayBuffer> }>;
    executions: {
      awaitCompleted(
        id: string,
        execution: string,
        options: CallOptions,
      ): Promise<{ exit_status?: number | null }>;
      streamStdoutUpdates: StreamUpdates;
      streamStderrUpdates: StreamUpdates;
    };
  };
}

type StreamUpdates = (
  id: string,
  execution: string,
  query: Record<string, never>,
  options: CallOptions,
) => PromiseLike<AsyncIterable<{ output: string }>>;

export const RUNLOOP: ProviderPackage = {
  provider: "Runloop",
  name: "@runloop/api-client",
  version: "1.32.0",
  client: "Runloop",
  keys: ["RUNLOOP_API_KEY"],
  hasKeys: ({ RUNLOOP_API_KEY: key }) => Boolean(key),
};

/** A devbox at Runloop, working in `/home/user`. Throws `SandboxError`. */
export async function openRunloop(given: RunloopOptions, load: LoadPackage): Promise<RemoteSandbox> {
  const options = readOptions("Runloop", given, tables.remote);
  // The package declares the interface above, and takes its key from the environment.
  const Client = (await loadClient(RUNLOOP, load)) as new () => RunloopClient;
  return openRemote(
    {
      name: "Runloop",
      workdir: "/home/user",
      create: async () => {
        const client = new Client();
        return machine(client, (await client.devboxes.createAndAwaitRunning({ ...options.parameters })).id);
      },
      find: async (id) => {
        const client = new Client();
        const { status } = await client.devboxes.retrieve(id);
        if (status !== "running") throw new Error(`its state is ${status}`);
        return machine(client, id);
      },
    },
    options,
  );
}

const machine = ({ devboxes }: RunloopClient, id: string): RemoteMachine => ({
  id,
  start: async (command, onOutput, signal) => {
    const { execution_id: execution } = await devboxes.executeAsync(id, { command });
    const { executions } = devboxes;
    const listen = async (stream: "stdout" | "stderr"): Promise<void> => {
      const updates =
        stream === "stdout"
          ? executions.streamStdoutUpdates(id, execution, {}, { signal })
          : executions.streamStderrUpdates(id, execution, {}, { signal });
      for await (const { output } of await updates) onOutput(stream, output);
    };
    const drained = Promise.all([listen("stdout"), listen("stderr")]).then(() => undefined);
    const completed = executions.awaitCompleted(id, execution, { signal });
    return { exitCode: completed.then(({ exit_status: code }) => code ?? null), drained };
  },
  upload: async (path, bytes, { signal }) => {
    const file = new File([bytes], "file");
    await devboxes.uploadFile(id, { path, file }, signal === undefined ? {} : { signal });
  },
  download: async (path, { signal }) => {
    const answer = await devboxes.downloadFile(id, { path }, signal === undefined ? {} : { signal });
    return new Uint8Array(await answer.arrayBuffer());
  },
  remove: async () => void (await devboxes.shutdown(id)),
});
