import type { StructuredToolInterface } from "@langchain/core/tools";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { isInteropZodSchema } from "@langchain/core/utils/types";

/** The definition of a tool, about as providers write it for the model. */
export function toolText({ name, description, schema }: StructuredToolInterface): string {
  return `${name}\n${description}\n${JSON.stringify(parametersOf(schema))}`;
}

function parametersOf(schema: StructuredToolInterface["schema"]): unknown {
  if (!isInteropZodSchema(schema)) return schema;
  try {
    return toJsonSchema(schema);
  } catch {
    return {}; // a schema that has no such form is for whoever binds the tool to refuse
  }
}
