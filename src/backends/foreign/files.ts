import type * as port from "../backend.ts";
import { type BackendFailure, errors, foreignFailure, thrownFailure } from "../errors.ts";
import { toBytes, toFileData, versionOfBytes } from "../file-data.ts";
import { untilAborted } from "../../core/concurrency.ts";
import { plainBytes } from "../mime.ts";
import { parentPaths, withSlash, withoutSlash } from "../paths.ts";

const ROOT: port.FileInfo = { path: "/", is_dir: true };

/** The files of a foreign backend. Never throws; every failure has a code. Paths must be valid. */
export class ForeignFiles {
  readonly #backend: port.Backend;

  constructor(backend: port.Backend) {
    this.#backend = backend;
  }

  /** Reads a whole file. Reads its bytes if its text is not reliable. */
  async data(
    path: string,
    options: port.CallOptions = {},
  ): Promise<{ data: port.FileData } | BackendFailure> {
    const raw: port.ReadRawResult = await this.guard(path, options, () =>
      this.#backend.readRaw(path, options),
    );
    if (raw.data === undefined) return this.#explainFailure(path, raw, options);
    const { content, created_at: createdAt, modified_at: now } = raw.data;
    const text = typeof content === "string" ? content : undefined;
    // Only the bytes of a file are reliable if its text has characters of a lossy decoding or of a binary file.
    if (text !== undefined && /[\0\uFFFD]/.test(text)) {
      const bytes = await this.#download(path, options);
      if (bytes !== undefined) return { data: toFileData(path, bytes, { createdAt, now }) };
    }
    return { data: raw.data };
  }

  async bytes(path: string, options: port.CallOptions = {}) {
    const bytes = await this.#download(path, options);
    if (bytes !== undefined) return { bytes: plainBytes(bytes) };
    const got = await this.data(path, options);
    return "error" in got ? got : { bytes: toBytes(got.data) };
  }

  async find(path: string, options: port.CallOptions = {}): Promise<port.FileInfo | undefined> {
    if (path === "/") return ROOT;
    const { files = [] } = await this.list(parentPaths(path).at(-1) ?? "/", options);
    return files.find((file) => withoutSlash(file.path) === path);
  }

  async list(path: string, options: port.CallOptions = {}): Promise<port.LsResult> {
    const result: port.LsResult = await this.guard(path, options, () => this.#backend.ls(path, options));
    if (result.files === undefined) return result;
    const files = result.files.map((file) =>
      file.is_dir === true ? { ...file, path: withSlash(file.path) } : file,
    );
    return { ...result, files };
  }

  /**
   * Stores bytes, by an upload if possible: some backends refuse to write over a file, and a text may lose bytes.
   * `content` is the text of a new file.
   */
  async put(path: string, bytes: Uint8Array, content: string | undefined, options: port.CallOptions) {
    const written = await this.guard(path, options, async (): Promise<port.WriteResult> => {
      if (this.#backend.uploadFiles === undefined || content !== undefined)
        return this.#backend.write(path, content ?? Buffer.from(bytes).toString("utf8"));
      // Backends in state put the change of all files on the list of answers.
      const answers: port.FileUploadResponse[] & Pick<port.FileUploadResponse, "filesUpdate"> =
        await this.#backend.uploadFiles([[path, new Uint8Array(bytes)]]);
      const [answer] = answers;
      const filesUpdate = answer?.filesUpdate ?? answers.filesUpdate ?? null;
      return answer?.error === null ? { path, filesUpdate } : foreignFailure(path, answer?.error ?? "");
    });
    return written.error === undefined ? { ...written, path, version: versionOfBytes(bytes) } : written;
  }

  /** Calls the foreign backend. Never throws and ends with its signal; every failure has a code. */
  async guard<Result extends port.Failure>(
    path: string,
    options: port.CallOptions | undefined,
    call: () => port.MaybePromise<Result>,
  ): Promise<Result | BackendFailure> {
    const isAborted = (): boolean => options?.signal?.aborted === true;
    if (isAborted()) return errors.operationAborted(path);
    try {
      const result = await untilAborted(Promise.resolve(call()), options?.signal);
      if (result === undefined) return errors.operationAborted(path);
      return result.error === undefined ? result : { ...result, ...toBackendFailure(path, result) };
    } catch (thrown) {
      return isAborted() ? errors.operationAborted(path) : thrownFailure(path, thrown);
    }
  }

  async #download(path: string, options: port.CallOptions): Promise<Uint8Array | undefined> {
    try {
      const [answer] = (await this.#backend.downloadFiles?.([path], options)) ?? [];
      return answer?.content ?? undefined;
    } catch {
      return undefined;
    }
  }

  /** Finds out why a file was not read, because the errors of backends are often vague. */
  async #explainFailure(
    path: string,
    failed: port.Failure,
    options: port.CallOptions,
  ): Promise<BackendFailure> {
    const known = toBackendFailure(path, failed);
    // These failures need no look at the directory.
    if (["aborted", "permission_denied", "backend_error"].includes(known.code)) return known;
    const { files } = await this.list(parentPaths(path).at(-1) ?? "/", options);
    const found = path === "/" ? ROOT : files?.find((file) => withoutSlash(file.path) === path);
    if (found === undefined)
      return files === undefined && known.code === "io" ? known : errors.fileNotFound(path);
    return found.is_dir === true ? errors.isDirectory(path) : known;
  }
}

export const toBackendFailure = (path: string, { error = "", code }: port.Failure): BackendFailure =>
  code === undefined ? foreignFailure(path, error) : { error, code };
