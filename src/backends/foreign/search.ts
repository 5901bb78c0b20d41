import type { GlobResult, GrepMatch, GrepOptions, GrepResult, MaybePromise } from "../backend.ts";
import { type BackendFailure, pathNotFound } from "../errors.ts";
import { searchable, sortByPath } from "../flat-files.ts";
import { failureOf, type ForeignFiles } from "./files.ts";
import { compileGlob } from "../glob/glob.ts";
import { isTextType, mimeTypeOf } from "../mime.ts";
import { baseName, relativeTo } from "../paths.ts";
import { compileSearch, excerpt, type SearchFile, searchFiles } from "../search.ts";

export interface ForeignSearch {
  pattern: string;
  /** A directory, or the one file to search. */
  path: string;
  glob: string | null | undefined;
  maxCount: number;
  options: GrepOptions;
}

/** The search of the backend itself; its matches are chosen, ordered and cut as everywhere. */
export async function searchThere(
  files: ForeignFiles,
  search: ForeignSearch,
  grep: () => MaybePromise<GrepResult>,
): Promise<GrepResult> {
  const { pattern, path, maxCount, options } = search;
  const compiled = compileSearch(pattern, options);
  if (!compiled.ok) return { error: compiled.error, code: compiled.code };
  const chosen = chooser(search);
  if (typeof chosen !== "function") return chosen;
  const result: GrepResult = await files.guard<GrepResult>(path, options, grep);
  if (result.matches === undefined) return result.code === "not_found" ? pathNotFound(path) : result;
  const cut = (match: GrepMatch): GrepMatch => {
    const range = compiled.matcher(match.text);
    return range === undefined ? match : { ...match, text: excerpt(match.text, range.start, range.end) };
  };
  const matches = sortByPath(result.matches.filter((match) => chosen(match.path)));
  return {
    ...result,
    matches: matches.slice(0, maxCount).map(cut),
    truncated: result.truncated === true || matches.length > maxCount,
    skipped: result.skipped ?? 0,
  };
}

/** A search of which the backend knows nothing: every file is read. */
export async function searchHere(
  files: ForeignFiles,
  search: ForeignSearch,
  listAll: () => Promise<GlobResult>,
): Promise<GrepResult> {
  const { path, options } = search;
  const chosen = chooser(search);
  if (typeof chosen !== "function") return chosen;
  const one = await files.data(path, options);
  if ("data" in one) {
    const load = () => searchable(path, one.data);
    return searchFiles(chosen(path) ? [{ path, load }] : [], search);
  }
  const listed = await listAll();
  if (listed.files === undefined) return failureOf(path, listed);
  const found = listed.files.filter((file) => chosen(file.path));
  return searchFiles(
    found.map(({ path: file }): SearchFile => ({
      path: file,
      load: async () => {
        const got = await files.data(file, options);
        return "error" in got ? { kind: "skipped" } : searchable(file, got.data);
      },
    })),
    search,
  );
}

/** Which files a search is about: text, under a name that the filter accepts. */
function chooser({ path, glob }: ForeignSearch): ((file: string) => boolean) | BackendFailure {
  const filter = compileGlob(glob ?? "*", { nameAtAnyDepth: true });
  if (!filter.ok) return { error: filter.error, code: filter.code };
  return (file) =>
    isTextType(mimeTypeOf(file)) &&
    filter.glob.matches(file === path ? baseName(file) : relativeTo(path, file));
}
