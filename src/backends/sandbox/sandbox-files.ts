import { randomBytes } from "node:crypto";
import { isoTime } from "../../core/clock.ts";
import type { CallOptions, ExecuteResponse, FileInfo, MaybePromise } from "../backend.ts";
import * as scripts from "./file-scripts.ts";

/** Runs a command inside; its answer is not for the model. */
export type RunCommand = (command: string, options: CallOptions) => MaybePromise<ExecuteResponse>;

export interface SandboxFilesOptions {
  /** The directory that `/` means. */
  root: string;
  /** Bytes of one piece of a file that is read; base64 of it must fit into the output of a command. */
  readChunk: number;
  /** Moves what does not fit into one command; without it that goes in pieces. */
  transfer?: FileTransfer | undefined;
}

/** A way of files in and out of a sandbox besides commands. Paths are those inside; failures are thrown. */
export interface FileTransfer {
  upload(path: string, bytes: Uint8Array, options: CallOptions): Promise<void>;
  download(path: string, options: CallOptions): Promise<Uint8Array>;
}

/** What is at a path. `result` is the word of the script that looked. */
export type Found =
  /** `facts` are those of this very file: another one in its place, or a change, has others. */
  | { result: "file"; bytes: Buffer; modifiedAt: string; facts: string }
  | { result: "large"; size: number }
  | { result: "missing" | "directory" | "other" | "denied" };

export type Listed =
  | { result: "directory"; entries: FileInfo[]; skipped: number }
  | { result: "file"; info: FileInfo }
  | { result: "missing" }
  | { result: "denied" };

export type Written =
  | "written"
  | "exists"
  | "directory"
  | "parent"
  | "denied"
  | "symlink"
  | "failed"
  | "changed";

/** A command line may be 128 KiB long, on Linux, and this is a third longer as base64. */
const WRITE_CHUNK = 60 * 1024;
/** How often a file that changes while it is read is read again. */
const MAX_ATTEMPTS = 5;

/** The answer to a command is missing, cut off or not what was asked for. */
export class SandboxAnswerError extends Error {
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

