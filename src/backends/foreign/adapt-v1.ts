import type {
  Backend,
  DeleteResult,
  EditResult,
  FileData,
  FileDownloadResponse,
  FileInfo,
  FileUploadResponse,
  GrepMatch,
  MaybePromise,
  ReadRawResult,
  ReadResult,
  WriteResult,
} from "../backend.ts";
import { foreignFailure, thrownFailure } from "../errors.ts";
import { readFileData } from "../file-data.ts";
import { pageRequest } from "../pages.ts";

/** The first version of the deepagents protocol: plain values, failures as strings or exceptions. */
export interface BackendV1 {
  lsInfo(path: string): MaybePromise<FileInfo[]>;
  /** Text, with line numbers in older backends. A failure starts with `Error`. */
  read(filePath: string, offset?: number, limit?: number): MaybePromise<string>;
  /** Throws when there is no such file. */
  readRaw?(filePath: string): MaybePromise<FileData>;
  /** A string is a failure. */
  grepRaw(pattern: string, path?: string | null, glob?: string | null): MaybePromise<GrepMatch[] | string>;
  globInfo(pattern: string, path?: string): MaybePromise<FileInfo[]>;
  write(filePath: string, content: string): MaybePromise<WriteResult>;
  edit(
    filePath: string,
    oldString: string,
    newString: string,
    replaceAll?: boolean,
  ): MaybePromise<EditResult>;
  delete?(filePath: string): MaybePromise<DeleteResult>;
  uploadFiles?(files: Array<[string, Uint8Array]>): MaybePromise<FileUploadResponse[]>;
  downloadFiles?(paths: string[]): MaybePromise<FileDownloadResponse[]>;
}

export const isV1 = (backend: Backend | BackendV1): backend is BackendV1 => "lsInfo" in backend;

/** The methods of the port over a backend of version 1; nothing it can do is added. */
export function fromV1(backend: BackendV1): Backend {
  const remove = backend.delete?.bind(backend);
  const uploadFiles = backend.uploadFiles?.bind(backend);
  const downloadFiles = backend.downloadFiles?.bind(backend);
  return {
    ls: async (path) => ({ files: await backend.lsInfo(path) }),
    glob: async (pattern, path) => ({ files: await backend.globInfo(pattern, path) }),
    grep: async (pattern, path, glob) => {
      const found = await backend.grepRaw(pattern, path, glob);
      return typeof found === "string" ? foreignFailure(path ?? "/", found) : { matches: found };
    },
    read: (path, offset, limit) => readV1(backend, path, offset, limit),
    readRaw: (path) => readRawV1(backend, path),
    write: (path, content) => backend.write(path, content),
    edit: (path, oldString, newString, replaceAll) => backend.edit(path, oldString, newString, replaceAll),
    ...(remove === undefined ? {} : { delete: (path) => remove(path) }),
    ...(uploadFiles === undefined ? {} : { uploadFiles }),
    ...(downloadFiles === undefined ? {} : { downloadFiles }),
  };
}

/** The raw file is what tells text from numbers in front of it. */
async function readV1(
  backend: BackendV1,
  path: string,
  offset?: number,
  limit?: number,
): Promise<ReadResult> {
  if (backend.readRaw === undefined) {
    const text = await backend.read(path, offset, limit);
    return isFailure(text) ? foreignFailure(path, text) : { content: withoutNumbers(text) };
  }
  const { data, error, code } = await readRawV1(backend, path);
  return data === undefined
    ? { ...(error === undefined ? {} : { error }), ...(code === undefined ? {} : { code }) }
    : readFileData(path, data, pageRequest(offset, limit));
}

async function readRawV1(backend: BackendV1, path: string): Promise<ReadRawResult> {
  if (backend.readRaw !== undefined) {
    try {
      return { data: await backend.readRaw(path) };
    } catch (thrown) {
      return thrownFailure(path, thrown);
    }
  }
  const text = await backend.read(path, 0, Number.MAX_SAFE_INTEGER);
  if (isFailure(text)) return foreignFailure(path, text);
  const content = withoutNumbers(text);
  return { data: { content, mimeType: "text/plain", created_at: "", modified_at: "" } };
}

const isFailure = (text: string): boolean => /^Error\b/.test(text);

const NUMBERED = /^ *\d+(?:\.(\d+))?\t/;

/** Takes line numbers off, when every line has one; pieces of a long line (`12.1`) are put together. */
function withoutNumbers(text: string): string {
  const lines = text.split("\n");
  if (!lines.every((line) => NUMBERED.test(line))) return text;
  return lines
    .map((line, index) => {
      const continues = NUMBERED.exec(line)?.[1] !== undefined;
      return (continues || index === 0 ? "" : "\n") + line.replace(NUMBERED, "");
    })
    .join("");
}
