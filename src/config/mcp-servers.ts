/** Other MCP servers in the configuration, in the form that clients use. */
import { isAbsolute } from "node:path";
import { _default as withDefault, optional, z } from "zod";
import { between, choice, nonEmptyText } from "./sections.ts";

const texts = z.record(z.string(), z.string());

const toolNames = z.array(nonEmptyText).optional();

const scopeText = z.union([z.string(), z.array(z.string())]).transform((scope) => [scope].flat().join(" "));

const oauthSchema = z
  .strictObject({
    clientId: optional(nonEmptyText).describe(
      "Client id, if one is already registered there. Default: this server registers itself.",
    ),
    clientSecret: optional(nonEmptyText).describe("Its secret, if it has one; `${NAME}` as in `env`."),
    scope: optional(scopeText).describe("Permissions to ask for. Default: those that the server asks for."),
    scopes: optional(scopeText).describe("Alias of `scope` used by some clients; ignored if that is set."),
    callbackPort: optional(between(1, 65_535)).describe(
      "Port on this machine to which the browser returns, if the client is registered with one. Default: a free one.",
    ),
    clientMetadataUrl: optional(z.url({ protocol: /^https$/, error: "must be an https address" })).describe(
      "Address of a document that describes this client, for servers that accept client metadata documents.",
    ),
  })
  .transform(({ scopes, ...oauth }) => ({ ...oauth, scope: oauth.scope ?? scopes }));

const server = z
  .strictObject({
    type: optional(z.enum(["stdio", "http", "streamable-http", "streamableHttp", "sse"])).describe(
      "Default: by `command` or `url`; one of the two is needed. `sse`: a server of the older kind.",
    ),
    command: optional(nonEmptyText).describe("Program to start."),
    args: optional(z.array(z.string())).describe("Its arguments."),
    env: optional(texts).describe("Its environment; `${NAME}` stands for a variable of this server's."),
    cwd: z
      .string()
      .refine(isAbsolute, { error: "must be an absolute path" })
      .optional()
      .describe("Folder to start it in."),
    url: optional(nonEmptyText).describe("Address of a running server."),
    headers: optional(texts).describe("Sent with every request; `${NAME}` as in `env`."),
    oauth: optional(oauthSchema).describe(
      "Facts for `deepagent-mcp login`: clientId, clientSecret, scope, callbackPort, clientMetadataUrl. Rarely needed, because most servers publish what they require.",
    ),
    approve: choice(["writes", "all", "none"], "writes").describe(
      "Calls that need approval: those of tools not marked read-only, all, or none.",
    ),
    alwaysAllow: toolNames.describe("Its tools that run without approval, even if `approve` requires it."),
    autoApprove: toolNames.describe("Alias of `alwaysAllow` used by some clients; ignored if that is set."),
    tools: toolNames.describe("Only these of its tools. Default: all."),
    disabledTools: toolNames.describe("None of these tools."),
    disabled: optional(z.boolean()).describe("Disables the server."),
    timeout: withDefault(between(1, 86_400), 120).describe("Longest silence during a call, in seconds."),
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