  /** A whole file of at most `limit` bytes, as it was at one moment. */
  async read(path: string, limit: number, options: CallOptions): Promise<Found> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      const found = await this.#readOnce(path, limit, options);
      if (found !== undefined) return found;
    }
    throw new SandboxAnswerError("the file changed while it was read");
  }

  async list(path: string, { deep }: { deep: boolean }, options: CallOptions): Promise<Listed> {
    const depth = deep ? "" : "-maxdepth 1";
    const said = await this.#ask(scripts.LIST, { file: this.#real(path), depth }, options);
    const result = said.get("result");
    if (result === "missing" || result === "denied") return { result };
    if (result === "file") {
      const [, size = "0", seconds = "0"] = (said.get("facts") ?? "").split(" ");
      return { result, info: { path, is_dir: false, size: Number(size), modified_at: timeOf(seconds) } };
    }
    if (result !== "directory") throw new SandboxAnswerError(`unexpected answer ${result}`);
    const names = decode(said.get("names")).split("\0").slice(0, -1);
    const stats = decode(said.get("stats")).split("\n").slice(0, -1);
    if (names.length !== stats.length) throw new SandboxAnswerError("files vanished while they were listed");
    const entries = names.map((name, index) => this.#entry(name, stats[index] ?? ""));
    return { result, entries, skipped: Number(said.get("skipped") ?? 0) };
  }

  /** Whether a file at or below a path may contain a text; true when the names cannot be told apart. */
  async containing(path: string, literal: string, options: CallOptions): Promise<(path: string) => boolean> {
    const said = await this.#ask(scripts.CONTAINING, { file: this.#real(path), literal }, options);
    const names = new Set(decode(said.get("names")).split("\n"));
    return (candidate) => candidate.includes("\n") || names.has(this.#real(candidate));
  }

  /** With `expected`, the facts of a file that was read, only while it is still that one. */
  async write(
    path: string,
    bytes: Uint8Array,
    { create, expected = "" }: { create: boolean; expected?: string | undefined },
    options: CallOptions,
  ): Promise<Written> {
    const file = this.#real(path);
    const temporary = `${file.slice(0, file.lastIndexOf("/") + 1)}.deepagent-tmp-${randomBytes(8).toString("hex")}`;
    const variables = { file, temporary, create: create ? "1" : "0", expected };
    if (this.#transfer !== undefined && bytes.length > WRITE_CHUNK) {
      const begun = await this.#askWritten(scripts.BEGIN_WRITE + scripts.PENDING, variables, options);
      if (begun !== "pending") return begun;
      await this.#transfer.upload(temporary, bytes, options);
      const ended = await this.#askWritten(scripts.END_WRITE, variables, options);
      return ended === "pending" ? "failed" : ended;
    }
    for (let from = 0; ; from += WRITE_CHUNK) {
      const isLast = from + WRITE_CHUNK >= bytes.length;
      const data = Buffer.from(bytes.subarray(from, from + WRITE_CHUNK)).toString("base64");
      const script = [
        from === 0 ? scripts.BEGIN_WRITE : "",
        `data='${data}'`,
        scripts.APPEND,
        isLast ? scripts.END_WRITE : scripts.PENDING,
      ].join("\n");
      const result = await this.#askWritten(script, variables, options);
      if (result !== "pending") return result;
    }
  }

  async #askWritten(
    script: string,
    variables: Readonly<Record<string, string>>,
    options: CallOptions,
  ): Promise<Written | "pending"> {
    const said = await this.#ask(script, variables, options);
    return said.get("result") as Written | "pending"; // the words that scripts of writing end with
  }

  async remove(path: string, options: CallOptions): Promise<"deleted" | "missing" | "denied"> {
    const said = await this.#ask(scripts.DELETE, { file: this.#real(path) }, options);
    return said.get("result") as "deleted" | "missing" | "denied"; // the words DELETE ends with
  }

  /** Undefined when the file changed in between. */
  async #readOnce(path: string, limit: number, options: CallOptions): Promise<Found | undefined> {
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
      const said = await this.#ask(scripts.READ, variables, options);
      const result = said.get("result");
      const [, size = "0", seconds = "0"] = (said.get("facts") ?? "").split(" ");
      if (result === "large") return { result, size: Number(size) };
      if (result === "changed" || (facts !== undefined && facts !== said.get("facts"))) return undefined;
      // The other words READ ends with.
      if (result !== "file") return { result: result as "missing" | "directory" | "other" | "denied" };
      facts = said.get("facts");
      const piece = Buffer.from(said.get("data") ?? "", "base64");
      pieces.push(piece);
      length += piece.length;
      if (length >= Number(size))
        return { result, bytes: Buffer.concat(pieces), modifiedAt: timeOf(seconds), facts: facts ?? "" };
      if (piece.length === 0) return undefined;
      if (this.#transfer === undefined) continue;
      const bytes = Buffer.from(await this.#transfer.download(variables.file, options));
      const after = await this.#ask(scripts.READ, { ...variables, count: "0" }, options);
      const isWhole = after.get("facts") === facts && bytes.length === Number(size);
      return isWhole ? { result, bytes, modifiedAt: timeOf(seconds), facts: facts ?? "" } : undefined;
    }
  }

  async #ask(
    script: string,
    variables: Readonly<Record<string, string>>,
    options: CallOptions,
  ): Promise<Map<string, string>> {
    options.signal?.throwIfAborted();
    const mark = `@${randomBytes(12).toString("hex")}`;
    const { output } = await this.#run(scripts.commandFor(script, variables, mark), options);
    options.signal?.throwIfAborted();
    const said = scripts.parseAnswer(output, mark);
    if (said === undefined) throw new SandboxAnswerError("the sandbox gave no complete answer");
    return said;
  }

  #real(path: string): string {
    return path === "/" ? this.#root || "/" : this.#root + path;
  }

  #entry(name: string, facts: string): FileInfo {
    const [size = "0", seconds = "0", ...kind] = facts.split(" ");
    const path = name.replace(/^\/+/, "/").slice(this.#root.length);
    if (kind.join(" ").toLowerCase() === "directory") return { path: `${path}/`, is_dir: true };
    return { path, is_dir: false, size: Number(size), modified_at: timeOf(seconds) };
  }
}

const decode = (base64 = ""): string => Buffer.from(base64, "base64").toString("utf8");
const timeOf = (seconds: string): string => isoTime(Number(seconds) * 1000);
