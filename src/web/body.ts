/** Reads the body of an answer: decompressed, and never more than a limit. */
import type { IncomingMessage } from "node:http";
import { type Readable, type Transform, pipeline } from "node:stream";
import { constants, createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { isAbortError } from "../core/errors.ts";
import { oneLine } from "../core/text.ts";
import { WebProblem, asProblem } from "./request.ts";
import { displayHost } from "./url.ts";

export interface Body {
  bytes: Buffer;
  /** True if the body has more than `bytes`. */
  isCut: boolean;
}

export const ACCEPTED_CODINGS = "gzip, br";

// A compressed body that ends too early is read as far as it goes.
const TOLERANT = { finishFlush: constants.Z_SYNC_FLUSH };

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip(TOLERANT),
  "x-gzip": () => createGunzip(TOLERANT),
  deflate: () => createInflate(TOLERANT),
  br: () => createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH }),
};

/** Reads up to `limit` bytes as they are after decompression. @throws WebProblem */
export async function readBody(incoming: IncomingMessage, url: URL, limit: number): Promise<Body> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of decompress(incoming, url) as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > limit) break;
    }
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (isAbortError(error) || !/^(Z_|ERR_BROTLI|ERR__)/.test(code)) throw asProblem(error, url);
    throw new WebProblem("damaged", `The compressed answer of ${displayHost(url)} is damaged.`, {
      cause: error,
    });
  } finally {
    incoming.destroy();
  }
  return { bytes: Buffer.concat(chunks, length).subarray(0, limit), isCut: length > limit };
}

function decompress(incoming: IncomingMessage, url: URL): Readable {
  const codings = (incoming.headers["content-encoding"] ?? "")
    .split(",")
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== "" && coding !== "identity");
  const unknown = codings.find((coding) => !Object.hasOwn(DECODERS, coding));
  // A body in more layers is an attack.
  if (unknown !== undefined || codings.length > 2) {
    incoming.destroy();
    const named = oneLine(unknown ?? codings.join(", "), 60);
    const message = `The answer of ${displayHost(url)} is compressed in an unknown way (${named}).`;
    throw new WebProblem("damaged", message);
  }
  return codings.reduceRight<Readable>((stream, coding) => {
    const decoder = DECODERS[coding]?.();
    // Its reader learns of the error.
    return decoder === undefined ? stream : pipeline(stream, decoder, () => {});
  }, incoming);
}
