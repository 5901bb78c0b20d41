/** Apart from the connection, whose types need a package that not everybody installs. */
import type { LoadPackage } from "./optional-package.ts";

export interface S3Address {
  /** An existing bucket. */
  bucket: string;
  /** Address of an S3-compatible server. Default: from the environment, else AWS. */
  endpoint?: string;
  /** Default: from the environment, and `us-east-1` with an endpoint. */
  region?: string;
  /** Default: where the AWS tools look, such as the environment, profiles and roles. */
  credentials?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string };
  /** Puts the bucket into the path of requests instead of the host name. Default: true with an endpoint. */
  forcePathStyle?: boolean;
  /** Loads the package `@aws-sdk/client-s3`. Default: `import`. */
  load?: LoadPackage;
}
