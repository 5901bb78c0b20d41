/** Sections of the configuration: HTTP, the web, mounts, subagents. */
import { isIP } from "node:net";
import { isAbsolute } from "node:path";
import { _default as withDefault, optional, z } from "zod";
import { modelEntry } from "../agent/models/profiles/schema.ts";
import { isRecord } from "../core/unknown.ts";
import { SCOPES } from "../runs/run.ts";
import { SEARCH_PROVIDERS } from "../web/search/options.ts";
import { isSecureUrl, readHost } from "../web/url.ts";
import { readOrigin } from "./origins.ts";
import descriptions from "./descriptions.json" with { type: "json" };
import { isFolderPattern, placeholderHint } from "./paths.ts";
import { NEWS_TYPES, USUAL_NEWS } from "../runs/news.ts";

export const nonEmptyText = z.string().min(1);
export const matching = (form: RegExp, error: string) => z.string().regex(form, { error });
export const listOfTexts = z.array(nonEmptyText).default([]);
/** A switch, and its state if nothing is set. */
export const onOff = (initial: boolean) => z.boolean().default(initial);
/** One of several words, and the one that counts if nothing is set. */
export const choice = <const Word extends string>(words: readonly Word[], initial: NoInfer<Word>) =>
  z.enum(words).default(initial as z.core.util.NoUndefined<Word>); // a word is never undefined
/** Adds to each field its description in a section of `descriptions.json`. */
export const described = <Shape extends Record<string, z.ZodType>>(
  section: keyof typeof descriptions,
  shape: Shape,
) => {
  const texts: Readonly<Record<string, string>> = descriptions[section];
  const fields = Object.entries(shape).map(([name, schema]) => {
    const text = texts[name];
    return [name, text === undefined ? schema : schema.describe(text)];
  });
  return Object.fromEntries(fields) as Shape; // its own schemas, with descriptions
};
/** An object with the descriptions of a section. */
export const fields = <Shape extends Record<string, z.ZodType>>(
  section: keyof typeof descriptions,
  shape: Shape,
) => z.strictObject(described(section, shape));
/** Settings of one subject, each of which may be left out. */
export const group = <Shape extends Record<string, z.ZodType>>(
  section: keyof typeof descriptions,
  shape: Shape,
) => fields(section, shape).prefault({} as z.input<z.ZodObject<Shape, z.core.$strict>>); // none of them is needed
/** Checks that exactly one of two settings is set. */
const hasOne =
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

/** Patterns of folders. */
export const folderPatterns = z
  .array(
    nonEmptyText.refine(isFolderPattern, { error: "must be an absolute path, in which a name may be *" }),
  )
  .default([]);

/** A path below another one that names whose it is: `{principal}`, `{thread}`. */
export const ownPath = nonEmptyText.refine(
  (path) =>
    path
      .split("/")
      .every((name) => /^(?:[\w.-]|\{principal\}|\{thread\})+$/.test(name) && !/^\.+$/.test(name)),
  {
    error: "must be a path such as teams/{principal}, of letters, digits, . _ - and {principal} or {thread}",
  },
);

const token = fields("token", {
  sha256: matching(/^[0-9a-f]{64}$/, "must be the SHA-256 of the token in lowercase hex"),
  principal: matching(/^[A-Za-z0-9._@+-]{1,128}$/, "use letters, digits and . _ @ + - only, at most 128"),
  scopes: z
    .array(z.enum(SCOPES))
    .min(1)
    .default([...SCOPES]),
});
export type TokenConfig = z.output<typeof token>;

/** An address that is encrypted or on this machine: elsewhere anybody could replace keys and tokens. */
const secureUrl = z
  .string()
  .refine(isSecureUrl, { error: "must be an https address without user name and fragment" });

