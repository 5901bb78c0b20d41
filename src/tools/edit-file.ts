import { z } from "zod";
import type { Failure } from "../backends/backend.ts";
import { errors } from "../backends/errors.ts";
import { textRefusal } from "../backends/file-data.ts";
import { editFileText, notebookText } from "../backends/notebook.ts";
import { displayName, headOf } from "../core/text.ts";
import { type CallPlace, failedAt, pathText, pathTool, storedText, underOtherNames } from "./call.ts";
import {
  argumentsPreview,
  currentText,
  resolveDestination,
  editPreview,
  failing,
  withRemarks,
} from "./call-preview.ts";
import { type TextChange, changeArtifact, readChange, replacementDiff } from "./diff-preview.ts";
import { counted } from "./format.ts";
import type { FileToolSettings } from "./options.ts";
import type { BoundPreview, ToolContext, ToolSpec } from "./tool.ts";
import texts from "./texts.json" with { type: "json" };

const editSchema = z.strictObject({
  file_path: pathText(),
  old_string: z.string().describe("Text to replace, without read_file's line prefix."),
  new_string: storedText(),
  replace_all: z.boolean().default(false),
});

export const editFileTool = (settings: FileToolSettings): ToolSpec<typeof editSchema> =>
  pathTool(
    {
      name: "edit_file",
      kind: "write",
      description: texts.editFile,
      schema: editSchema,
      aliases: { old_str: "old_string", new_str: "new_string" },
      work: async ({ old_string: old, new_string: replacement, replace_all: all }, { path }, context) => {
        const { backend, signal, expectedVersion, evenReadOnly } = context;
        const changes: TextChange[] = [];
        const result = await backend.edit(path, old, replacement, all, {
          signal,
          evenReadOnly,
          onChange: (before, after) => void changes.push({ path, before, after }),
          ...(expectedVersion === undefined ? {} : { expectedVersion }),
        });
        if (result.error !== undefined) {
          const isMiss = result.code === "no_match" && old !== "" && old !== replacement;
          const current = isMiss ? await currentText(path, backend, signal) : undefined;
          const text = current?.kind === "text" ? current.text : "";
          const error = isMiss ? missed(result.error, path, text, old) : result.error;
          return failedAt(path, { ...result, error }, context);
        }
        const { path: edited = path, occurrences = 1, version, filesUpdate } = result;
        return {
          content: `Successfully replaced ${occurrences} occurrence(s) in '${displayName(edited)}'${underOtherNames(result)}`,
          artifact: { path: edited, occurrences, version, ...(await changeArtifact(changes.at(-1))) },
          ...(filesUpdate ? { update: { files: filesUpdate } } : {}),
        };
      },
      shown: { title: "Edit a file", preview: previewEdit },
      changeOf(args, artifact) {
        const { file_path: path, old_string: before, new_string: after, replace_all: everywhere } = args;
        return readChange(artifact) ?? replacementDiff({ path, before, after }, everywhere);
      },
    },
    settings,
  );

/** The error of text that is not found, with the lines that come nearest to it. */
function missed(error: string, path: string, text: string, old: string): string {
  const near = nearestLines(notebookText(path, text) ?? text, old);
  return `${error}. Read the file again and copy the text exactly, with its whitespace and without the number and tab before each line.${near === undefined ? "" : ` ${near}`}`;
}

