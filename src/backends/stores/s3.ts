import { memoized } from "../../core/concurrency.ts";
import { randomUUID } from "node:crypto";
import type * as Sdk from "@aws-sdk/client-s3";
import { ConfigurationError } from "../../core/errors.ts";
import { readOptions } from "../../core/options.ts";
import tables from "../options.json" with { type: "json" };
import { S3Connection, s3ErrorName, s3Problem } from "../../core/s3.ts";
import type { S3Address } from "../../core/s3-address.ts";
import type { CallOptions, FileData } from "../backend.ts";
import { toBytes, toFileData } from "../file-data.ts";
import type { Expected, FileStore, ListOptions, ListedFile, StoredFile } from "../file-store.ts";
import { FileStoreBackend, FileTooLarge } from "../file-store.ts";
import { mimeTypeOf } from "../mime.ts";
import { validatePath } from "../paths.ts";
import { parsedUrl } from "../../core/unknown.ts";
import texts from "../texts.json" with { type: "json" };

export interface S3Place extends S3BackendOptions {
  /** The beginning of each key. It starts without a slash and ends in one, unless it is empty. */
  prefix: string;
  conditionalWrites: boolean;
  maxBytes: number;
}

const CREATED = "created-at";

export class S3Files implements FileStore {
  readonly id: string;
  readonly lifetime = "persistent";
  readonly writes: FileStore["writes"];
  readonly #place: S3Place;
  readonly #connection: S3Connection;
  readonly #tested = memoized(() => this.#testConditions());

  constructor(place: S3Place) {
    this.#place = place;
    this.#connection = new S3Connection("S3Backend", place);
    this.id = JSON.stringify(["s3", place.endpoint ?? "", place.bucket, place.prefix]);
    this.writes = place.conditionalWrites ? "compare-and-set" : "last-writer-wins";
  }

