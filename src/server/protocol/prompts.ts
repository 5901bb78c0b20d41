/** Prompts: delegating a task, and the commands that a person starts. */
import type { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { shownName } from "../../core/text.ts";
import type { Holder } from "../../runs/run.ts";
import { allows } from "../../runs/scopes.ts";
import type { ConnectionDeps, OfferedCommand } from "../contracts/deps.ts";
import { invalidParams } from "../resources/resource.ts";
import texts from "./prompts.json" with { type: "json" };

const Arguments = z.object({
  task: z.string().describe("What the agent should achieve"),
  context: z.string().optional().describe("Facts it cannot see: decisions, constraints, where to look"),
  result: z.string().optional().describe("Form of the result, such as a report with file:line references"),
});

export function registerPrompts(mcp: McpServer, { commands, logger }: ConnectionDeps, holder: Holder): void {
  const offered = async (): Promise<readonly OfferedCommand[]> => {
    const found = allows(holder, "read")
      ? await commands?.(holder.principal).catch((error: unknown) =>
          logger.warn("commands.not_read", { error }),
        )
      : [];
    return (found ?? []).filter(({ name }) => name !== texts.delegate.name);
  };
  mcp.server.setRequestHandler("prompts/list", async () => ({
    prompts: [
      {
        ...texts.delegate,
        arguments: Object.entries(Arguments.shape).map(([name, field]) => ({
          name,
          description: field.description,
          required: !field.safeParse(undefined).success,
        })),
      },
      ...(await offered()).map(({ name, description, inputs, hint = "What the command is about" }) => ({
        name,
        description,
        arguments: (inputs.length > 0 ? inputs : ["arguments"]).map((one) => ({
          name: one,
          description: hint,
          required: false,
        })),
      })),
    ],
  }));
  mcp.server.setRequestHandler("prompts/get", async ({ params: { name, arguments: given = {} } }) => {
    if (name !== texts.delegate.name) {
      const command = (await offered()).find((one) => one.name === name);
      if (command === undefined)
        throw invalidParams(`There is no prompt '${shownName(name)}'. prompts/list names all.`);
      const task = command.fill(command.inputs.length > 0 ? given : (given["arguments"] ?? ""));
      const text = `Delegate this task with run_deep_agent, word for word:\n\n${task}\n\n${texts.afterwards}`;
      return answer(command.description, text);
    }
    const read = Arguments.safeParse(given);
    if (!read.success) throw invalidParams("The prompt delegate needs the argument task, a text.");
    const { task, context, result } = read.data;
    const lines = [
      "Delegate this task with run_deep_agent.",
      "",
      `Task: ${task}`,
      ...(context ? [`Context: ${context}`] : []),
      ...(result ? [`Result: ${result}`] : []),
      "",
      texts.standsAlone,
      texts.afterwards,
    ];
    return answer("Delegate a task to a deep agent", lines.join("\n"));
  });
}

const answer = (description: string, text: string) => ({
  description,
  messages: [{ role: "user" as const, content: { type: "text" as const, text } }],
});
