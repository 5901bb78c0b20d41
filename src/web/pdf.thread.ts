/** Reads the text of a PDF. Runs in a thread of its own process, which `convert.ts` starts. */
import { parentPort, workerData } from "node:worker_threads";
import { getDocumentProxy } from "unpdf";
import type { Converted, PdfInput } from "./convert.ts";

async function readPdf({ pdf, timeMs, characters }: PdfInput): Promise<Converted> {
  const begun = performance.now();
  const document = await getDocumentProxy(pdf, { isEvalSupported: false, verbosity: 0 });
  const { info } = await document.getMetadata().catch(() => ({ info: {} }));
  const title: unknown = Reflect.get(info, "Title");
  const pages: string[] = [];
  let length = 0;
  for (let number = 1; number <= document.numPages; number += 1) {
    if (length > characters || performance.now() - begun > timeMs) break;
    const page = await document.getPage(number);
    const { items } = await page.getTextContent();
    const text = items.map((item) => ("str" in item ? item.str + (item.hasEOL ? "\n" : "") : "")).join("");
    pages.push(text.trim().slice(0, characters));
    length += text.length;
    page.cleanup();
  }
  const notes = [
    ...(pages.length < document.numPages
      ? [`Only ${pages.length} of its ${document.numPages} pages are here.`]
      : []),
    ...(length === 0 ? ["The PDF has no text. It may consist of pictures."] : []),
  ];
  return {
    ...(typeof title === "string" && title.trim() !== "" ? { title } : {}),
    text: pages.map((text, index) => `[page ${index + 1}]\n${text}`).join("\n\n"),
    notes,
  };
}

/** Bytes that one stream of a PDF may unpack to. Fonts have some megabytes, the text of a page much less. */
const MAX_UNPACKED = 100 * 2 ** 20;

/** Ends the thread when a stream unpacks to more, by whichever of the two ways of the package. */
function boundUnpacking(): void {
  const refuse = (): never => {
    post({ problem: `A part of it unpacks to more than ${MAX_UNPACKED / 2 ** 20} MB.` });
    return process.exit();
  };
  globalThis.Uint8Array = new Proxy(Uint8Array, {
    construct(target, [size, ...rest], own) {
      if (typeof size === "number" && size > MAX_UNPACKED) refuse();
      return Reflect.construct(target, [size, ...rest], own) as object;
    },
  });
  const Native = globalThis.DecompressionStream;
  globalThis.DecompressionStream = class extends Native {
    override readonly readable = super.readable.pipeThrough(bounded());
  };
  function bounded() {
    let left = MAX_UNPACKED;
    return new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        left -= chunk.length;
        if (left < 0) refuse();
        controller.enqueue(chunk);
      },
    });
  }
}

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
const post = (outcome: Converted | { problem: string }): void => parentPort?.postMessage(outcome);
boundUnpacking();
// The input is set by convert.ts.
readPdf(workerData as PdfInput).then(post, (error: unknown) => {
  const isLocked = error instanceof Error && error.name === "PasswordException";
  post({ problem: isLocked ? "It is protected by a password." : "It is not a PDF that can be read." });
});
