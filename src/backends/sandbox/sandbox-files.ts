// oxlint-disable-next-line typescript/triple-slash-reference -- programs that are checked with this source have no list of files
/// <reference path="../../core/text-files.d.ts" />
import { randomBytes } from "node:crypto";
import { isoTime } from "../../core/clock.ts";
import type { CallOptions, FileInfo, MaybePromise } from "../backend.ts";
import { encodedForms } from "../encoding.ts";
import { type BackendFailure, type FailureAt, errors } from "../errors.ts";
import type { ExecuteResponse } from "../executor.ts";
import scripts from "./sandbox-files.sh" with { type: "text" };

/** Runs a command inside; its answer is not for the model. */
export type RunCommand = (command: string, options: CallOptions) => MaybePromise<ExecuteResponse>;

export interface SandboxFilesOptions {
  /** The directory that `/` means. */
  root: string;
  /** Bytes of one piece of a file that is read; base64 of it must fit into the output of a command. */
  readChunk: number;
  /** Moves files that do not fit into one command. Without it they are moved in pieces. */
  transfer?: FileTransfer | undefined;
}

/** Moves files in and out of a sandbox without commands. Paths are those inside. Failures are thrown. */
export interface FileTransfer {
  upload(path: string, bytes: Uint8Array, options: CallOptions): Promise<void>;
  download(path: string, options: CallOptions): Promise<Uint8Array>;
}

/** The failures by the word with which a script ended. */
const FAILURES: Readonly<Record<string, FailureAt>> = {
  missing: errors.fileNotFound,
  directory: errors.isDirectory,
  other: errors.notRegularFile,
  denied: errors.permissionDenied,
  exists: errors.alreadyExists,
  parent: errors.parentIsFile,
  symlink: errors.writeToSymlink,
  changed: errors.changedSinceRead,
};

/** A command line may have 128 KiB on Linux, and base64 is a third longer than the bytes. */
const WRITE_CHUNK = 60 * 1024;

/** Thrown if the answer to a command is missing, cut off or unexpected. */
class SandboxAnswerError extends Error {
  override readonly name = "SandboxAnswerError";
}

/** Files inside a sandbox, by commands alone. Paths start at the root of the backend. */
export class SandboxFiles {
  readonly #run: RunCommand;
  readonly #root: string;
  readonly #readChunk: number;
  readonly #transfer: FileTransfer | undefined;

  constructor(run: RunCommand, { root, readChunk, transfer }: SandboxFilesOptions) {
    this.#run = run;
    this.#root = root === "/" ? "" : root;
    this.#readChunk = readChunk;
    this.#transfer = transfer;
  }

