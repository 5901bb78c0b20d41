import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { ReadableStream } from "node:stream/web";
import { readOptions } from "../../core/options.ts";
import tables from "../options.json" with { type: "json" };
import type { LoadPackage } from "../../core/optional-package.ts";
import type { ProviderPackage, RemoteMachine, RemoteOptions, RemoteSandbox } from "./remote-sandbox.ts";
import { loadClient, openRemote } from "./remote-sandbox.ts";

/** `parameters` are those of `sandboxes.create`. A new sandbox ends after an hour unless they set another time. */
export interface ModalOptions extends RemoteOptions {
  /** The app that new sandboxes belong to; made when there is none. Default `deepagent`. */
  app?: string;
  /** Image of a new sandbox, from a registry. Default `debian:bookworm-slim`. */
  image?: string;
}

/** The part of the package that is used, as version 0.11.1 declares it. */
export interface ModalClient {
  apps: { fromName(name: string, options: { createIfMissing: boolean }): Promise<unknown> };
  images: { fromRegistry(tag: string): unknown };
  sandboxes: {
    create(app: unknown, image: unknown, parameters: Record<string, unknown>): Promise<ModalSandbox>;
    fromId(id: string): Promise<ModalSandbox>;
  };
  close(): void;
}

interface ModalSandbox {
  sandboxId: string;
  exec(
    command: string[],
    parameters: { mode: "binary" },
  ): Promise<Record<"stdout" | "stderr", ReadableStream<Uint8Array>> & { wait(): Promise<number> }>;
  filesystem: {
    readBytes(path: string): Promise<Uint8Array>;
    writeBytes(bytes: Uint8Array, path: string): Promise<void>;
  };
  terminate(): Promise<unknown>;
}

/** The version is part of the command, because the tag `latest` of this name is another package. */
export const MODAL: ProviderPackage = {
  provider: "Modal",
  name: "modal",
  version: "0.11.1",
  client: "ModalClient",
  keys: ["MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"],
  hasKeys: ({ MODAL_TOKEN_ID: id, MODAL_TOKEN_SECRET: secret, MODAL_CONFIG_PATH: file }) =>
    (Boolean(id) && Boolean(secret)) || existsSync(file ?? join(homedir(), ".modal.toml")),
};

/** A container at Modal, working in `/workspace`. Throws `SandboxError`. */
export async function openModal(given: ModalOptions, load: LoadPackage): Promise<RemoteSandbox> {
  const options = readOptions("Modal", given, tables.modal);
  // The package declares the interface above.
  const Client = (await loadClient(MODAL, load)) as new () => ModalClient;
  const { app: appName = "deepagent", image = "debian:bookworm-slim", parameters } = options;
  const connect = async (open: (client: ModalClient) => Promise<ModalSandbox>): Promise<RemoteMachine> => {
    const client = new Client();
    try {
      const sandbox = await open(client);
      return {
        id: sandbox.sandboxId,
        start: async (line, onOutput, signal) => {
          const started = await sandbox.exec(["sh", "-c", line], { mode: "binary" });
          const streams = (["stdout", "stderr"] as const).map(async (stream) => {
            const reader = started[stream].getReader();
            const cancel = (): void => void reader.cancel().catch(() => undefined);
            signal.addEventListener("abort", cancel, { once: true });
            if (signal.aborted) cancel();
            for (let read = await reader.read(); !read.done; read = await reader.read())
              onOutput(stream, read.value);
          });
          return { exitCode: started.wait(), drained: Promise.all(streams).then(() => undefined) };
        },
        upload: (path, bytes) => sandbox.filesystem.writeBytes(bytes, path),
        download: (path) => sandbox.filesystem.readBytes(path),
        remove: async () => void (await sandbox.terminate()),
        release: () => client.close(),
      };
    } catch (error) {
      client.close();
      throw error;
    }
  };
  const create = async (client: ModalClient): Promise<ModalSandbox> => {
    const app = await client.apps.fromName(appName, { createIfMissing: true });
    const from = client.images.fromRegistry(image);
    return client.sandboxes.create(app, from, { timeoutMs: 3_600_000, ...parameters });
  };
  return openRemote(
    {
      name: "Modal",
      workdir: "/workspace",
      create: () => connect(create),
      find: (id) => connect((client) => client.sandboxes.fromId(id)),
    },
    options,
  );
}
