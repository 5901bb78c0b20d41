/** The connection to a bucket of an S3-compatible server, and the meaning of its errors. */
import type * as Sdk from "@aws-sdk/client-s3";
import { loadOptional } from "./optional-package.ts";
import type { S3Address } from "./s3-address.ts";
import { memberOf, defined } from "./unknown.ts";
import table from "./s3-errors.json" with { type: "json" };

interface Connection {
  client: Sdk.S3Client;
  sdk: typeof Sdk;
}

const PACKAGE = { name: "@aws-sdk/client-s3", version: "3.1169.0" };

/** Loads the SDK and connects when it is first used. */
export class S3Connection {
  readonly #user: string;
  readonly #address: S3Address;
  #opening: Promise<Connection> | undefined;

  /** `user` is the part of this program that needs it, such as `S3Backend`. */
  constructor(user: string, address: S3Address) {
    this.#user = user;
    this.#address = address;
  }

  /** Throws ConfigurationError when the package is missing; the next call tries again. */
  open(): Promise<Connection> {
    this.#opening ??= this.#connect().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async close(): Promise<void> {
    const opening = this.#opening;
    this.#opening = undefined;
    (await opening)?.client.destroy();
  }

  async #connect(): Promise<Connection> {
    const { endpoint, region, credentials, load, forcePathStyle = endpoint !== undefined } = this.#address;
    // The type is the one that the package declares.
    const sdk = (await loadOptional({ ...PACKAGE, user: this.#user }, load)) as typeof Sdk;
    const place = endpoint === undefined ? {} : { endpoint, region: region ?? "us-east-1" };
    const client = new sdk.S3Client({
      ...place,
      ...defined({ region, credentials }),
      forcePathStyle,
      requestHandler: { connectionTimeout: 5000, requestTimeout: 60_000 },
      // Many compatible servers do not know the newer checksums.
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
    });
    return { client, sdk };
  }
}

/** The name of an SDK error: a plain word, whatever a server answered. */
export function s3ErrorName(thrown: unknown): string {
  if (!(thrown instanceof Error)) return "UnknownError";
  const code: unknown = Reflect.get(thrown, "code");
  const name = typeof code === "string" ? code : thrown.name;
  return /^\w{1,60}$/.test(name) ? name : "UnknownError";
}

/** Describes a failure. `isOutage`: the server itself is in trouble, so the failure may pass without help. */
export function s3Problem(thrown: unknown): { text: string; isOutage: boolean } {
  const name = s3ErrorName(thrown);
  if (Object.hasOwn(S3_ERRORS, name)) return { text: S3_ERRORS[name] ?? "", isOutage: false };
  const status = memberOf(memberOf(thrown, "$metadata"), "httpStatusCode");
  if (status === 403) return { text: table.AccessDenied, isOutage: false };
  return typeof status === "number"
    ? { text: `the S3 server answers ${name} (${status})`, isOutage: status === 429 || status >= 500 }
    : {
        text: `the S3 server cannot be reached (${name}); check that it runs and that endpoint and region are right`,
        isOutage: true,
      };
}

/** Explanations of errors by their names, with a remedy. */
const S3_ERRORS: Readonly<Record<string, string>> = table;
