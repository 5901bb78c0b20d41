import type { StructuredToolInterface } from "@langchain/core/tools";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { isInteropZodSchema } from "@langchain/core/utils/types";
import { orElse } from "../../core/errors.ts";

/** The definition of a tool, about as providers write it for the model. */
export const toolText = ({ name, description, schema }: StructuredToolInterface): string =>
  `${name}\n${description}\n${JSON.stringify(isInteropZodSchema(schema) ? orElse(() => toJsonSchema(schema), {}) : schema)}`;