async function previewEdit(args: z.output<typeof editSchema>, { path }: CallPlace, context: ToolContext) {
  const { backend, signal } = context;
  const to = await resolveDestination(path, backend);
  const { name } = to;
  const fails = async (failure: Failure): Promise<BoundPreview> =>
    failing(`Edit ${name}`, args, { failure: await failedAt(path, failure, context), to });
  const refused = await backend.refusal?.("edit", path, { signal });
  if (refused) return fails(refused);
  const current = await currentText(path, backend, signal);
  if (current.kind === "absent") return fails(errors.fileNotFound(path));
  if (current.kind === "unreadable") {
    if (current.failure) return fails(current.failure);
    const summary = `Edit ${name}; its content could not be compared: ${current.reason}`;
    return withRemarks(argumentsPreview(summary, args, to), current);
  }
  const { old_string: before, new_string: after, replace_all: everywhere } = args;
  const unstorable = textRefusal(path, current, after);
  if (unstorable !== undefined) return fails(unstorable);
  const edited = editFileText(path, current.text, [before, after], everywhere);
  if (!edited.ok) {
    const { error, code } = edited;
    return fails({ code, error: code === "no_match" ? missed(error, path, current.text, before) : error });
  }
  const summary = `Edit ${name} (${counted(edited.occurrences, "occurrence")})`;
  const change = { path, before: current.text, after: edited.text };
  const shown = await editPreview({ summary, change, to }, { path, before, after }, everywhere);
  const preview = withRemarks(shown, current);
  return current.version === undefined ? preview : { ...preview, version: current.version };
}

/** The differences that are looked for, from the smallest on: each makes two lines equal that differ in nothing else. */
const FOLDS: readonly [difference: string, fold: (line: string) => string][] = [
  ["blanks at the ends of lines", (line) => line.trimEnd()],
  ["quotes or dashes", (line) => plainMarks(line).trimEnd()],
  ["tabs and spaces at the beginning of lines", (line) => line.trim()],
  ["the number before the line, which read_file adds", (line) => line.replace(/^\d+\t/, "").trim()],
  ["the number of blanks", (line) => line.replace(/\s+/g, " ").trim()],
  ["quotes, dashes, tabs and blanks", (line) => alike(line)],
  ["upper and lower case, quotes and blanks", (line) => plainMarks(line).replace(/\s+/g, "").toLowerCase()],
];

const plainMarks = (line: string): string =>
  line
    .replace(/[\u2018\u2019\u201a\u2032`\u201c\u201d\u201e\u2033"]/g, "'")
    .replace(/[\u2010-\u2015\u2212]/g, "-")
    .replace(/[\u00a0\u2000-\u200a\u202f\u3000]/g, " ");

const alike = (line: string): string => plainMarks(line).replace(/\s+/g, " ").trim();

/** Describes the lines that are nearest to a missing text. Returns undefined if none are alike. */
export function nearestLines(text: string, missing: string): string | undefined {
  const lines = text.split("\n", 20_000).map((line) => line.replace(/\r$/, ""));
  const wanted = missing.replace(/^\n+|(?<!\n)\n+$/g, "").split(/\r?\n/);
  if (wanted.every((line) => line.trim() === "")) return undefined;
  const count = wanted.length;
  const describe = (at: number, difference: string): string => {
    const end = Math.min(at + count, lines.length);
    const part = lines.slice(at, Math.min(end, at + 8)).map((line) => headOf(line, 200));
    const name = count === 1 ? `Line ${at + 1} of the file` : `Lines ${at + 1} to ${end} of the file`;
    return `${name} ${difference}:\n${part.join("\n")}`;
  };
  for (const [difference, fold] of FOLDS) {
    const [folded, part] = [lines.map(fold), wanted.map(fold)];
    const at = folded.findIndex((_, start) => part.every((line, index) => folded[start + index] === line));
    if (at !== -1) return describe(at, `differ${count === 1 ? "s" : ""} in ${difference}`);
  }
  const escapes: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };
  const plain = missing.replaceAll(/\\([ntr"'`\\])/g, (_, sign: string) => escapes[sign] ?? sign);
  if (plain !== missing && lines.join("\n").includes(plain))
    return "The text is in the file, but escaped once too often here: write line breaks, tabs, quotes and backslashes as they are.";
  const known = lines.map(alike);
  for (const [index, line] of wanted.slice(0, 50).map(alike).entries()) {
    // A short line stands in many places.
    const at = line.length < 8 ? -1 : known.findIndex((each) => each.includes(line));
    if (at !== -1)
      return describe(Math.max(at - index, 0), `${count === 1 ? "is" : "are"} alike, but not the same`);
  }
  return undefined;
}
