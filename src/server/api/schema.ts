/** Reads the schemas of routes.json. */
import { z } from "zod";
import { MAX_TASK } from "../../runs/run.ts";
import type { PrincipalRuns } from "../../runs/service.ts";
import type { PageSession } from "../contracts/viewer.ts";
import type { Reply } from "../page/responses.ts";
import type { ScreenContext } from "../page/screen-context.ts";
import { RunDocument } from "../views/run-document.ts";
import table from "./routes.json" with { type: "json" };

/** A request whose rights and input were checked. `run` and `id` are those of its address. */
export interface Call<Input = object> extends Record<"run" | "id", string> {
  /** By the schema of the route, with names in camel case. */
  input: Input;
  context: ScreenContext;
  runs: PrincipalRuns;
  session: PageSession;
  reply: Reply;
  /** Sends a stream, for as long as the session may look. */
  stream: (send: (stop: AbortSignal) => Promise<void>) => Promise<object | null>;
}
/** A name, with `[]` for a list; texts that begin with `=`, with `|` between them; a union; or fields, `?` if optional. */
export type Notation = string | readonly Notation[] | { readonly [field: string]: Notation };

const { status, limits, queue, usage } = RunDocument.shape;
const text = z.string();
const natural = z.coerce.number().int().min(0);
const record = (value: z.ZodType): z.ZodType => z.record(text, value);
/** Limits as a caller chooses them, named as the service has them. */
const chosen = limits
  .unwrap()
  .strict()
  .transform(({ cost_usd: costUsd, model_calls, tool_calls, ...rest }) => {
    const { work_seconds: workTime, tokens } = rest;
    return { costUsd, tokens, modelCalls: model_calls, toolCalls: tool_calls, workTime };
  });
const task = text.max(MAX_TASK).regex(/\S/, "Write what the agent should do");
const [name, short, long] = [text.min(1).max(200), text.max(500), text.max(4000)];
const SCHEMAS = new Map<string, z.ZodType>([
  ...Object.entries({ text, int: z.int(), number: z.number(), flag: z.boolean(), time: z.iso.datetime() }),
  ...Object.entries({
    value: z.unknown(),
    values: record(z.unknown()),
    texts: record(text),
    true: z.literal(true),
  }),
  ...Object.entries({
    status,
    limits,
    queue,
    usage: usage.omit({ models: true }),
    chosen,
    task,
    name,
    short,
    long,
  }),
  ...Object.entries({ path: text.max(4000).startsWith("/"), count: natural, page: natural.min(1).max(500) }),
  ["places", record(z.union([z.literal("all"), z.array(z.int().min(0))]))],
  ["answers", record(z.union([text, z.number(), z.boolean(), z.array(text)]))],
]);
for (const [name, notation] of Object.entries<unknown>(table.documents))
  SCHEMAS.set(name, readSchema(notation as Notation).meta({ id: name })); // the file has no others
const Run = RunDocument.omit({ approvals: true, questions: true, last_seq: true });
SCHEMAS.set("Run", Run.extend({ requests: readSchema("Request[]") }).meta({ id: "Run" }));

/** An object has no other fields than its own. */
export function readSchema(notation: Notation): z.ZodType {
  if (typeof notation === "string") {
    if (notation.endsWith("[]")) return z.array(readSchema(notation.slice(0, -2)));
    const schema = notation.startsWith("=") ? z.enum(notation.slice(1).split("|")) : SCHEMAS.get(notation);
    if (schema === undefined) throw new Error(`routes.json has no schema ${notation}`);
    return schema;
  }
  if (Array.isArray(notation)) return z.union(notation.map((one: Notation) => readSchema(one)));
  const fields = Object.entries(notation).map(([name, field]: [string, Notation]) =>
    name.endsWith("?") ? [name.slice(0, -1), readSchema(field).optional()] : [name, readSchema(field)],
  );
  return z.strictObject(Object.fromEntries(fields) as z.ZodRawShape); // as they were just made
}
