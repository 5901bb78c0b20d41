import { describe, expect, test } from "vitest";
import type { ServerDeps } from "../../../src/server/contracts/deps.ts";
import { runFileUri, runUri } from "../../../src/server/contracts/uris.ts";
import { cleanUpWith, databaseFile, openServer, reach, startRun } from "../../runs/support.ts";
import { CLIENT_KINDS, connectClient, type ClientKind, type Connector } from "../../support/clients.ts";
import { deferred } from "../../support/harness-deferred.ts";
import { memoryConnector } from "../../support/harness-memory.ts";
import { scriptedModel, scriptedSteps } from "../../support/scripted-model.ts";
import { depsFor } from "../support.ts";
import { httpConnector } from "../../support/harness-http.ts";

const TRANSPORTS: Record<string, (deps: ServerDeps) => Promise<Connector>> = {
  memory: async (deps) => memoryConnector(deps),
  HTTP: (deps) => httpConnector(deps, cleanUpWith),
};
const MATRIX = Object.keys(TRANSPORTS).flatMap((transport) =>
  CLIENT_KINDS.map((kind): [ClientKind, string] => [kind, transport]),
);

/** A client of a server that only looks on, and another process on its data directory that works. */
async function open(kind: ClientKind, transport: string) {
  const file = databaseFile();
  const [first, second] = [deferred(), deferred()];
  const write = (path: string) => ({
    toolCalls: [{ name: "write_file", args: { file_path: path, content: "x" } }],
  });
  const steps = [
    async () => {
      await first.promise;
      return write("/memories/a b.md");
    },
    async () => {
      await second.promise;
      return { text: "done" };
    },
  ];
  const worker = openServer(file, { model: scriptedSteps(steps) });
  const onlooker = openServer(file, { model: scriptedModel(() => ({ text: "" })) }, { concurrentRuns: 0 });
  const connector = await TRANSPORTS[transport]?.(depsFor(onlooker.service));
  if (connector === undefined) throw new Error(`there is no transport ${transport}`);
  const client = await connectClient(connector, { kind });
  cleanUpWith(() => client.close());
  return { client, worker: worker.service, first, second };
}

const SHARED = "deepagent://files/memories/a%20b.md";

describe.each(MATRIX)("%s over %s is told what another process does:", (kind, transport) => {
  test("a run that it starts, and a file that the run changes", async () => {
    const { client, worker, first, second } = await open(kind, transport);
    await client.listResources();
    const stop = await client.watch(SHARED);
    const { id } = await startRun(worker, "write");
    await expect.poll(() => client.updates).toContain("*");
    first.resolve();
    await expect.poll(() => client.updates).toContain(SHARED);
    second.resolve();
    await reach(worker, id, "completed");
    await stop();
    expect(client.updates.filter((uri) => uri !== "*" && uri !== SHARED)).toEqual([]);
  });

  test("a run that was at work before it was asked about", async () => {
    const { client, worker, first, second } = await open(kind, transport);
    const { id } = await startRun(worker, "write");
    const wanted = [SHARED, runFileUri(id, "/memories/a b.md"), `${runUri(id)}/transcript`];
    for (const uri of wanted) await client.watch(uri);
    first.resolve();
    for (const uri of wanted) await expect.poll(() => client.updates).toContain(uri);
    second.resolve();
    await reach(worker, id, "completed");
  });
});
