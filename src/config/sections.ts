/** Sections of the configuration: HTTP, the web, mounts, subagents. */
import { isIP } from "node:net";
import { isAbsolute } from "node:path";
import { _default as withDefault, optional, z } from "zod";
import { modelEntry } from "../agent/models/profiles/profile.ts";
import { isRecord } from "../core/unknown.ts";
import { SCOPES } from "../runs/run.ts";
import { SEARCH_PROVIDERS } from "../web/search/options.ts";
import { isSecureUrl, readHost } from "../web/url.ts";
import { readOrigin } from "./origins.ts";
import { placeholderHint } from "./paths.ts";

export const nonEmptyText = z.string().min(1);
export const matching = (form: RegExp, error: string) => z.string().regex(form, { error });
export const listOfTexts = z.array(nonEmptyText).default([]);
/** A switch, and its state if nothing is set. */
export const onOff = (initial: boolean) => z.boolean().default(initial);
/** One of several words, and the one that counts if nothing is set. */
export const choice = <const Word extends string>(words: readonly Word[], initial: NoInfer<Word>) =>
  z.enum(words).default(initial as z.core.util.NoUndefined<Word>); // a word is never undefined
/** Settings of one subject, each of which may be left out. */
export const group = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.strictObject(shape).prefault({} as z.input<z.ZodObject<Shape, z.core.$strict>>); // none of them is needed
/** Checks that exactly one of two settings is set. */
export const hasOne =
  <Name extends string>(first: Name, second: Name) =>
  (given: { readonly [Each in Name]?: unknown }): boolean =>
    (given[first] === undefined) !== (given[second] === undefined);
export const whole = (min: number, max = Number.MAX_SAFE_INTEGER) => z.int().min(min).max(max);
export const between = (min: number, max: number) => z.number().min(min).max(max);
/** A time of at most a day. */
export const seconds = between(0, 86_400);
/** A path that does not depend on where the program was started. */
export const absolutePath = nonEmptyText.refine(isAbsolute, {
  error: ({ input }) => `must be an absolute path${placeholderHint(String(input))}`,
});

/** A path below another one that names whose it is: `{principal}`, `{thread}`. */
export const ownPath = nonEmptyText.refine((path) => path.split("/").every(isOwnSegment), {
  error: "must be a path such as teams/{principal}, of letters, digits, . _ - and {principal} or {thread}",
});

const isOwnSegment = (name: string): boolean =>
  /^(?:[\w.-]|\{principal\}|\{thread\})+$/.test(name) && !/^\.+$/.test(name);

/** Permissions of a token: start and cancel runs, decide on approvals, read resources, files and memories. */

const token = z.strictObject({
  sha256: matching(/^[0-9a-f]{64}$/, "must be the SHA-256 of the token in lowercase hex").describe(
    "SHA-256 of the token.",
  ),
  principal: matching(
    /^[A-Za-z0-9._@+-]{1,128}$/,
    "use letters, digits and . _ @ + - only, at most 128",
  ).describe("Owner of the runs that it can reach."),
  scopes: z
    .array(z.enum(SCOPES))
    .min(1)
    .default([...SCOPES])
    .describe("Allowed actions."),
});
export type TokenConfig = z.output<typeof token>;

/** An address that is encrypted or on this machine: elsewhere anybody could replace keys and tokens. */
export const secureUrl = z
  .string()
  .refine(isSecureUrl, { error: "must be an https address without user name and fragment" });

