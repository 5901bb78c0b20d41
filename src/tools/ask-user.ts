/** Asks a person. The run waits for the answer, as long as it takes. */
import { z } from "zod";
import { defined } from "../core/unknown.ts";
import { defineTool, toolError } from "./tool.ts";
import type { Field } from "./request.ts";
import texts from "./texts.json" with { type: "json" };

const field = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9_-]{0,39}$/, "Up to 40 letters, digits, '_' and '-', a letter first"),
  title: z.string().max(200).optional(),
  type: z.enum(["text", "number", "yes_no", "choice"]).optional(),
  options: z.array(z.string().min(1).max(200)).min(1).max(20).optional(),
  many: z.boolean().optional(),
  other: z.boolean().optional(),
  optional: z.boolean().optional(),
});

export const askUserTool = defineTool({
  name: "ask_user",
  kind: "plan",
  description: texts.askUser,
  schema: z.strictObject({
    question: z.string().min(1).max(4000),
    fields: z
      .array(field)
      .max(8)
      .superRefine((fields, context) => {
        const twice = fields.find(({ name }, at) => fields.findIndex((other) => other.name === name) !== at);
        if (twice) context.addIssue(`Two fields are named '${twice.name}'. Give each its own name.`);
      })
      .optional()
      .describe("Default: one text. `options` make a choice, `many`: of several, `other`: or in own words."),
    wait_minutes: z
      .number()
      .positive()
      .max(60 * 24 * 365)
      .optional()
      .describe("Then continue without an answer."),
  }),
  async handle({ question, fields = [], wait_minutes: wait }, { ask }) {
    if (ask === undefined)
      return toolError("Nobody can be asked here. Decide yourself, and say so in your answer.");
    const oneText: Field = { name: "answer", type: "text", required: true };
    const ifSo = (value: boolean | undefined) => (value ? (true as const) : undefined);
    const given = fields.map(({ name, title, type, options, many, other, optional }): Field => {
      const common = { name, ...defined({ title, required: ifSo(!optional) }) };
      if (options === undefined || (type !== undefined && type !== "choice"))
        return { ...common, type: type === undefined || type === "choice" ? "text" : type };
      return { ...common, type: "choice", options, ...defined({ many: ifSo(many), other: ifSo(other) }) };
    });
    const asked = fields.length === 0 ? [oneText] : given;
    const afterMs = wait === undefined ? {} : { afterMs: wait * 60_000 };
    const answer = await ask({ kind: "ask", text: question, fields: asked, ...afterMs });
    if (answer.type === "fields") {
      const values = Object.values(answer.values);
      const isOneText = values.length === 1 && typeof values[0] === "string";
      const said = isOneText ? ` ${String(values[0])}` : `\n${JSON.stringify(answer.values)}`;
      return { content: `The person answered:${said}`, artifact: { answer: answer.values } };
    }
    const said = answer.type === "decline" && answer.message ? ` They said: ${answer.message}` : "";
    const why = answer.type === "expired" ? "Nobody answered in time." : `The person did not answer.${said}`;
    return {
      content: `${why} Continue without it: decide what you can yourself, and say in your answer what you assumed.`,
      artifact: { noAnswer: answer.type },
    };
  },
});
