/** Bytes of a refusal that are read: what it is about stands at its beginning. */
const MAX_ERROR_BYTES = 65_536;

/** `fetch` that reads the beginning of an answer that is an error: clients parse, copy and quote all of it. */
export function boundedErrors(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (response.ok || response.body === null) return response;
    const { status, statusText, headers } = response;
    return new Response(response.body.pipeThrough(firstBytes(MAX_ERROR_BYTES)), {
      status,
      statusText,
      headers,
    });
  };
}

function firstBytes(limit: number): TransformStream<Uint8Array, Uint8Array> {
  let left = limit;
  return new TransformStream({
    transform(piece, controller) {
      controller.enqueue(piece.subarray(0, left));
      left -= piece.byteLength;
      if (left <= 0) controller.terminate();
    },
  });
}