export const variable = matching(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of an environment variable");

const oauth = z
  .strictObject({
    issuer: secureUrl.describe("Exactly as written in the tokens."),
    jwksUrl: optional(secureUrl).describe("Address of its keys."),
    introspection: optional(
      z.strictObject({
        url: secureUrl.describe("Introspection endpoint (RFC 7662)."),
        clientId: nonEmptyText.describe("This server's client id at the endpoint."),
        clientSecretVariable: variable.describe("Environment variable that holds its secret."),
      }),
    ).describe("Alternatively, the endpoint that checks each token."),
    resource: secureUrl.describe(
      "Address of this server for clients, such as `https://agent.example.org/mcp`.",
    ),
    audience: optional(nonEmptyText).describe("Expected in the tokens. Default: `resource`."),
  })
  .refine(hasOne("jwksUrl", "introspection"), { error: "needs either a jwksUrl or introspection" });
export type OAuthConfig = z.output<typeof oauth>;

/** A text that `read` accepts; for another one it returns the problem as a text. */
const readBy = (read: (entry: string) => unknown) =>
  z.string().superRefine((entry, context) => {
    const found = read(entry);
    if (typeof found === "string") context.addIssue({ code: "custom", message: found });
  });

/** The part of the configuration that `serve --http` alone reads. */
export const httpSchema = z.strictObject({
  host: z
    .string()
    .default("127.0.0.1")
    .describe(
      "Address that `serve --http` listens on; beyond this machine only with `http.tokens` or `http.oauth`.",
    ),
  port: withDefault(whole(0, 65_535), 8808).describe(
    "Port that `serve --http` listens on; 0 takes a free one.",
  ),
  publicUrl: optional(secureUrl).describe(
    "The address of this server for browsers, such as `https://agent.example.org`: it serves the page, results link to it, and forms are accepted only from it. Default: `http.oauth.resource` without its `/mcp`; without either, the page is at every address that `allowedHosts` allows, and results link to the one that their request used.",
  ),
  allowedHosts: z
    .array(z.string())
    .default([])
    .describe("Host names that requests may name, besides the loopback ones."),
  allowedOrigins: z
    .array(readBy(readOrigin))
    .default([])
    .describe(
      "Web pages that may send requests, besides those of this machine: `https://app.example`, or a host for any scheme and port.",
    ),
  agUi: onOff(false).describe(
    "Serves AG-UI at `/ag-ui`, for front ends such as CopilotKit, with the same tokens as `/mcp`.",
  ),
  requestsPerMinute: withDefault(whole(1, 1_000_000), 1200).describe(
    "Requests that one principal may make in a minute.",
  ),
  refusalsPerMinute: withDefault(whole(1, 1_000_000), 60).describe(
    "Tokens from one address that may be refused in a minute; good ones are still accepted.",
  ),
  sessions: withDefault(whole(1, 100_000), 200).describe(
    "Sessions of 2025-era clients at one time in one server; an idle one makes room for a new one, a busy one never.",
  ),
  sessionsPerPrincipal: withDefault(whole(1, 100_000), 100).describe(
    "Same, but of one principal at all servers that share a Postgres.",
  ),
  trustedProxies: z
    .array(
      z.string().refine(
        (text) => {
          const [address = "", prefix, ...rest] = text.split("/");
          const bits = isIP(address) === 4 ? 32 : isIP(address) === 6 ? 128 : -1;
          return (
            rest.length === 0 &&
            (prefix === undefined ? bits > 0 : /^\d{1,3}$/.test(prefix) && +prefix <= bits)
          );
        },
        { error: "must be an IP address or a network such as 10.0.0.0/8" },
      ),
    )
    .default([])
    .describe("Addresses or networks of reverse proxies; `X-Forwarded-For` is trusted only from them."),
  tokens: z
    .array(token)
    .refine((tokens) => new Set(tokens.map(({ sha256 }) => sha256)).size === tokens.length, {
      error: "two entries have the same sha256",
    })
    .default([])
    .describe(
      "Bearer tokens: SHA-256 of the token, principal, and scopes. If any is set, every request needs one.",
    ),
  oauth: optional(oauth).describe(
    "Accepts access tokens of an OAuth 2.1 authorization server: issuer, jwksUrl or introspection, resource (the public address of this server) and audience.",
  ),
});

/** The place where commands run. */
export const sandboxSchema = z.strictObject({
  provider: z
    .enum(["bubblewrap", "local", "docker", "modal", "runloop", "daytona"])
    .describe("`local`: as the user, without a sandbox; every command is approved by a person."),
  image: optional(nonEmptyText).describe("The image of docker and modal."),
  program: optional(nonEmptyText).describe("A program that takes Docker's commands. Default: docker."),
  programArguments: optional(z.array(z.string())).describe("Arguments in front of each of its commands."),
  limits: optional(z.array(z.string())).describe(
    "Arguments of `run` that limit a container. Default: 2 GiB, 2 processors, 512 processes.",
  ),
  user: optional(nonEmptyText).describe("User and group of a container's commands. Default: 1000:1000."),
  app: optional(nonEmptyText).describe("The app of modal."),
  sandboxId: optional(nonEmptyText).describe("A running sandbox to use, which is left running."),
  workdir: optional(z.string().startsWith("/")).describe("Its folder for the agent's files."),
  env: optional(z.record(z.string(), z.string())).describe("Environment of its commands."),
  parameters: optional(z.record(z.string(), z.unknown())).describe(
    "More parameters of a new sandbox, as defined by the package of modal, runloop or daytona.",
  ),
  setupScript: optional(nonEmptyText).describe("Shell commands that prepare a new one."),
  setupScriptPath: optional(absolutePath).describe("A file with these commands, instead of `setupScript`."),
  setupTimeout: withDefault(seconds.min(1), 600).describe("Time limit of the setup."),
});

export const webSchema = z.strictObject({
  mode: choice(["ask", "allow", "off"], "ask").describe(
    "Lets the agent read pages of the web with web_fetch: ask, with a person's approval, which can hold for all pages of a host in a run; allow, without; off, not at all, and no search either.",
  ),
  hosts: z
    .array(readBy(readHost))
    .default([])
    .describe(
      "Hosts that web_fetch may reach although their addresses are private, on any port, such as `wiki.corp.example`, `*.corp.example` or `127.0.0.1:8080`. Default: only the public internet is read.",
    ),
  search: group({
    provider: optional(z.enum(SEARCH_PROVIDERS)).describe(
      "Provider of web_search. tavily needs TAVILY_API_KEY in the environment, brave BRAVE_API_KEY, exa EXA_API_KEY. Default: command if `command` is set, searxng if `url` is set, otherwise the provider of the first of these keys; without any, the agent cannot search.",
    ),
    url: optional(z.url({ protocol: /^https?$/, error: "must be an http or https address" })).describe(
      "Address of a SearXNG server, or of a gateway to the provider.",
    ),
    command: z
      .array(nonEmptyText)
      .min(1)
      .optional()
      .describe(
        'Program with its arguments that searches: it gets `{ "query", "count" }` as JSON on standard input and prints `{ "results": [{ "title", "url", "snippet", "date" }] }`.',
      ),
  }),
});

const maxFileSizeMb = z
  .number()
  .positive()
  .max(1024)
  .optional()
  .describe("Largest file, in MiB; it is held in memory. Default: 32.");

const bucket = {
  bucket: matching(/^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$/, "must be the name of a bucket").describe(
    "An existing bucket.",
  ),
  endpoint: optional(z.url({ protocol: /^https?$/, error: "must be an http or https address" })).describe(
    "Address of an S3-compatible server. Default: AWS.",
  ),
  region: optional(nonEmptyText).describe("Default: from the environment."),
  accessKeyIdVariable: optional(variable).describe(
    "Environment variable with the key id. Default: the credential sources of the AWS tools.",
  ),
  secretAccessKeyVariable: optional(variable).describe("Environment variable with the secret key."),
  forcePathStyle: optional(z.boolean()).describe(
    "Puts the bucket into the path of requests. Default: true with an endpoint.",
  ),
};

const KEYS_TOGETHER = { error: "needs accessKeyIdVariable and secretAccessKeyVariable together" };
const hasHalfAKey = hasOne("accessKeyIdVariable", "secretAccessKeyVariable");

export const storageS3Schema = z
  .strictObject({
    ...bucket,
    prefix: optional(
      matching(/^[\w-][\w.-]*(\/[\w-][\w.-]*)*\/?$/, "must be a path such as deepagent/values"),
    ).describe("Key prefix. Default: the whole bucket."),
  })
  .refine((given) => !hasHalfAKey(given), KEYS_TOGETHER);

const mount = z
  .strictObject({
    s3: optional(
      z.strictObject({
        ...bucket,
        prefix: optional(nonEmptyText).describe(
          "Key prefix; `{principal}` and `{thread}` stand for the owner of the files. Default: the whole bucket.",
        ),
        conditionalWrites: optional(z.boolean()).describe(
          "Set to false for servers that ignore conditional writes: the last writer then wins. Default: true.",
        ),
        maxFileSizeMb,
      }),
    ).describe("Files of an S3 bucket; needs the package @aws-sdk/client-s3."),
    postgres: optional(
      z.strictObject({
        connectionStringVariable: optional(variable).describe(
          "Environment variable with `postgres://user:password@host/database`. Default: the `PG…` variables.",
        ),
        table: optional(
          matching(
            /^(?:[A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$/,
            "must be a name such as deepagent_files or schema.deepagent_files",
          ),
        ).describe("Created if missing. Default: `deepagent_files`."),
        prefix: optional(nonEmptyText).describe(
          "Path in the table below which the files are, with `{principal}` and `{thread}` as for S3.",
        ),
        maxFileSizeMb,
      }),
    ).describe("Files of a Postgres table; needs the package pg."),
  })
  .refine(hasOne("s3", "postgres"), { error: "needs either s3 or postgres" })
  .refine(({ s3: given = {} }) => !hasHalfAKey(given), KEYS_TOGETHER);

/** More folders of the agent's tree, kept on other servers. */
export const mountsSchema = z.record(z.string(), mount).superRefine((mounts, context) => {
  const seen = new Set<string>();
  for (const path of Object.keys(mounts)) {
    const name = /^\/([\w.-]+)\/?$/.exec(path)?.[1];
    const problem = (message: string): void => context.addIssue({ code: "custom", path: [path], message });
    if (name === undefined || /^\.+$/.test(name)) problem("mount a folder of the root, such as /archive/");
    else if (["workspace", "memories", "skills", "sandbox"].includes(name))
      problem("is a folder of the server already; choose another name");
    else if (seen.has(name)) problem("is mounted twice");
    else seen.add(name);
  }
});

export type MountsConfig = z.output<typeof mountsSchema>;

/** The settings that name environment variables, with those. */
export const namedVariables = ({
  mounts,
  storageS3,
}: {
  mounts: MountsConfig;
  storageS3?: object | undefined;
}): [setting: string, variable: string][] =>
  [
    ["storageS3", storageS3 ?? {}] as const,
    ...Object.entries(mounts).flatMap(([path, given]) =>
      Object.entries(given).map(([kind, settings]) => [`mounts.${path}.${kind}`, settings] as const),
    ),
  ].flatMap(([path, settings]) =>
    Object.entries(settings).flatMap(([name, value]): [string, string][] =>
      name.endsWith("Variable") ? [[`${path}.${name}`, String(value)]] : [],
    ),
  );

export const subagentSchema = z.strictObject({
  name: matching(/^[a-z0-9][a-z0-9-]{0,63}$/, "use lowercase letters, digits and hyphens").describe(
    "Name that the agent uses.",
  ),
  description: z.string().min(1).max(1024).describe("Its strengths: the agent chooses by this description."),
  systemPrompt: nonEmptyText.describe("Its instructions."),
  model: optional(nonEmptyText).describe("`provider:model` or `offline`. Default: the agent's."),
  tools: optional(z.array(nonEmptyText)).describe(
    "MCP servers, or single tools as server__tool, that it may use. Default: all. If built-in tools are named, it gets only those, read_file and ls.",
  ),
});

/** Parameters of models that `modelParameters` may not have: they would move a key or lose a limit. */
const OWN_PARAMETERS = [
  "model",
  "modelName",
  "apiKey",
  "configuration",
  "clientOptions",
  "callbacks",
  "maxRetries",
  "streaming",
];

export const modelEntries = z
  .record(
    matching(/^[a-zA-Z0-9][\w.-]{0,63}$/, "name a model with letters, digits and . _ - only, at most 64"),
    modelEntry,
  )
  .default({})
  .describe(
    "Models and services by names of your own. `NAME` stands for an entry with a `model`, `NAME:MODEL` for any model of its service, in `model`, `fallbackModels`, `judgeModel` and wherever else a model is named.",
  );

export const modelParameters = z
  .record(nonEmptyText, z.record(nonEmptyText, z.unknown()))
  .optional()
  .superRefine((given = {}, context) => {
    for (const [model, parameters] of Object.entries(given))
      // Gateways need headers of their own.
      for (const name of OWN_PARAMETERS.filter(
        (own) =>
          Object.hasOwn(parameters, own) &&
          !(isRecord(parameters[own]) && Object.keys(parameters[own]).join() === "defaultHeaders"),
      ))
        context.addIssue({
          code: "custom",
          path: [model, name],
          message: "the server sets this parameter itself; remove it",
        });
  })
  .describe(
    "Parameters of a model, such as `temperature`, `maxTokens`, `thinking` or `reasoning`, under the names of its LangChain class. The key is `provider:model` or its beginning; the longest match applies.",
  );
