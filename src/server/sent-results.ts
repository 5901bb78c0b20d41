import {
  isJSONRPCResponse,
  isJSONRPCResultResponse,
  type McpServer,
  type RequestId,
  type ServerContext,
} from "@modelcontextprotocol/server";

/**
 * Tells when the result of a request was written to its client. It is not when the client cancelled the request
 * or was gone by then; what a client has read nobody knows.
 */
export class SentResults {
  readonly #waiting = new Map<RequestId, () => void>();

  constructor(mcp: McpServer) {
    const connect = mcp.server.connect.bind(mcp.server);
    mcp.server.connect = async (transport) => {
      const send = transport.send.bind(transport);
      transport.send = async (message, options) => {
        if (!isJSONRPCResponse(message) || message.id === undefined) return send(message, options);
        const sent = this.#waiting.get(message.id);
        this.#waiting.delete(message.id);
        await send(message, options);
        if (isJSONRPCResultResponse(message)) sent?.();
      };
      await connect(transport);
    };
  }

  /** For the handler of a request, from its beginning on: takes what to do once the result was sent. */
  of({ mcpReq, http }: ServerContext): (sent: () => void) => void {
    // The one of the HTTP request tells of broken streams of the 2025 era, which do not end the call.
    const stream = http?.req?.signal;
    return (sent) => {
      if (mcpReq.signal.aborted) return;
      this.#waiting.set(mcpReq.id, () => {
        if (stream?.aborted !== true) sent();
      });
    };
  }
}
