import { onTestFinished } from "vitest";
import {
  CLIENT_KINDS,
  connectClient,
  type ClientKind,
  type Connector,
  type Person,
  type TestClient,
} from "./clients.ts";
import { makeFolders, openParts } from "./folders.ts";
import { openBrain, type Brain, type Think } from "./harness-brain.ts";
import { memoryConnector } from "./harness-memory.ts";
import { program, stdioServer, type StdioServer } from "./harness-stdio.ts";
import { httpConnector } from "./harness-http.ts";

/** `stdio` starts the server as a process of its own, the others have it in this one. */
export type TransportName = "memory" | "stdio" | "http";

/** A workspace, a data directory and a model; what is made of it is gone after the test. */
export interface Home {
  readonly workspace: string;
  readonly dataDir: string;
  readonly brain: Brain;
  /** The environment the product is started in. */
  readonly env: Record<string, string>;
}

export interface HomeOptions {
  think: Think;
  /** Files of the workspace by relative path. */
  files?: Record<string, string>;
  /** Further settings, as environment variables. */
  env?: Record<string, string>;
}

export async function openHome({ think, files = {}, env = {} }: HomeOptions): Promise<Home> {
  const folders = makeFolders(files);
  onTestFinished(folders.remove);
  const brain = await openBrain(think);
  onTestFinished(() => brain.close());
  const { workspace, dataDir } = folders;
  return { workspace, dataDir, brain, env: { ...folders.env, ...brain.env, ...env } };
}

/** The product over both transports, with clients of both eras; test/e2e/matrix has every kind on both. */
export const MATRIX = [
  ...CLIENT_KINDS.map((kind) => ({ transport: "http", kind }) as const),
  { transport: "stdio", kind: "v2-modern" },
] as const;

/** A running product, reached in one way. */
export interface World extends Home {
  connect(kind: ClientKind, person?: Person): Promise<TestClient>;
}

/** The product as its commands put it together, with a workspace, a data directory and a model of its own. */
export async function openWorld(transport: TransportName, options: HomeOptions): Promise<World> {
  const home = await openHome(options);
  const connector = await openConnector(transport, home);
  return { ...home, connect: (kind, person) => connect(connector, kind, person) };
}

/** Connects a client that is closed after the test. */
export async function connect(to: Connector, kind: ClientKind, person?: Person): Promise<TestClient> {
  const client = await connectClient(to, { kind, ...(person === undefined ? {} : { person }) });
  onTestFinished(() => client.close());
  return client;
}

/** Each connection starts a process of its own with the same data directory. `user`: whose, if root starts it. */
export async function openStdio({ env }: Home, user?: number): Promise<StdioServer> {
  return stdioServer(await program(), env, process.getuid?.() === 0 ? user : undefined);
}

async function openConnector(transport: TransportName, home: Home): Promise<Connector> {
  if (transport === "stdio") return openStdio(home);
  const deps = openDeps(home);
  if (transport === "memory") return memoryConnector(deps);
  return httpConnector(deps, onTestFinished);
}

/** The product in this process. */
export function openDeps({ env }: Home) {
  const parts = openParts(env);
  onTestFinished(() => parts.close());
  return parts.deps;
}
