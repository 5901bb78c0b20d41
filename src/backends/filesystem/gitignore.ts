import { trimEndOf } from "../../core/text.ts";
import { compileGlob, type Glob } from "../glob/glob.ts";

/** A line of a `.gitignore` file. */
interface Rule {
  glob: Glob;
  directoriesOnly: boolean;
  /** False for a line that takes names back in. */
  excludes: boolean;
}

/** What the `.gitignore` file of one directory says, and after it those of the directories above. */
export class GitignoreRules {
  readonly #rules: readonly Rule[];
  readonly #directory: string;
  readonly #above: GitignoreRules | undefined;

  /** `directory` is relative, without slashes around it. Lines that are no patterns are passed over. */
  constructor(text: string, directory: string, above: GitignoreRules | undefined) {
    this.#rules = text
      .replace(/^\ufeff/, "")
      .split("\n")
      .flatMap((line) => ruleOf(line.replace(/\r$/, "")) ?? [])
      .reverse();
    this.#directory = directory;
    this.#above = above;
  }

  /** Whether a path below the directory, relative to the same one as it, is left out; its parents are not. */
  exclude(path: string, isDirectory: boolean): boolean {
    const below = this.#directory === "" ? path : path.slice(this.#directory.length + 1);
    const rule = this.#rules.find(
      ({ glob, directoriesOnly }) => (isDirectory || !directoriesOnly) && glob.matches(below),
    );
    return rule?.excludes ?? this.#above?.exclude(path, isDirectory) ?? false;
  }
}

function ruleOf(line: string): Rule | undefined {
  if (line.startsWith("#")) return undefined;
  const written = withoutSpacesAtEnd(line);
  const excludes = !written.startsWith("!");
  const pattern = excludes ? written : written.slice(1);
  const directoriesOnly = pattern.endsWith("/");
  const body = directoriesOnly ? pattern.slice(0, -1) : pattern;
  const path = body.startsWith("/") ? body.slice(1) : body;
  if (path === "") return undefined;
  const compiled = compileGlob(toOurDialect(path), { nameAtAnyDepth: !body.includes("/") });
  return compiled.ok ? { glob: compiled.glob, directoriesOnly, excludes } : undefined;
}

/** Spaces after a backslash stay. */
function withoutSpacesAtEnd(line: string): string {
  const bare = trimEndOf(line, " ");
  const backslashes = bare.length - trimEndOf(bare, "\\").length;
  return bare.length < line.length && backslashes % 2 === 1 ? `${bare} ` : bare;
}

const CLASSES: Readonly<Record<string, string>> = {
  alnum: "a-zA-Z0-9",
  alpha: "a-zA-Z",
  digit: "0-9",
  lower: "a-z",
  upper: "A-Z",
  space: " \t",
  xdigit: "0-9a-fA-F",
};

/** Braces and commas are plain characters here, as are `!` and `~` at the start. */
const toOurDialect = (pattern: string): string =>
  pattern
    .replace(/\[:(\w+):\]/g, (whole, name: string) => CLASSES[name] ?? whole)
    .replace(/\\.|[{},]|^[!~]/gs, (found) => (found.startsWith("\\") ? found : `\\${found}`));