  async get(path: string, options: CallOptions = {}): Promise<StoredFile | undefined> {
    if (path === "/") return undefined;
    const { client, sdk } = await this.#connection.open();
    try {
      const found = await client.send(new sdk.GetObjectCommand(this.#at(path)), abortOptions(options));
      const size = found.ContentLength ?? 0;
      if (size > this.#place.maxBytes) {
        // Ends the transfer. The body is a stream of Node.
        if (found.Body !== undefined && "destroy" in found.Body) found.Body.destroy();
        throw new FileTooLarge(size, this.#place.maxBytes);
      }
      const bytes = (await found.Body?.transformToByteArray()) ?? new Uint8Array();
      const now = toIsoText(found.LastModified);
      const data = toFileData(path, bytes, { now, createdAt: found.Metadata?.[CREATED] ?? now });
      return { data, version: found.ETag ?? "" };
    } catch (error) {
      if (s3ErrorName(error) === "NoSuchKey") return undefined;
      throw error;
    }
  }

  async put(path: string, data: FileData, expected: Expected, options?: CallOptions): Promise<boolean> {
    const bytes = toBytes(data);
    if (bytes.byteLength > this.#place.maxBytes)
      throw new FileTooLarge(bytes.byteLength, this.#place.maxBytes);
    const { client, sdk } = await this.#connection.open();
    const condition = await this.#conditionFor(path, expected);
    if (condition === undefined) return false;
    try {
      const object = {
        ...this.#at(path),
        Body: bytes,
        ContentLength: bytes.byteLength,
        ContentType: mimeTypeOf(path),
        Metadata: { [CREATED]: data.created_at },
      };
      await client.send(new sdk.PutObjectCommand({ ...object, ...condition }), abortOptions(options));
      return true;
    } catch (error) {
      if (isConflict(error)) return false;
      throw error;
    }
  }

  async remove(path: string, options?: CallOptions): Promise<void> {
    const { client, sdk } = await this.#connection.open();
    await client.send(new sdk.DeleteObjectCommand(this.#at(path)), abortOptions(options));
  }

  async hasBelow(path: string, options?: CallOptions): Promise<boolean> {
    for await (const page of this.#pages({ Prefix: `${this.#keyOf(path)}/`, MaxKeys: 1 }, options)) {
      if ((page.Contents ?? []).length > 0) return true;
    }
    return false;
  }

  async *list(under: string, options: ListOptions = {}): AsyncGenerator<ListedFile> {
    const own = under === "/" ? undefined : await this.#head(under, options);
    if (own !== undefined) yield own;
    const below = {
      Prefix: under === "/" ? this.#place.prefix : `${this.#keyOf(under)}/`,
      ...(options.shallow === true ? { Delimiter: "/" } : {}),
    };
    for await (const page of this.#pages(below, options)) {
      for (const { Key, Size, LastModified } of page.Contents ?? []) {
        const path = this.#pathOf(Key, page);
        if (path === undefined) continue;
        yield { path, is_dir: false, size: Size ?? 0, modified_at: toIsoText(LastModified) };
      }
      for (const { Prefix } of page.CommonPrefixes ?? []) {
        const path = this.#pathOf(Prefix?.slice(0, -1), page);
        if (path !== undefined) yield { path: `${path}/`, is_dir: true };
      }
    }
  }

  explain(thrown: unknown): string {
    return thrown instanceof ConfigurationError ? thrown.message : s3Problem(thrown).text;
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  #keyOf(path: string): string {
    return this.#place.prefix + path.slice(1);
  }

  #at(path: string): { Bucket: string; Key: string } {
    return { Bucket: this.#place.bucket, Key: this.#keyOf(path) };
  }

  async #head(path: string, options: CallOptions): Promise<ListedFile | undefined> {
    const { client, sdk } = await this.#connection.open();
    try {
      const found = await client.send(new sdk.HeadObjectCommand(this.#at(path)), abortOptions(options));
      const { ContentLength: size = 0, LastModified } = found;
      return { path, is_dir: false, size, modified_at: toIsoText(LastModified) };
    } catch (error) {
      if (s3ErrorName(error) === "NotFound") return undefined;
      throw error;
    }
  }

  async *#pages(
    request: { Prefix: string; Delimiter?: string; MaxKeys?: number },
    options: CallOptions = {},
  ): AsyncGenerator<Sdk.ListObjectsV2CommandOutput> {
    const { client, sdk } = await this.#connection.open();
    let token: string | undefined;
    do {
      const page: Sdk.ListObjectsV2CommandOutput = await client.send(
        new sdk.ListObjectsV2Command({
          ...request,
          Bucket: this.#place.bucket,
          // XML cannot hold every character of a key.
          EncodingType: "url",
          ...(token === undefined ? {} : { ContinuationToken: token }),
        }),
        abortOptions(options),
      );
      yield page;
      token = page.IsTruncated === true ? page.NextContinuationToken : undefined;
    } while (token !== undefined);
  }

  /** The path of a key in a listing; undefined if no path leads to it. */
  #pathOf(listed: string | undefined, { EncodingType }: Sdk.ListObjectsV2CommandOutput): string | undefined {
    if (listed === undefined) return undefined;
    // Some servers ignore the requested encoding.
    const key = EncodingType === "url" ? decodeURIComponent(listed.replaceAll("+", " ")) : listed;
    const path = `/${key.slice(this.#place.prefix.length)}`;
    const valid = validatePath(path);
    return valid.ok && valid.path === path && path !== "/" ? path : undefined;
  }

  /** The headers that bind a put to the expected state; undefined if that state is gone. */
  async #conditionFor(path: string, expected: Expected) {
    if (expected === "any") return {};
    if (this.#place.conditionalWrites) {
      await this.#tested();
      return expected === "absent" ? { IfNoneMatch: "*" } : { IfMatch: expected.version };
    }
    const found = await this.get(path);
    const isExpected = expected === "absent" ? found === undefined : found?.version === expected.version;
    return isExpected ? {} : undefined;
  }

  /** Tries a put that must be refused. Throws if the server ignores the condition and makes it. */
  async #testConditions(): Promise<void> {
    const { client, sdk } = await this.#connection.open();
    const place = this.#at(`/.deepagent-condition-${randomUUID()}`);
    try {
      const etag = '"00000000000000000000000000000000"';
      await client.send(new sdk.PutObjectCommand({ ...place, ContentLength: 0, IfMatch: etag }));
    } catch (error) {
      if (isConflict(error)) return;
      throw s3ErrorName(error) === "NotImplemented" ? unconditional() : error;
    }
    await client.send(new sdk.DeleteObjectCommand(place));
    throw unconditional();
  }
}

const abortOptions = ({ signal }: CallOptions = {}): { abortSignal?: AbortSignal } =>
  signal === undefined ? {} : { abortSignal: signal };

const toIsoText = (time: Date | undefined): string => (time ?? new Date(0)).toISOString();

const isConflict = (error: unknown): boolean =>
  ["PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey"].includes(s3ErrorName(error));

const unconditional = (): ConfigurationError =>
  new ConfigurationError("S3_CONDITIONAL_WRITES", texts.noConditionalWrites);

export interface S3BackendOptions extends S3Address {
  /** Key prefix of these files, such as `team-a`. Default: all of the bucket. */
  prefix?: string;
  /**
   * True if writes are bound to the state that was read; AWS and most servers support this. With false the last writer
   * wins. It must be set explicitly, because a server that ignores the condition loses changes silently: the first
   * write tests it and refuses. Default true.
   */
  conditionalWrites?: boolean;
  /** Largest file, in MiB. Default 32. */
  maxFileSizeMb?: number;
}

/**
 * Files as objects of an S3 bucket: key = prefix + path. They are kept across threads and shared by all users of the
 * bucket.
 *
 * `ls` lists with a delimiter, `glob` lists the keys below its folder, `grep` gets the objects below its folder whose
 * names its filter accepts. Objects whose keys are not paths, such as folder markers, are skipped. Needs the package
 * `@aws-sdk/client-s3`.
 */
export class S3Backend extends FileStoreBackend {
  readonly #files: S3Files;

  constructor(options: S3BackendOptions) {
    const given = readOptions("S3Backend", options, tables.S3Backend);
    const { prefix = "", endpoint, conditionalWrites = true, maxFileSizeMb = 32 } = given;
    const unusable = (problem: string): ConfigurationError =>
      new ConfigurationError("S3_OPTIONS", `The options of S3Backend are not usable: ${problem}`);
    // Callers without types may leave the bucket out.
    if (!("bucket" in given) || !/^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$/.test(given.bucket))
      throw unusable("bucket must be the name of a bucket");
    if (endpoint !== undefined && !(parsedUrl(endpoint) !== undefined && /^https?:/.test(endpoint)))
      throw unusable("endpoint must be an address that starts with http:// or https://");
    const folder = validatePath(prefix === "" ? "/" : prefix);
    if (!folder.ok) throw unusable(`prefix: ${folder.error}`);
    if (!(maxFileSizeMb > 0)) throw unusable("maxFileSizeMb must be more than 0");
    const files = new S3Files({
      ...given,
      prefix: folder.path === "/" ? "" : `${folder.path.slice(1)}/`,
      conditionalWrites,
      maxBytes: maxFileSizeMb * 1024 * 1024,
    });
    super(files);
    this.#files = files;
  }

  close(): Promise<void> {
    return this.#files.close();
  }
}
