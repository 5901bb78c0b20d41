import { isAbsolute } from "node:path";
import { z } from "zod";

const texts = z.record(z.string(), z.string());

const toolNames = z.array(z.string().min(1)).optional();

const server = z
  .strictObject({
    type: z
      .enum(["stdio", "http", "streamable-http", "streamableHttp", "sse"])
      .optional()
      .describe(
        "Default: by `command` or `url`; one of the two is needed. `sse`: a server of the older kind.",
      ),
    command: z.string().min(1).optional().describe("Program to start."),
    args: z.array(z.string()).optional().describe("Its arguments."),
    env: texts.optional().describe("Its environment; `${NAME}` stands for a variable of this server's."),
    cwd: z
      .string()
      .refine(isAbsolute, { error: "must be an absolute path" })
      .optional()
      .describe("Folder to start it in."),
    url: z.string().min(1).optional().describe("Address of a server that runs already."),
    headers: texts.optional().describe("Sent with every request; `${NAME}` as in `env`."),
    approve: z
      .enum(["writes", "all", "none"])
      .default("writes")
      .describe("Which calls a person approves: those of tools not marked read-only, all, or none."),
    alwaysAllow: toolNames.describe("Its tools that run unasked, whatever `approve` says."),
    autoApprove: toolNames.describe("The same, as some clients name it; counts without `alwaysAllow`."),
    tools: toolNames.describe("Only these of its tools. Default: all."),
    disabledTools: toolNames.describe("None of these tools."),
    disabled: z.boolean().optional().describe("Leaves the server out."),
    timeout: z
      .number()
      .min(1)
      .max(86_400)
      .default(120)
      .describe("Longest silence during a call, in seconds."),
  })
  .superRefine(({ type, command, args, env, cwd, url, headers }, context) => {
    const problem = (message: string): void => context.addIssue({ code: "custom", message });
    if ((command === undefined) === (url === undefined)) problem("needs either a command or a url");
    else if (url !== undefined && (args ?? env ?? cwd) !== undefined) {
      problem("has a url; args, env and cwd are for a command");
    } else if (command !== undefined && headers !== undefined) {
      problem("has a command; headers are for a url");
    } else if (type !== undefined && (type === "stdio") !== (command !== undefined)) {
      problem(`has type ${type}; stdio goes with a command, the others with a url`);
    }
  })
  .transform(({ type, command, args = [], env = {}, cwd, url, headers = {}, disabled, ...rest }) => {
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
      : { url, headers, ...(type === "sse" ? { isOlder: true } : {}), ...policy };
  });

/** Other MCP servers, in the form clients use. */
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

/** The names of its tools begin with it, and must tell where it ends. */
const SERVER_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9])?$/;