const variable = matching(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of an environment variable");

const oauth = fields("oauth", {
  issuer: secureUrl,
  jwksUrl: optional(secureUrl),
  introspection: optional(
    fields("introspection", {
      url: secureUrl,
      clientId: nonEmptyText,
      clientSecretVariable: variable,
    }),
  ),
  resource: secureUrl,
  audience: optional(nonEmptyText),
  scopes: optional(
    z.union([
      z.array(matching(/[/:.](?:run|approve|read)$/, "must end with /run, /approve or /read")).min(1),
      z.partialRecord(z.enum(SCOPES), z.union([nonEmptyText, z.array(nonEmptyText).min(1)])),
    ]),
  ),
}).refine(hasOne("jwksUrl", "introspection"), { error: "needs either a jwksUrl or introspection" });
export type OAuthConfig = z.output<typeof oauth>;

/** A text that `read` accepts; for another one it returns the problem as a text. */
const readBy = (read: (entry: string) => unknown) =>
  z.string().superRefine((entry, context) => {
    const found = read(entry);
    if (typeof found === "string") context.addIssue({ code: "custom", message: found });
  });

/** The part of the configuration that `serve --http` alone reads. */
export const httpSchema = fields("http", {
  host: z.string().default("127.0.0.1"),
  port: withDefault(whole(0, 65_535), 8808),
  publicUrl: optional(secureUrl),
  allowedHosts: z.array(readBy(readOrigin)).default([]),
  allowedOrigins: z.array(readBy(readOrigin)).default([]),
  owner: onOff(false),
  redirects: z.array(secureUrl).default([]),
  agUi: onOff(false),
  requestsPerMinute: withDefault(whole(1, 1_000_000), 1200),
  refusalsPerMinute: withDefault(whole(1, 1_000_000), 60),
  sessions: withDefault(whole(1, 100_000), 200),
  sessionsPerPrincipal: withDefault(whole(1, 100_000), 100),
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
    .default([]),
  tokens: z
    .array(token)
    .refine((tokens) => new Set(tokens.map(({ sha256 }) => sha256)).size === tokens.length, {
      error: "two entries have the same sha256",
    })
    .default([]),
  oauth: optional(oauth),
}).refine(({ owner, oauth }) => !owner || oauth === undefined, {
  error: "set either http.owner or http.oauth: clients use one authorization server",
});

export const sandboxSchema = fields("sandbox", {
  provider: z.enum(["bubblewrap", "local", "docker", "modal", "runloop", "daytona"]),
  image: optional(nonEmptyText),
  program: optional(nonEmptyText),
  programArguments: optional(z.array(z.string())),
  limits: optional(z.array(z.string())),
  user: optional(nonEmptyText),
  app: optional(nonEmptyText),
  sandboxId: optional(nonEmptyText),
  workdir: optional(z.string().startsWith("/")),
  env: optional(z.record(z.string(), z.string())),
  parameters: optional(z.record(z.string(), z.unknown())),
  setupScript: optional(nonEmptyText),
  setupScriptPath: optional(absolutePath),
  setupTimeout: withDefault(seconds.min(1), 600),
});

export const webSchema = fields("web", {
  mode: choice(["ask", "allow", "off"], "ask"),
  hosts: z.array(readBy(readHost)).default([]),
  search: group("search", {
    provider: optional(z.enum(SEARCH_PROVIDERS)),
    url: optional(z.url({ protocol: /^https?$/, error: "must be an http or https address" })),
    command: z.array(nonEmptyText).min(1).optional(),
  }),
});

const maxFileSizeMb = z.number().positive().max(1024).optional();

const bucket = described("bucket", {
  bucket: matching(/^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$/, "must be the name of a bucket"),
  endpoint: optional(z.url({ protocol: /^https?$/, error: "must be an http or https address" })),
  region: optional(nonEmptyText),
  accessKeyIdVariable: optional(variable),
  secretAccessKeyVariable: optional(variable),
  forcePathStyle: optional(z.boolean()),
});

const KEYS_TOGETHER = { error: "needs accessKeyIdVariable and secretAccessKeyVariable together" };
const hasHalfAKey = hasOne("accessKeyIdVariable", "secretAccessKeyVariable");

export const storageS3Schema = fields("storageS3", {
  ...bucket,
  prefix: optional(matching(/^[\w-][\w.-]*(\/[\w-][\w.-]*)*\/?$/, "must be a path such as deepagent/values")),
}).refine((given) => !hasHalfAKey(given), KEYS_TOGETHER);

const mount = fields("mount", {
  s3: optional(
    fields("s3", {
      ...bucket,
      prefix: optional(nonEmptyText),
      conditionalWrites: optional(z.boolean()),
      maxFileSizeMb,
    }),
  ),
  postgres: optional(
    fields("postgres", {
      connectionStringVariable: optional(variable),
      table: optional(
        matching(
          /^(?:[A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$/,
          "must be a name such as deepagent_files or schema.deepagent_files",
        ),
      ),
      prefix: optional(nonEmptyText),
      maxFileSizeMb,
    }),
  ),
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

/** The settings that name environment variables, with those. */
export function namedVariables(config: {
  mounts: z.output<typeof mountsSchema>;
  storageS3?: object | undefined;
}): [setting: string, variable: string][] {
  const groups: [path: string, settings: object][] = [["storageS3", config.storageS3 ?? {}]];
  for (const [path, given] of Object.entries(config.mounts))
    for (const [kind, settings] of Object.entries(given)) groups.push([`mounts.${path}.${kind}`, settings]);
  return groups.flatMap(([path, settings]) => {
    const named = Object.entries(settings).filter(([name]) => name.endsWith("Variable"));
    return named.map(([name, value]): [string, string] => [`${path}.${name}`, String(value)]);
  });
}

export const subagentSchema = fields("subagent", {
  name: matching(/^[a-z0-9][a-z0-9-]{0,63}$/, "use lowercase letters, digits and hyphens"),
  description: z.string().min(1).max(1024),
  systemPrompt: nonEmptyText,
  model: optional(nonEmptyText),
  tools: optional(z.array(nonEmptyText)),
});

const ruleFields = modelEntry.shape.request.unwrap().shape;
export const modelEntries = z
  .record(
    matching(/^[a-zA-Z0-9][\w.-]{0,63}$/, "name a model with letters, digits and . _ - only, at most 64"),
    fields("model", {
      ...modelEntry.shape,
      request: fields("requestRules", {
        ...ruleFields,
        thoughts: fields("thoughts", ruleFields.thoughts.unwrap().shape).optional(),
      }).optional(),
    }),
  )
  .default({});

export const modelParameters = z
  .record(nonEmptyText, z.record(nonEmptyText, z.unknown()))
  .optional()
  .superRefine((given = {}, context) => {
    // These would move a key or lose a limit.
    const own = "model modelName apiKey configuration clientOptions callbacks maxRetries streaming".split(
      " ",
    );
    for (const [model, parameters] of Object.entries(given))
      for (const name of own.filter((one) => Object.hasOwn(parameters, one))) {
        const value = parameters[name];
        // Gateways need headers of their own.
        if (isRecord(value) && Object.keys(value).join() === "defaultHeaders") continue;
        const message = "the server sets this parameter itself; remove it";
        context.addIssue({ code: "custom", path: [model, name], message });
      }
  });

const price = z.number().min(0);

export const limitsSchema = group("limits", {
  concurrentRuns: withDefault(whole(1, 1000), 8),
  drain: withDefault(seconds, 0),
  openRuns: withDefault(whole(1, 1_000_000), 500),
  serverCrashes: withDefault(whole(1, 1_000_000), 10),
  parallelSubagents: withDefault(whole(1, 64), 8),
  parallelTools: withDefault(whole(1, 64), 8),
  modelCalls: optional(whole(1)),
  toolCalls: optional(whole(1)),
  tokens: optional(whole(1)),
  costUsd: optional(z.number().positive()),
  prices: z
    .record(
      nonEmptyText,
      fields("prices", {
        input: price,
        output: price,
        cachedInput: optional(price),
        cacheWrite: optional(price),
      }),
    )
    .optional(),
  modelPatience: withDefault(seconds, 600),
  modelSilence: withDefault(seconds.min(1), 300),
  workTime: optional(seconds),
  toolTime: optional(seconds),
  goalRounds: withDefault(whole(1, 20), 5),
  repeatedTurns: withDefault(whole(0), 20),
  subagentDepth: withDefault(whole(1, 4), 1),
  listedCharacters: withDefault(whole(1000, 1_000_000), 8000),
  foreignToolTokens: withDefault(whole(0, 1_000_000), 10_000),
});

const newsTypes = described("newsTypes", {
  events: z
    .array(z.enum(NEWS_TYPES))
    .min(1)
    .default([...USUAL_NEWS]),
});

const newsAddress = described("newsAddress", { url: optional(secureUrl), urlVariable: optional(variable) });

const hasOneAddress = hasOne("url", "urlVariable");
const ONE_ADDRESS = { error: "needs either url or urlVariable" };

const channel = z.discriminatedUnion("kind", [
  fields("webhook", {
    kind: z.literal("webhook"),
    ...newsAddress,
    secretVariable: variable,
    ...newsTypes,
  }).refine(hasOneAddress, ONE_ADDRESS),
  fields("slack", { kind: z.literal("slack"), ...newsAddress, ...newsTypes }).refine(
    hasOneAddress,
    ONE_ADDRESS,
  ),
  fields("ntfy", {
    kind: z.literal("ntfy"),
    ...newsAddress,
    tokenVariable: optional(variable),
    ...newsTypes,
  }).refine(hasOneAddress, ONE_ADDRESS),
  fields("command", { kind: z.literal("command"), command: z.array(nonEmptyText).min(1), ...newsTypes }),
  fields("desktop", { kind: z.literal("desktop"), ...newsTypes }),
]);

export const newsSchema = z
  .record(
    matching(
      /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/,
      "name a channel with letters, digits, underscores and hyphens, at most 64",
    ),
    channel,
  )
  .default({});