  /** Reads a whole file of at most `limit` bytes in one consistent state, which `facts` identify. */
  async read(path: string, limit: number, options: CallOptions) {
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      const found = await this.#readOnce(path, limit, options);
      if (found !== undefined) return found;
    }
    throw new SandboxAnswerError("the file changed while it was read");
  }

  /**
   * Lists the entries of a directory or, if `deep`, all below it. A file has itself as its only entry. `notFound`: the
   * failure for a missing path.
   */
  async list(
    path: string,
    { deep, notFound = errors.directoryNotFound }: { deep: boolean; notFound?: typeof errors.pathNotFound },
    options: CallOptions,
  ) {
    const variables = { file: this.#real(path), depth: deep ? "" : "-maxdepth 1" };
    const said = await this.#ask(script("list"), variables, options);
    const result = said.get("result");
    if (result === "missing") return notFound(path);
    if (result === "denied") return errors.permissionDenied(path);
    if (result === "file") {
      const [, size = "0", seconds = "0"] = (said.get("facts") ?? "").split(" ");
      const file = { path, is_dir: false, size: Number(size), modified_at: isoFromSeconds(seconds) };
      return { files: [file], skipped: 0, isFile: true };
    }
    if (result !== "directory") throw new SandboxAnswerError(`unexpected answer ${result}`);
    const names = decode(said.get("names")).split("\0").slice(0, -1);
    const stats = decode(said.get("stats")).split("\n").slice(0, -1);
    if (names.length !== stats.length) throw new SandboxAnswerError("files vanished while they were listed");
    const files = names.map((name, index): FileInfo => {
      const [size = "0", seconds = "0", ...kind] = (stats[index] ?? "").split(" ");
      const entry = name.replace(/^\/+/, "/").slice(this.#root.length);
      if (kind.join(" ").toLowerCase() === "directory") return { path: `${entry}/`, is_dir: true };
      return { path: entry, is_dir: false, size: Number(size), modified_at: isoFromSeconds(seconds) };
    });
    return { files, skipped: Number(said.get("skipped") ?? 0), isFile: false };
  }

  /** Finds the files at or below a path that may contain a text. Includes all names with line ends. */
  async containing(path: string, literal: string, options: CallOptions): Promise<(path: string) => boolean> {
    const octal = (byte: number): string => `\\0${byte.toString(8)}`;
    const forms = encodedForms(literal).map((form) => Array.from(form, octal).join(""));
    const said = await this.#ask(
      script("containing"),
      { file: this.#real(path), forms: forms.join("\\n") },
      options,
    );
    const names = new Set(decode(said.get("names")).split("\n"));
    return (candidate) => candidate.includes("\n") || names.has(this.#real(candidate));
  }

  /** Writes a file. With `expected`, only if the file still has these facts. Returns the failure, if it is not written. */
  async write(
    path: string,
    bytes: Uint8Array,
    { create, expected = "" }: { create: boolean; expected?: string | undefined },
    options: CallOptions,
  ): Promise<BackendFailure | undefined> {
    const file = this.#real(path);
    const temporary = `${file.slice(0, file.lastIndexOf("/") + 1)}.deepagent-tmp-${randomBytes(8).toString("hex")}`;
    const variables = { file, temporary, create: create ? "1" : "0", expected };
    const run = async (...lines: string[]): Promise<string> =>
      (await this.#ask(lines.join("\n"), variables, options)).get("result") ?? "";
    let result = "pending";
    if (this.#transfer !== undefined && bytes.length > WRITE_CHUNK) {
      result = await run(script("begin write"), PENDING);
      if (result === "pending") {
        await this.#transfer.upload(temporary, bytes, options);
        result = await run(script("end write"));
      }
    } else {
      for (let from = 0; result === "pending"; from += WRITE_CHUNK) {
        const isLast = from + WRITE_CHUNK >= bytes.length;
        const data = Buffer.from(bytes.subarray(from, from + WRITE_CHUNK)).toString("base64");
        const begin = from === 0 ? script("begin write") : "";
        result = await run(begin, `data='${data}'`, script("append"), isLast ? script("end write") : PENDING);
      }
    }
    return result === "written" ? undefined : scriptFailure(path, result);
  }

  /** Deletes a file, or a directory with all below it. Returns the failure, if it is not deleted. */
  async remove(path: string, options: CallOptions): Promise<BackendFailure | undefined> {
    const said = await this.#ask(script("delete"), { file: this.#real(path) }, options);
    const result = said.get("result");
    return result === "deleted" ? undefined : scriptFailure(path, result);
  }

  /** Returns undefined if the file changed during the read. */
  async #readOnce(path: string, limit: number, options: CallOptions) {
    const pieces: Buffer[] = [];
    let length = 0;
    let facts: string | undefined;
    for (;;) {
      const variables = {
        file: this.#real(path),
        limit: String(limit),
        from: String(length + 1),
        count: String(this.#readChunk),
      };
      const said = await this.#ask(script("read"), variables, options);
      const result = said.get("result");
      const [, size = "0", seconds = "0"] = (said.get("facts") ?? "").split(" ");
      if (result === "large") return errors.tooLargeToLoad(path, Number(size), limit);
      if (result === "changed" || (facts !== undefined && facts !== said.get("facts"))) return undefined;
      if (result !== "file") return scriptFailure(path, result);
      facts = said.get("facts") ?? "";
      const piece = Buffer.from(said.get("data") ?? "", "base64");
      pieces.push(piece);
      length += piece.length;
      const read = { modifiedAt: isoFromSeconds(seconds), facts };
      if (length >= Number(size)) return { ...read, bytes: Buffer.concat(pieces) };
      if (piece.length === 0) return undefined;
      if (this.#transfer === undefined) continue;
      const bytes = Buffer.from(await this.#transfer.download(variables.file, options));
      const after = await this.#ask(script("read"), { ...variables, count: "0" }, options);
      const isWhole = after.get("facts") === facts && bytes.length === Number(size);
      return isWhole ? { ...read, bytes } : undefined;
    }
  }

  #ask(text: string, variables: Readonly<Record<string, string>>, options: CallOptions) {
    return askSandbox((command) => this.#run(command, options), text, variables, options);
  }

  #real(path: string): string {
    return path === "/" ? this.#root || "/" : this.#root + path;
  }
}

/** Runs a script and reads its answer by key. Throws if the answer is missing or cut off. */
export async function askSandbox(
  run: (command: string) => ReturnType<RunCommand>,
  text: string,
  variables: Readonly<Record<string, string>>,
  { signal }: CallOptions = {},
): Promise<ReadonlyMap<string, string>> {
  signal?.throwIfAborted();
  const mark = `@${randomBytes(12).toString("hex")}`;
  const command = [`mark='${mark}'`, script("prelude"), assignments(variables), text].join("\n");
  const { output } = await run(command);
  signal?.throwIfAborted();
  const said = new Map<string, string>();
  for (const line of output.split("\n")) {
    if (!line.startsWith(`${mark} `)) continue;
    const [key = "", ...value] = line
      .slice(mark.length + 1)
      .trimEnd()
      .split(" ");
    said.set(key, value.join(" "));
  }
  if (!said.has("end") || !said.has("result"))
    throw new SandboxAnswerError("the sandbox returned an incomplete answer");
  return said;
}

const scriptFailure = (path: string, result = ""): BackendFailure =>
  FAILURES[result]?.(path) ?? errors.ioFailure(path, "the file could not be put in its place");

const decode = (base64 = ""): string => Buffer.from(base64, "base64").toString("utf8");
const isoFromSeconds = (seconds: string): string => isoTime(Number(seconds) * 1000);

const PENDING = "\nfinish pending\n";

/** The scripts by their names, in lines such as `# Script: read`, without other comments. */
const parts = scripts.replaceAll(/^# (?!Script:).*\n/gm, "").split(/^# Script: (.*)\n/m);
export const script = (name: string): string => `\n${parts[parts.indexOf(name) + 1]}`;

/** Shell code that sets variables. Names must be plain; values may be anything. */
export const assignments = (variables: Readonly<Record<string, string>>): string => {
  const quoted = Object.entries(variables).map(
    ([name, value]) => `${name}='${value.replaceAll("'", "'\\''")}'`,
  );
  return `eval "${shellDecoded(quoted.join("\n"))}"`;
};

/** A command line that runs a script in its own shell, as one argument. */
export const scriptLine = (script: string): string => `sh -c "${shellDecoded(script)}"`;

const shellDecoded = (value: string): string =>
  `$(printf %s '${Buffer.from(value, "utf8").toString("base64")}' | base64 -d)`;
