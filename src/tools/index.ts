import { deleteTool } from "./delete.ts";
import { editFileTool } from "./edit-file.ts";
import { executeTool, jobTool } from "./execute.ts";
import { globTool } from "./glob.ts";
import { grepTool } from "./grep.ts";
import { lsTool } from "./ls.ts";
import { type FileToolName, type FileToolOptions, type FileToolSettings, resolveOptions } from "./options.ts";
import { readFileTool } from "./read-file.ts";
import type { ToolSpec } from "./tool.ts";
import { writeFileTool } from "./write-file.ts";

const MADE: Readonly<Record<FileToolName, (settings: FileToolSettings) => ToolSpec>> = {
  ls: lsTool,
  read_file: readFileTool,
  write_file: writeFileTool,
  edit_file: editFileTool,
  glob: globTool,
  grep: grepTool,
  delete: deleteTool,
  execute: executeTool,
  job: jobTool,
};

/**
 * The tools that work on the backend of their call. `execute` is among them; it is to be offered where
 * `canExecute` holds for the backend, and `job` where that has jobs.
 */
export function fileTools(options: FileToolOptions = {}): ToolSpec[] {
  const settings = resolveOptions(options);
  return Object.entries(MADE)
    .filter(([name]) => name !== "delete" || options.delete !== false)
    .filter(([name]) => name !== "job" || options.jobs === true)
    .filter(([name]) => options.tools?.includes(name as FileToolName) ?? true) // the keys of the record above
    .map(([name, make]) => {
      const description = options.toolDescriptions?.[name as FileToolName]; // as above
      return description === undefined ? make(settings) : { ...make(settings), description };
    });
}
