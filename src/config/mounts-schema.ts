import { z } from "zod";

const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, {
  error: "must be the name of an environment variable",
});
const maxFileSizeMb = z
  .number()
  .positive()
  .max(1024)
  .optional()
  .describe("Largest file, in MiB; it is held in memory. Default: 32.");

const s3 = z.strictObject({
  bucket: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$/, { error: "must be the name of a bucket" })
    .describe("An existing bucket."),
  prefix: z.string().min(1).optional().describe("Beginning of the keys. Default: all of the bucket."),
  endpoint: z
    .url({ protocol: /^https?$/, error: "must be an http or https address" })
    .optional()
    .describe("Address of an S3-compatible server. Default: AWS."),
  region: z.string().min(1).optional().describe("Default: as the environment says."),
  accessKeyIdVariable: variable
    .optional()
    .describe("Environment variable with the id of the key. Default: where the AWS tools look."),
  secretAccessKeyVariable: variable.optional().describe("Environment variable with the key itself."),
  forcePathStyle: z
    .boolean()
    .optional()
    .describe("Puts the bucket into the path of requests. Default: true with an endpoint."),
  conditionalWrites: z
    .boolean()
    .optional()
    .describe(
      "False for servers that ignore conditions of writes: then the last writer wins. Default: true.",
    ),
  maxFileSizeMb,
});

const postgres = z.strictObject({
  connectionStringVariable: variable
    .optional()
    .describe(
      "Environment variable with `postgres://user:password@host/database`. Default: the `PG…` variables.",
    ),
  table: z
    .string()
    .regex(/^(?:[A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$/, {
      error: "must be a name such as deepagent_files or schema.deepagent_files",
    })
    .optional()
    .describe("Made when it is missing. Default: `deepagent_files`."),
  prefix: z.string().min(1).optional().describe("Path in the table below which the files are."),
  maxFileSizeMb,
});

const mount = z
  .strictObject({
    s3: s3.optional().describe("Files of an S3 bucket; needs the package @aws-sdk/client-s3."),
    postgres: postgres.optional().describe("Files of a Postgres table; needs the package pg."),
  })
  .refine((given) => (given.s3 === undefined) !== (given.postgres === undefined), {
    error: "needs either s3 or postgres",
  })
  .refine(
    ({ s3: given }) =>
      (given?.accessKeyIdVariable === undefined) === (given?.secretAccessKeyVariable === undefined),
    { error: "needs accessKeyIdVariable and secretAccessKeyVariable together" },
  );

/** Where the folders of the server itself are. */
const TAKEN: ReadonlySet<string> = new Set(["workspace", "memories", "skills", "sandbox"]);
const MOUNT_PATH = /^\/([\w.-]+)\/?$/;

/** More folders of the agent's tree, kept on other servers. */
export const mountsSchema = z.record(z.string(), mount).superRefine((mounts, context) => {
  const seen = new Set<string>();
  for (const path of Object.keys(mounts)) {
    const name = MOUNT_PATH.exec(path)?.[1];
    const problem = (message: string): void => context.addIssue({ code: "custom", path: [path], message });
    if (name === undefined || /^\.+$/.test(name)) problem("mount a folder of the root, such as /archive/");
    else if (TAKEN.has(name)) problem("is a folder of the server already; choose another name");
    else if (seen.has(name)) problem("is mounted twice");
    else seen.add(name);
  }
});

export type MountsConfig = z.output<typeof mountsSchema>;

/** The settings that name environment variables, with those. */
export const mountVariables = (mounts: MountsConfig): [setting: string, variable: string][] =>
  Object.entries(mounts).flatMap(([path, given]) =>
    Object.entries(given).flatMap(([kind, settings]) =>
      Object.entries(settings).flatMap(([name, value]): [string, string][] =>
        name.endsWith("Variable") ? [[`mounts.${path}.${kind}.${name}`, String(value)]] : [],
      ),
    ),
  );
