import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import type { ServerDeps } from "../../src/server/contracts/deps.ts";
import { serveStdioServer } from "../../src/server/stdio/stdio.ts";
import type { Connector } from "./clients.ts";

/** Reaches the stdio server over streams in this process: each connection is a server of its own with `deps`. */
export function memoryConnector(deps: ServerDeps): Connector {
  const open = (): PipeTransport => {
    const toServer = new PassThrough();
    const toClient = new PassThrough();
    serveStdioServer(deps, {
      stdin: toServer,
      stdout: toClient,
      stderr: new PassThrough().resume(),
      signals: new EventEmitter(),
      // The one that made `deps` closes them.
      close: () => Promise.resolve(),
    });
    return new PipeTransport(toClient, toServer);
  };
  return {
    first: () => open(),
    modern: () => open(),
  };
}

/** The client's end: lines of JSON both ways, as on the server's, and the end of input when it closes. */
class PipeTransport extends StdioServerTransport {
  readonly #output: PassThrough;

  constructor(input: PassThrough, output: PassThrough) {
    super(input, output);
    this.#output = output;
  }

  override async close(): Promise<void> {
    this.#output.end();
    await super.close();
  }
}
