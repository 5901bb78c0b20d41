import { ConfigurationError } from "../../core/errors.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import { FileStoreBackend } from "../file-store.ts";
import type { LoadPackage } from "../optional-package.ts";
import { validatePath } from "../paths.ts";
import { S3Files } from "./files.ts";

export interface S3BackendOptions {
  /** An existing bucket. */
  bucket: string;
  /** Beginning of the keys of these files, such as `team-a`. Default: all of the bucket. */
  prefix?: string;
  /** Address of an S3-compatible server. Default: AWS, or as the environment says. */
  endpoint?: string;
  /** Default: as the environment says, and `us-east-1` with an endpoint. */
  region?: string;
  /** Default: where the AWS tools look, such as the environment, profiles and roles. */
  credentials?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string };
  /** Puts the bucket into the path of requests instead of the host name. Default: true with an endpoint. */
  forcePathStyle?: boolean;
  /**
   * Whether writes are bound to the state that was read, which AWS and most servers can do. With false the last
   * writer wins; that needs saying, because a server that ignores the condition loses changes silently: the first
   * write tests it and refuses. Default true.
   */
  conditionalWrites?: boolean;
  /** Largest file, in MiB. Default 32. */
  maxFileSizeMb?: number;
  /** Loads the package `@aws-sdk/client-s3`. Default: `import`. */
  load?: LoadPackage;
}

const OPTIONS: OptionTable<S3BackendOptions> = {
  bucket: "a text",
  prefix: "a text",
  endpoint: "a text",
  region: "a text",
  credentials: "a plain object",
  forcePathStyle: "true or false",
  conditionalWrites: "true or false",
  maxFileSizeMb: "a number",
  load: "a function",
};

/**
 * Files as objects of an S3 bucket: key = prefix + path. Kept across threads and shared by all that use the bucket.
 *
 * `ls` lists with a delimiter, `glob` lists the keys below its folder, `grep` gets the objects below its folder
 * whose names its filter accepts. Objects whose keys are no paths, such as folder markers, are passed over. Needs the
 * package `@aws-sdk/client-s3`.
 */
export class S3Backend extends FileStoreBackend {
  readonly #files: S3Files;

  constructor(options: S3BackendOptions) {
    const given = readOptions("S3Backend", options, OPTIONS);
    const { prefix = "", endpoint, conditionalWrites = true, maxFileSizeMb = 32 } = given;
    // Callers whose types nobody checked may leave the bucket out.
    if (!("bucket" in given) || !BUCKET.test(given.bucket)) {
      throw unusable("bucket must be the name of a bucket");
    }
    if (endpoint !== undefined && !(URL.canParse(endpoint) && /^https?:/.test(endpoint))) {
      throw unusable("endpoint must be an address that starts with http:// or https://");
    }
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

  /** Closes the connections. */
  close(): Promise<void> {
    return this.#files.close();
  }
}

const BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$/;

const unusable = (problem: string): ConfigurationError =>
  new ConfigurationError("S3_OPTIONS", `The options of S3Backend are not usable: ${problem}`);
