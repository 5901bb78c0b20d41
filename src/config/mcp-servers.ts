/** Other MCP servers in the configuration, in the form that clients use. */
import { isAbsolute } from "node:path";
import { _default as withDefault, optional, z } from "zod";
import { between, choice, fields, nonEmptyText } from "./sections.ts";

const texts = z.record(z.string(), z.string());

const toolNames = z.array(nonEmptyText).optional();

const scopeText = z.union([z.string(), z.array(z.string())]).transform((scope) => [scope].flat().join(" "));

const oauthSchema = fields("serverOauth", {
  clientId: optional(nonEmptyText),
  clientSecret: optional(nonEmptyText),
  scope: optional(scopeText),
  scopes: optional(scopeText),
  callbackPort: optional(between(1, 65_535)),
  clientMetadataUrl: optional(z.url({ protocol: /^https$/, error: "must be an https address" })),
}).transform(({ scopes, ...oauth }) => ({ ...oauth, scope: oauth.scope ?? scopes }));

const server = fields("server", {
  type: optional(z.enum(["stdio", "http", "streamable-http", "streamableHttp", "sse"])),
  command: optional(nonEmptyText),
  args: optional(z.array(z.string())),
  env: optional(texts),
  cwd: z.string().refine(isAbsolute, { error: "must be an absolute path" }).optional(),
  url: optional(nonEmptyText),
  headers: optional(texts),
  oauth: optional(oauthSchema),
  approve: choice(["writes", "all", "none"], "writes"),
  alwaysAllow: toolNames,
  autoApprove: toolNames,
  tools: toolNames,
  disabledTools: toolNames,
  disabled: optional(z.boolean()),
  timeout: withDefault(between(1, 86_400), 120),
})
  .superRefine(({ type, command, args, env, cwd, url, headers, oauth }, context) => {
    const problem = (message: string): void => context.addIssue({ code: "custom", message });
    if ((command === undefined) === (url === undefined)) problem("needs either a command or a url");
    else if (url !== undefined && (args ?? env ?? cwd) !== undefined) {
      problem("has a url; args, env and cwd are for a command");
    } else if (command !== undefined && (headers ?? oauth) !== undefined) {
      problem("has a command; headers and oauth are for a url");
    } else if (type !== undefined && (type === "stdio") !== (command !== undefined))
      problem(`has type ${type}; stdio goes with a command, the others with a url`);
  })
  .transform(({ type, command, args = [], env = {}, cwd, url, headers = {}, oauth, disabled, ...rest }) => {
    const { approve, timeout, tools, alwaysAllow, autoApprove, disabledTools } = rest;
    const policy = {
      approve,
      timeout,
      tools,
      disabledTools,
      alwaysAllow: alwaysAllow ?? autoApprove,
      disabled,
    };
    return url === undefined
      ? { command: command ?? "", args, env, cwd, ...policy }
      : { url, headers, oauth, ...(type === "sse" ? { isOlder: true } : {}), ...policy };
  });

export const mcpServersSchema = z
  .record(z.string(), server)
  .superRefine((servers, context) => {
    for (const [name, { disabled }] of Object.entries(servers)) {
      if (disabled || (SERVER_NAME.test(name) && !name.includes("__"))) continue;
      context.addIssue({
        code: "custom",
        path: [name],
        message: "name a server with up to 32 letters, digits, single underscores and hyphens",
      });
    }
  })
  .transform((servers) =>
    Object.fromEntries(
      Object.entries(servers).flatMap(([name, { disabled, ...kept }]) => (disabled ? [] : [[name, kept]])),
    ),
  );

/** Allowed server names. Tool names begin with one, and its end must be recognizable. */
const SERVER_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9])?$/;
